"""Proposing tokens and verifying them: what a case says of it."""

from __future__ import annotations

from capcheck import Case, Terms, Unknown
from capcheck.physics.server import Speculation
from capcheck.physics.work import Work
from capcheck.values import unknown
from capcheck.workload import share
from capcheck_serving.constants import Packing, step_constants
from capcheck_serving.works import work_of_model

OWN_LAYERS = "mtp"  # what a plan calls drafts of the checkpoint's own prediction layers


def speculation(case: Case, t: Terms) -> Speculation | None:
    """Proposals of a step and how many are accepted; None without any. Raises Unknown."""
    tokens = case.plan.draft_tokens
    if case.plan.draft is None or tokens is None:
        return None
    acceptance = share(case.deployment, "acceptance_rate")
    if case.deployment.share("workload", "acceptance_rate") is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "speculation without a declared acceptance_rate"), "traffic")
    proposed = float(tokens.get("num_speculative_tokens"))
    draft = _draft_work(case)
    if draft is None:
        return Speculation(proposed, acceptance)
    dense = Packing(16.0, "16")
    return Speculation(proposed, acceptance, draft, step_constants(t.read, dense, dense))


def _draft_work(case: Case) -> Work | None:
    """What a draft model or the checkpoint's own prediction layer reads; None for n-grams."""
    named = case.plan.draft
    if named is None:
        return None
    if "/" not in named.get("draft model"):
        return _own_draft_work(case) if named.get() == OWN_LAYERS else None
    draft = case.draft_model()
    if draft is None:
        return None
    return work_of_model(case, draft.architecture, draft.scheme.get("draft quantization"))


def _own_draft_work(case: Case) -> Work | None:
    """The first prediction layer of the checkpoint, its projection and the shared head."""
    model = case.model.get("model")
    built = model.architecture
    if not built.draft:
        return None
    joining = (one._replace(role="other") for one in built.draft_outer if one.role == "draft")
    layer = built._replace(layers=built.draft[:1], outer=(*built.outer, *joining))
    return work_of_model(case, layer, model.scheme.get("quantization"))

"""Neutral changes applied to a deployment, in its own words: what a remedy tries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capcheck.deployment import Deployment, FieldPath
from capcheck.engine import Change, Edit, Engine
from capcheck.source import Node, Scalar
from capcheck.values import Origin, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capcheck.case import Case

COUNT: FieldPath = ("hardware", "count")
SPREADING = frozenset({"tensor", "pipeline"})  # they may take more devices than there are


def edit_of(engine: Engine, change: Change, deployment: Deployment) -> Edit | None:
    """A change in the user's words: the engine's options, or the hardware that is declared."""
    if change.field == "devices":
        return _counted(deployment, change.to)
    return engine.write(change, deployment)


def _counted(deployment: Deployment, count: int) -> Edit:
    """So many devices, under the name that they are counted with: `nvidia.com/gpu: 2`."""
    have = deployment.fields.get(COUNT)
    word = have.origin.word if have is not None and have.origin.kind == "written" else ""
    return Edit(COUNT, str(count), f"{word or COUNT[-1]}: {count}")


def applied(deployment: Deployment, edit: Edit) -> Deployment:
    """A copy with one field set, at the place where it is or would be written."""
    at = deployment.place_for(*edit.path)
    have = deployment.fields.get(edit.path)
    word = edit.words.split()[0].rstrip(":") if edit.words else edit.path[-1]
    origin = have.origin if have else Origin("written", at, word=word)
    value: Value[Node] = Value((Scalar(edit.text, "text", "plain", at),), origin)
    return deployment.with_fields([(edit.path, value)])


def edited(case: Case, changes: Iterable[Change]) -> tuple[Deployment, tuple[Edit, ...]] | None:
    """The deployment with all changes, and the edits that make it; None when one has no words.

    Parallel sizes that take more devices than are declared take them: that is an edit, too.
    """
    deployment = case.deployment
    edits = []
    spreads = False
    for change in changes:
        edit = edit_of(case.engine, change, deployment)
        if edit is None:
            return None
        edits.append(edit)
        deployment = applied(deployment, edit)
        spreads |= change.field in SPREADING
    more = _more_devices(case, deployment) if spreads else None
    if more is not None:
        edits.append(more)
        deployment = applied(deployment, more)
    return deployment, tuple(edits)


def _more_devices(case: Case, deployment: Deployment) -> Edit | None:
    """The count that the parallel sizes take, when it is more than what is declared."""
    count = deployment.count(*COUNT)
    if count is None or not count.known:
        return None
    nodes = deployment.count("hardware", "nodes")
    per_node = max(1, (nodes.either(1) if nodes else 1) or 1)
    try:
        plan = case.engine.plan(case.site._replace(deployment=deployment))
        needed = -(-plan.devices // per_node)
    except Unknown:
        return None
    if needed <= count.get():
        return None
    return _counted(deployment, needed)

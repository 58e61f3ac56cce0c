"""llama.cpp's memory on the device that is worst off, line by line."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import GIB, OTHER, Architecture, Case, Ledger, Line, Terms, Unknown
from capcheck_llama_cpp import cells, placing
from capcheck_llama_cpp.layout import Layout, layout_of
from capcheck_llama_cpp.ollama_plan import STARTS_SERVER
from capcheck_llama_cpp.plan import ALL_LAYERS
from capcheck_llama_cpp.sharing import Share, shares
from capcheck_llama_cpp.weights import Held, held

WEIGHTS, STATE, COMPUTE = "weights", "recurrent state", "compute buffer"
COUNTED = (STATE, COMPUTE, OTHER)  # what is fitted besides weights and cache


class Placed(NamedTuple):
    """A placement, and the device that is worst off in it."""

    at: Layout
    number: int


def placed(case: Case) -> Placed:
    """Where everything goes, as the middle of all constants has it. Raises Unknown."""

    def place() -> Placed:
        t = case.terms()
        at = layout_of(case)
        found = shares(case, t, at)
        if _moves(at):
            room = case.visible_bytes(t) - t.read("llama_cpp.context_bytes")
            at, found = _fitted(case, t, at, found, room)
        worst = max(found, key=lambda one: one.total, default=None)
        if worst is None or not worst.layers:
            why = "all layers run on the host, whose memory is not known"
            raise Unknown(at.settings.gpu_layers.because(why), "gpu-layers")
        return Placed(at, worst.number)

    return case.once("llama.cpp placement", place)


def ledger(case: Case, t: Terms) -> Ledger:
    """Lines of the device that has the most to hold. Raises Unknown."""
    found = placed(case)
    worst = shares(case, t, found.at)[found.number]
    visible, context = case.visible_bytes(t), t.read("llama_cpp.context_bytes")
    return _lines(case, t, found.at, worst, visible, context)


def _moves(at: Layout) -> bool:
    """Whether layers go to the host where they do not fit: nothing of that is given."""
    if not at.settings.fit.either(False):
        return False
    given = (at.settings.gpu_layers, at.settings.tensor_split, at.settings.host_experts)
    return at.settings.overrides is None and not any(
        one.origin.kind in ("written", "assumed") for one in given
    )


def _fitted(
    case: Case, t: Terms, at: Layout, found: tuple[Share, ...], room: float
) -> tuple[Layout, tuple[Share, ...]]:
    """The placement that is found: experts go to the host first, then whole layers."""
    margin = t.read("llama_cpp.fit_margin_bytes")

    def fits(some: tuple[Share, ...]) -> bool:
        return all(one.total + margin <= room for one in some)

    if fits(found):
        return at, found
    layers = len(at.model.layers)
    last = layers if at.model.experts and not _moves_whole(case) else 0
    steps = [(layers + 1, experts) for experts in range(1, last + 1)]
    steps += [(many, last) for many in range(layers, 0, -1)]
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        tried = layout_of(case, *steps[middle])
        if fits(shares(case, t, tried)):
            high = middle
        else:
            low = middle + 1
    chosen = layout_of(case, *steps[low])
    return chosen, shares(case, t, chosen)


def _moves_whole(case: Case) -> bool:
    """Whether nothing less than layers is moved: Ollama's own scheduler knows no experts."""
    version = case.release.version
    return len(version) > 1 and version < STARTS_SERVER


def _lines(
    case: Case, t: Terms, at: Layout, worst: Share, visible: float, context: float
) -> Ledger:
    layers = len(at.model.layers) + 1
    offloaded = sum(1 for owner in at.owners if owner is not None)
    note = f"{offloaded} of {layers} layers" if offloaded < layers else _parted(at)
    name = f"{WEIGHTS} ({note})" if note else WEIGHTS
    weights = worst.weights * t.read("llama_cpp.weights_factor", **_facts(case))
    lines = [
        Line(name, weights, "load", True),
        Line(STATE, worst.state, "serve", True),
        Line(COMPUTE, worst.buffer, "profile", True),
        Line(OTHER, context, "profile", True),
        *_more(case, t, at, worst),
    ]
    pool = worst.cache
    if not pool and worst.state:  # nothing but recurrent layers: their states are the cache
        lines = [line for line in lines if line.name != STATE]
        pool = worst.state
    if _moves(at):
        counted = sum(line.bytes for line in lines if line.name in (name, *COUNTED))
        lines[0] = _left_out(lines[0], counted + pool - visible)
    words = f"{visible / GIB:.1f} GiB"
    return Ledger(visible, visible, tuple(line for line in lines if line.bytes), words, pool)


def _left_out(weights: Line, excess: float) -> Line:
    """The weights without what goes to the host besides, where more is free on the device in the
    middle of all constants than at this end of them."""
    return weights._replace(bytes=weights.bytes - min(max(excess, 0.0), weights.bytes))


def _parted(at: Layout) -> str:
    """How many layers have a part on the host though they are on a device."""
    many = sum(
        1
        for owner, places in zip(at.owners, at.places, strict=False)
        if owner is not None and None in places
    )
    return f"parts of {many} layers on the host" if many else ""


def _facts(case: Case) -> dict[str, str]:
    scheme = case.model.get("model").scheme.get("quantization")
    if scheme is None:
        return {"packing": "plain"}
    return {"packing": "doubtful" if scheme.doubt or scheme.guessed else "recipe"}


def _more(case: Case, t: Terms, at: Layout, worst: Share) -> list[Line]:
    """A projector and a draft model: both go to the first device, or to the one there is."""
    lines = []
    if at.settings.projector is not None and worst.number == 0:
        plain = sum(tensor.elements for tensor in at.model.towers) * 2.0
        lines.append(Line("projector", plain * t.read("llama_cpp.projector_factor"), "load", True))
    draft = case.draft_model()
    if draft is not None:
        weighed = held(case, draft.architecture, draft.scheme.get("draft quantization"))
        lines += _draft(at, draft.architecture, weighed, worst.number)
    return lines


def _draft(at: Layout, model: Architecture, weighed: Held, number: int) -> list[Line]:
    """A device's part of the draft model, which is split as the main one is."""
    ends = placing.shares(at.devices, at.settings.tensor_split.either(()))
    owners = placing.owners(len(model.layers), ALL_LAYERS, ends, build=at.build)
    weights = weighed.output if owners[-1] == number else 0.0
    cached = 0.0
    for layer, pieces, owner in zip(model.layers, weighed.layers, owners, strict=False):
        if owner == number:
            weights += sum(piece.bytes for piece in pieces)
            if layer.cache is not None:
                cached += cells.layer_bytes(
                    layer.cache, layer.mixer, at.at, 2.0, 2.0, "latent", slides=True
                )
    return [
        Line("draft model", weights, "load", True),
        Line("draft model's KV cache", cached, "serve", True),
    ]

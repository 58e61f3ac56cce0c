"""What each device holds of a placed model."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Case, Layer, Terms
from capcheck_llama_cpp import compute, eras, placing
from capcheck_llama_cpp.layout import Layout, cache_bytes, latent_of


class Share(NamedTuple):
    """What one device holds."""

    number: int
    weights: float
    cache: float
    state: float
    buffer: float
    layers: int

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.cache + self.state + self.buffer


def shares(case: Case, t: Terms, at: Layout) -> tuple[Share, ...]:
    """What each device holds; without a device whatever is left to the host."""
    caches = cache_bytes(case)
    weights = _weights(at)
    found = []
    for number in range(at.devices):
        mine = [index for index, owner in enumerate(at.owners[:-1]) if owner == number]
        head = at.owners[-1] == number
        cache = sum(caches[index][0] for index in mine) if at.kv_on_devices else 0.0
        state = sum(caches[index][1] for index in mine) if at.kv_on_devices else 0.0
        works = bool(mine or head or weights[number])
        buffer = _buffer(case, t, at, mine, head) if works else 0.0
        found.append(Share(number, weights[number], cache, state, buffer, len(mine) + head))
    return tuple(found)


def _weights(at: Layout) -> list[float]:
    """Bytes of weights on each device."""
    found = [0.0] * at.devices
    for layer, places in zip(at.held.layers, at.places, strict=True):
        for piece, place in zip(layer, places, strict=True):
            if place is not None and place < at.devices:
                found[place] += piece.bytes
    head = at.owners[-1]
    if head is not None:
        found[head] += at.held.output
    if at.settings.split_mode.either("layer") not in ("row", "tensor"):
        return found
    # Matrices that are cut by rows: each device has its share of all that is offloaded.
    ends = placing.shares(at.devices, at.settings.tensor_split.either(()))
    starts = (0.0, *ends[:-1])
    return [sum(found) * (end - start) for start, end in zip(starts, ends, strict=True)]


def _copied(at: Layout, mine: list[int]) -> float:
    """The largest of the experts' tensors that lie on the host while their layers do not."""
    return max(
        (
            piece.bytes
            for index in mine
            for piece, place in zip(at.held.layers[index], at.places[index], strict=True)
            if place is None and piece.of_experts
        ),
        default=0.0,
    )


def _pipelined(at: Layout) -> bool:
    """Whether steps are pipelined over the devices: nothing of the model is anywhere else."""
    return (
        at.devices > 1
        and all(owner is not None for owner in at.owners)
        and at.places
        == tuple((own,) * len(one) for one, own in zip(at.places, at.owners, strict=False))
        and at.kv_on_devices
        and at.settings.split_mode.either("layer") == "layer"
        and at.settings.overrides is None
        and at.build >= eras.HAS_UBATCH
    )


def _buffer(case: Case, t: Terms, at: Layout, mine: list[int], head: bool) -> float:
    layers = [at.model.layers[index] for index in mine]
    attends = any(one.cache is not None and one.cache.kind != "state" for one in layers)
    flash = at.settings.flash.get("flash-attn")
    generation = compute.generation_of(at.build)
    duty = compute.Duty(attends, flash, head, _pipelined(at), generation)
    beside = t.read("llama_cpp.mask_beside_logits") if generation else 0.0
    size = compute.buffer(_shape(case, at, layers), duty, beside)
    size = size * t.read("llama_cpp.compute_factor") + t.read("llama_cpp.graph_bytes")
    return size + _copied(at, mine) * t.read("llama_cpp.copied_experts")


def _shape(case: Case, at: Layout, layers: list[Layer]) -> compute.Shape:
    model = at.model
    tokens = case.plan.max_step_tokens.get("ubatch-size")
    few = at.build >= eras.FEW_OUTPUTS and not case.release.foreign
    return compute.Shape(
        tokens=tokens,
        cells=at.at.each,
        outputs=min(tokens, at.at.sequences) if few else tokens,
        hidden=model.hidden,
        heads=max((one.mixer.heads for one in layers), default=0),
        head_size=max((_head_size(one, case) for one in layers), default=0),
        cached=max((_cached(one) for one in layers), default=0),
        feed=0 if model.experts else model.intermediate,  # experts' are counted apart
        vocabulary=model.vocabulary,
        experts_used=model.experts_per_token,
        expert_feed=model.expert_intermediate,
        expanded=max((_expanded(one, case, at) for one in layers), default=0.0),
    )


def _head_size(layer: Layer, case: Case) -> int:
    """The width of one head's queries; with a latent cache they are as wide as the latent."""
    mixer = layer.mixer
    if mixer.latent and latent_of(case) != "heads" and not case.release.foreign:
        return mixer.latent + mixer.rope
    return mixer.head_size or mixer.nope + mixer.rope


def _cached(layer: Layer) -> int:
    """Values of one token's keys and values before they are cached."""
    cache = layer.cache
    if cache is None or cache.kind == "state":
        return 0
    return cache.key if cache.kind == "latent" else cache.heads * (cache.key + cache.value)


def _expanded(layer: Layer, case: Case, at: Layout) -> float:
    """The fork turns a latent into the keys and values of all heads for prompts."""
    mixer = layer.mixer
    if not (mixer.latent and case.release.foreign and latent_of(case) == "latent"):
        return 0.0
    return at.at.each * mixer.heads * (mixer.nope + mixer.rope + mixer.value_size) * compute.HALF

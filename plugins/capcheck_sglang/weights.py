"""Weight bytes on the worst rank, as SGLang holds them after loading."""

from __future__ import annotations

from collections.abc import Sequence

from capcheck import Architecture, Case, Layer, Scheme, Tensor, Unknown
from capcheck.physics import memory
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split
from capcheck_sglang.drafting import LOOKUP, OWN

# With data-parallel attention these are split over a rank's own devices, the rest over all.
OF_ATTENTION = frozenset(("attention", "state", "indexer"))


class Spread:
    """How one model's tensors are spread over the devices."""

    def __init__(self, case: Case) -> None:
        plan = case.plan
        self.all = max(1, plan.extra["all_tensor"].get("tp_size"))
        self.attention = max(1, plan.tensor.get("tp_size"))
        expert = max(1, plan.expert.get("ep_size"))
        # Fewer expert groups than devices cut each expert, too: the same bytes as all cut.
        self.expert = expert if expert >= self.all else 1
        self.spare_experts = plan.extra["spare_experts"].get() if self.expert > 1 else 0
        self.whole_head = plan.extra["enable_dp_lm_head"].get() is not True

    @property
    def apart(self) -> bool:
        """Whether attention runs on data-parallel ranks inside tensor parallelism."""
        return bool(self.attention != self.all)

    def of(self, tensor: Tensor) -> Split:
        """The split of one tensor."""
        size = self.all
        if self.apart:
            if tensor.role in OF_ATTENTION:
                size = self.attention
            elif tensor.role == "embedding":
                size = 1
            elif tensor.role == "head" and not self.whole_head:
                size = self.attention
        return Split(size, expert=self.expert, spare_experts=self.spare_experts)

    def key(self) -> tuple[int, ...]:
        """What tells two spreads apart."""
        return (self.all, self.attention, self.expert, self.spare_experts, self.whole_head)


class Scale:
    """Bytes of a model's tensors under one spread, scheme and dtype."""

    def __init__(
        self, case: Case, scheme: Scheme | None, spread: Spread, *, draft: bool = False
    ) -> None:
        self._case = case
        self._scheme = scheme
        self._spread = spread
        self._draft = draft
        self._dtype = case.plan.weight_dtype.get("dtype")
        self._made: dict[Split, Weighing] = {}

    def _kernel(self, scheme: Scheme) -> str:
        part = self._case.accelerator.get("accelerator")
        packing = self._case.workshop.packing
        release = self._case.release.version
        return packing.kernel(scheme, "sglang", part.vendor, part.capability, release)

    def _weighing(self, split: Split) -> Weighing:
        if split not in self._made:
            packing = self._case.workshop.packing
            self._made[split] = Weighing(
                packing, self._scheme, split, self._dtype, self._kernel, draft=self._draft
            )
        return self._made[split]

    def tensor(self, tensor: Tensor, layer: int | None) -> float:
        """Bytes of one tensor on one rank."""
        return self._weighing(self._spread.of(tensor)).tensor(tensor, layer)

    def layers(self, layers: Sequence[Layer], first: int = 0) -> float:
        """Bytes of consecutive layers, with the copies that absorbed decoding keeps."""
        own = self._weighing(Split(self._spread.attention))
        known: dict[int, float] = {}
        total = 0.0
        for index, layer in enumerate(layers, first):
            key = id(layer) if own.alike else index
            if key not in known:
                copies = memory.absorbed_bytes(layer, own.split, own.dtype_bytes)
                known[key] = sum(self.tensor(one, index) for one in layer.tensors)
                known[key] += memory.allocated(copies)
            total += known[key]
        return total

    def outer(self, tensors: Sequence[Tensor]) -> float:
        """Bytes of tensors outside of the layers."""
        return sum(self.tensor(one, None) for one in tensors)

    def stage(
        self, model: Architecture, stage: int, sizes: Sequence[int], *, towers: bool = True
    ) -> float:
        """Bytes of one pipeline stage: layers, outer tensors, rotary tables."""
        layers = memory.stage_layers(model.layers, len(sizes), stage, sizes)
        outer = memory.outer_tensors(model, len(sizes), stage)
        if not towers:
            outer = [one for one in outer if one.role not in memory.TOWERS]
        total = self.layers(layers, sum(sizes[:stage])) + self.outer(outer)
        width = self._weighing(Split(self._spread.attention)).dtype_bytes
        return total + memory.rope_bytes(model.ropes, width)

    def own_draft(self, model: Architecture) -> float:
        """Bytes of the prediction layers stored with a checkpoint; the rest is shared."""
        outer = [one for one in model.draft_outer if one.role not in ("embedding", "head")]
        return self.layers(model.draft, len(model.layers)) + self.outer(outer)


def stage_sizes(case: Case) -> tuple[int, ...]:
    """Layers of each pipeline stage: the remainder goes one each to the last ones."""
    layers = len(case.model.get("model").architecture.layers)
    stages = max(1, case.plan.pipeline.get("pp_size"))
    if stages > layers:
        raise Unknown(case.plan.pipeline.because(f"there are only {layers} layers to deal out"))
    stated = case.deployment.text("engine", "env", "SGLANG_PP_LAYER_PARTITION")
    parts = ((stated.either("") if stated is not None else "") or "").split(",")
    if len(parts) == stages and all(part.strip().isdigit() for part in parts):
        sizes = tuple(int(part) for part in parts)
        if sum(sizes) == layers:
            return sizes
    base, rest = divmod(layers, stages)
    return tuple(base + (index >= stages - rest) for index in range(stages))


def stage_bytes(case: Case, stage: int, sizes: Sequence[int], *, packed: bool = True) -> float:
    """Bytes of one stage of the model; not `packed`: as stored before quantization at load."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization") if packed else None
    part = case.accelerator.get("accelerator")
    spread = Spread(case)
    towers = not case.plan.extra["language_only"].get()
    key = (
        "sglang weights", id(model.architecture), scheme, spread.key(), stage, tuple(sizes), towers,
        case.plan.weight_dtype.get("dtype"), part.vendor, part.capability, case.release.version,
    )  # fmt: skip
    cache = case.workshop.cache
    if key not in cache:
        scale = Scale(case, scheme, spread)
        total = scale.stage(model.architecture, stage, sizes, towers=towers)
        cache[key] = (total, model.architecture)  # kept alive: its id stays its own
    return float(cache[key][0])


def layer_bytes(case: Case) -> float:
    """Bytes of the model's last layer, unquantized: the measure of a draft of one layer."""
    model = case.model.get("model").architecture
    scale = Scale(case, None, Spread(case))
    return sum(scale.tensor(one, None) for one in model.layers[-1].tensors)


def known_draft(case: Case) -> float | None:
    """Bytes of what speculation adds; None for a draft that is not in the catalogue."""
    named = case.plan.draft
    if named is None:
        return 0.0
    name = named.get("draft model")
    if name == LOOKUP:
        return 0.0
    model = case.model.get("model")
    if name == OWN:
        scheme = model.scheme.get("quantization")
        return Scale(case, scheme, Spread(case), draft=True).own_draft(model.architecture)
    try:
        draft = case.draft_model()
    except Unknown:
        return None
    if draft is None:
        return None
    spread = Spread(case)
    scheme = draft.scheme.get("draft quantization")
    sizes = (len(draft.architecture.layers),)
    return Scale(case, scheme, spread).stage(draft.architecture, 0, sizes)

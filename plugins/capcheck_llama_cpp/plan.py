"""What llama.cpp will do with its options: a neutral plan with every default explained."""

from __future__ import annotations

from typing import Any, NamedTuple

from capcheck import Accelerator, MemoryPolicy, Model, Plan, Site, Value, default, derived, unknown
from capcheck.values import Origin
from capcheck_llama_cpp import eras
from capcheck_llama_cpp.placing import on_host
from capcheck_llama_cpp.reading import Reading

TYPE_WORDS = {"f16": "fp16", "f32": "fp32", "fp16": "fp16", "fp32": "fp32"}
SPLIT_MODES = {
    "none": "none", "layer": "layer", "row": "row", "tensor": "tensor",
    "0": "none", "1": "layer", "2": "row",  # of llama-cpp-python
}  # fmt: skip
ALL_LAYERS = 1_000_000
ENGINE = "llama.cpp"


class Settings(NamedTuple):
    """What only llama.cpp has, each with its origin."""

    ctx_size: Value[int]  # cells for all sequences
    parallel: Value[int]
    unified: Value[bool]
    gpu_layers: Value[int]
    devices: Value[int]
    split_mode: Value[str]
    tensor_split: Value[tuple[float, ...]]
    flash: Value[bool]
    key_type: Value[str]
    value_type: Value[str]
    whole_windows: Value[bool]
    kv_offload: Value[bool]
    fit: Value[bool]
    host_experts: Value[int]  # layers whose experts stay on the host
    overrides: Value[str] | None
    projector: Value[str] | None
    latent: Value[int] | None  # the fork's mla


def _lost(value: Value[Any], why: str) -> Value[Any]:
    """Unknown in place of what was written; what was unknown before keeps its reason."""
    return Value((), value.origin._replace(why=why) if value.known else value.origin)


def _from(least: int, value: Value[int], name: str) -> Value[int]:
    """A number that is not below the least; unknown when it is."""
    below = value.known and value.either(least) < least
    return _lost(value, f"{name} is below {least}") if below else value


class Planner:
    """One site's plan, field by field."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.build = site.release.version[0] if site.release.version else 0
        self.read = Reading(site.deployment, site.release.version)
        self.why = f"{ENGINE} {site.release.text} default"
        self.model: Model | None = site.model.either(None)
        self.accelerator: Accelerator | None = site.accelerator.either(None)

    def default(self, value: Any) -> Value[Any]:
        """A default of this build."""
        return default(value, self.read.place, self.why)

    def plan(self) -> Plan:
        """The whole plan."""
        found = self.settings()
        one = self.default(1)
        split = found.split_mode
        rows = split.either("layer") in ("row", "tensor")
        lost: Value[int] = Value((), split.origin)
        parts = found.devices if split.known else lost
        step = self.step(found)
        draft = self.read.text("model_draft")
        return Plan(
            tensor=parts if rows else one if split.known else lost,
            pipeline=one if rows else parts,
            data=one,
            expert=one,
            context=one,
            max_request_tokens=self.request_tokens(found),
            max_sequences=found.parallel,
            max_step_tokens=step,
            weight_dtype=self.default("fp16"),
            kv_dtype=found.key_type,
            memory=self.default(MemoryPolicy("all", 1.0)),
            graphs=self.default(True),
            chunked_prefill=self.default(True),
            prefix_caching=self.switch("cache_prompt", True),
            draft=draft,
            draft_tokens=self._draft_tokens() if draft is not None else None,
            extra={name: one for name, one in found._asdict().items() if one is not None},
            host_weights=on_host(found.gpu_layers, found.host_experts, self.model),
        )

    def _draft_tokens(self) -> Value[int]:
        return self.read.count("draft_max") or self.default(16 if self.build < eras.FITS else 3)

    def settings(self) -> Settings:
        """What the options say, with this build's defaults."""
        parallel = self.parallel()
        split = self.split_mode()
        return Settings(
            ctx_size=self.context(),
            parallel=parallel,
            unified=self.unified(),
            gpu_layers=self.gpu_layers(),
            devices=self.devices(split),
            split_mode=split,
            tensor_split=self.tensor_split(),
            flash=self.flash(),
            key_type=self.cache_type("cache_type_k"),
            value_type=self.cache_type("cache_type_v"),
            whole_windows=self.switch("swa_full", False),
            kv_offload=self.offloads_kv(),
            fit=self.fit(),
            host_experts=self.host_experts(),
            overrides=self.read.text("override_tensor"),
            projector=self.read.text("mmproj"),
            latent=self.site.deployment.count("engine", "args", "mla"),
        )

    def switch(self, name: str, otherwise: bool) -> Value[bool]:
        """A switch; `no_x` says the opposite of x."""
        found = self.read.switch(name)
        if found is not None:
            return found
        opposite = self.read.switch(f"no_{name}")
        return opposite.map(lambda on: not on) if opposite is not None else self.default(otherwise)

    def size(self, name: str, otherwise: int) -> Value[int]:
        """An option that counts something: less than one of it is no size."""
        value = self.read.count(name) or self.default(otherwise)
        if value.known and value.get() < 1:
            return Value((), value.origin._replace(why=f"{name} is below 1"))
        return value

    def context(self) -> Value[int]:
        """Cells for all sequences: given, this build's default, or the model's length."""
        given = self.read.count("ctx_size")
        if given is not None and given.either(0) != 0:
            return _from(0, given, "ctx-size")
        whole = given is not None  # 0: the model's own length, whatever fits
        tokens = None if whole else eras.context(self.build)
        if given is not None and not given.known:
            return given
        if tokens is not None:
            return self.default(tokens)
        if self.model is None:
            return unknown(self.read.place, "ctx-size is absent and the model is not known")
        longest = self.model.architecture.max_positions
        if longest is None:
            return unknown(self.read.place, "the model's configuration names no context length")
        if not whole and self.build >= eras.FITS and self.fit().either(True):
            why = f"ctx-size is absent: up to {longest:,} tokens, as many as --fit finds room for"
            return unknown(self.read.place, why)
        origin = given.origin if given is not None else None
        why = f"{self.model.name}'s full length"
        if origin is not None:
            return Value((longest,), origin._replace(why=why))
        return default(longest, self.read.place, why)

    def request_tokens(self, found: Settings) -> Value[int]:
        """What one slot may hold: all of a unified cache, else its share."""
        if not (found.ctx_size.known and found.parallel.known and found.unified.known):
            return found.ctx_size if not found.ctx_size.known else Value((), found.parallel.origin)
        shared = found.unified.get() and self.build >= 5913
        many = 1 if shared else max(1, found.parallel.get())
        return found.ctx_size.map(lambda tokens: max(1, tokens // many))

    def parallel(self) -> Value[int]:
        """Slots: given, or four in one cache where newer servers choose."""
        given = self.read.count("parallel")
        chooses = self.build >= eras.SLOTS
        if given is None or (chooses and given.either(1) < 0):
            return self.default(eras.AUTO_SLOTS if chooses else 1)
        return self.size("parallel", 1)

    def unified(self) -> Value[bool]:
        """One cache for all slots: before they had caches of their own, and where none is given."""
        if self.build < 5913:
            return self.default(True)
        given = self.read.count("parallel")
        chosen = self.build >= eras.SLOTS and (given is None or given.either(1) < 0)
        return self.switch("kv_unified", chosen)

    def step(self, found: Settings) -> Value[int]:
        """Tokens of one step: the physical batch, no more than the logical one and the context."""
        batch = self.size("batch_size", eras.batch(self.build))
        if self.build < eras.HAS_UBATCH and not self.read.has("ubatch_size"):
            step = batch
        elif (self.read.count("ubatch_size") or batch).either(1) == 0:
            step = batch  # 0: all of the logical batch
        else:
            step = self.size("ubatch_size", eras.UBATCH)
        bounds = [one.get() for one in (batch, found.ctx_size) if one.known]
        return step.map(lambda tokens: min([tokens, *bounds])) if step.known else step

    def gpu_layers(self) -> Value[int]:
        """Layers on the devices: none in older builds unless asked for, all in newer ones."""
        value = self.read.text("gpu_layers")
        word = value.either("").strip().lower() if value is not None else "auto"
        if value is None or word in ("auto", "all", "-1", "-2"):
            every = self.build >= eras.OFFLOADS_ALL or word == "all"
            many = ALL_LAYERS if every else 0
            return self.default(many) if value is None else value.map(lambda _: many)
        found = self.read.count("gpu_layers")
        return _from(0, found, "gpu-layers") if found is not None else self.default(0)

    def split_mode(self) -> Value[str]:
        """How the model is split over the devices; a word that is no way to split is unknown."""
        found = self.read.text("split_mode")
        if found is None:
            return self.default("layer")
        word = SPLIT_MODES.get(found.either(""))
        why = f"{found.either('')} is no split-mode"
        return _lost(found, why) if word is None else found.map(lambda _: word)

    def devices(self, split: Value[str]) -> Value[int]:
        """Devices that take part: all that there are, one where nothing is split."""
        named = self.read.text("device")
        if named is not None:
            words = [word for word in named.either("").split(",") if word.strip()]
            if not named.known:
                return Value((), named.origin)
            return named.map(lambda _: 0 if words == ["none"] else len(words))
        if split.either("layer") == "none":
            return derived(1, split.place, "split-mode none")
        count = self.site.deployment.count("hardware", "count")
        visible = self._visible()
        if visible is not None:
            return visible
        return count if count is not None else derived(1, self.read.place, "one device")

    def _visible(self) -> Value[int] | None:
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
            found = self.site.deployment.text("engine", "env", name)
            if found is not None and found.known and found.get().strip() not in ("", "all"):
                return found.map(lambda text: len([one for one in text.split(",") if one.strip()]))
        return None

    def tensor_split(self) -> Value[tuple[float, ...]]:
        """How much of the model each device gets; nothing given: by their free memory."""
        found = self.read.text("tensor_split")
        if found is None:
            return self.default(())
        words = [one.strip() for one in found.either("?").replace("/", ",").split(",")]
        why = "tensor-split is not a list of numbers"
        try:
            parts = tuple(float(one) for one in words if one)
        except ValueError:
            return _lost(found, why)
        sound = all(0 <= part < float("inf") for part in parts)
        return found.map(lambda _: parts) if sound else _lost(found, why)

    def flash(self) -> Value[bool]:
        """Flash attention: off in older builds; automatic, which is on for all but odd heads."""
        found = self.read.text("flash_attn")
        if found is None:
            # A fork may have turned it on: it takes less memory, and an error needs the least.
            return self.default(self.build >= eras.OFFLOADS_ALL or self.site.release.foreign)
        if found.either("") in ("auto", "-1"):
            return found.map(lambda _: True)
        return self.switch("flash_attn", False)

    def cache_type(self, option: str) -> Value[str]:
        """The type of cached keys or values."""
        found = self.read.text(option)
        if found is None:
            return self.default("fp16")
        return found.map(lambda word: TYPE_WORDS.get(word.lower(), word.lower()))

    def offloads_kv(self) -> Value[bool]:
        """Whether the cache lies with its layers, or all of it on the host."""
        return self.switch("kv_offload", True)

    def fit(self) -> Value[bool]:
        """Whether what is not given is fitted to the free memory."""
        if self.build < eras.FITS:
            return self.default(False)
        found = self.read.switch("fit")
        return found if found is not None else self.default(True)

    def host_experts(self) -> Value[int]:
        """Of how many layers, from the first, the experts stay on the host."""
        every = self.read.switch("cpu_moe")
        if every is not None and every.either(False):
            return every.map(lambda _: ALL_LAYERS)
        some = self.read.count("n_cpu_moe")
        return _from(0, some, "n-cpu-moe") if some is not None else self.default(0)

    def origin(self) -> Origin:
        """Where defaults would be written."""
        return self.default(0).origin

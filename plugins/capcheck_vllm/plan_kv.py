"""The options that decide the layout of vLLM's KV cache, with every default explained."""

from __future__ import annotations

from typing import Any, NamedTuple

from capcheck import Accelerator, Model, Value, default, derived
from capcheck.option_reader import OptionReader
from capcheck.source import to_plain
from capcheck.values import unknown

KV_WORDS = {
    "bfloat16": "bf16", "float16": "fp16", "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2", "fp8_inc": "fp8_e4m3",
}  # fmt: skip
# Model types whose states can be kept at every block, until that is dropped for them.
KEEPS_EVERY_STATE = {
    "bamba": (0, 25, 0), "falcon_h1": (0, 33, 0), "granitemoehybrid": (0, 33, 0),
    "jamba": (0, 33, 0), "mamba": (0, 33, 0), "mamba2": (0, 33, 0), "nemotron_h": (0, 33, 0),
    "zamba2": (0, 33, 0),
}  # fmt: skip
# KV connectors that leave the hybrid manager on, and since when.
HYBRID_CONNECTORS = {
    "DecodeBenchConnector": (0, 22, 0), "ExampleHiddenStatesConnector": (0, 22, 0),
    "MooncakeConnector": (0, 22, 0), "MooncakeStoreConnector": (0, 22, 0),
    "MultiConnector": (0, 22, 0), "NixlConnector": (0, 22, 0), "NixlPushConnector": (0, 26, 0),
    "OffloadingConnector": (0, 22, 0), "SimpleCPUOffloadConnector": (0, 22, 0),
    "MoRIIOConnector": (0, 33, 0),
}  # fmt: skip
ASYNCHRONOUS_DRAFTS = ("eagle", "eagle3", "mtp", "dflash", "dspark", "ngram_gpu")
ALLOW_CHUNKED = "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"


def _words(told: object) -> tuple[str, ...]:
    """A list, or words with blanks or commas between them."""
    listed = told if isinstance(told, list) else str(told).replace(",", " ").split()
    return tuple(str(one) for one in listed)


class KvOptions(NamedTuple):
    """What decides: the options, the release, the model, the device."""

    read: OptionReader
    version: tuple[int, ...]
    v1: bool
    model: Model | None
    accelerator: Accelerator | None
    pooling: bool
    why: str

    def extra(self) -> dict[str, Value[Any]]:
        """Everything the layout needs beyond the neutral plan."""
        read, why = self.read, self.why
        return {
            "async_scheduling": self.async_scheduling(),
            "attention_backend": self.attention_backend(),
            "block_size": read.count("block_size", 0, why),
            "hybrid_kv_cache_manager": self.hybrid_manager(),
            "kv_cache_dtype_skip_layers": self.skipped_layers(),
            "mamba_block_size": read.count("mamba_block_size", 0, why),
            "mamba_cache_dtype": read.text("mamba_cache_dtype", "auto", why),
            "mamba_cache_mode": self.mamba_cache_mode(),
            "mamba_ssm_cache_dtype": read.text("mamba_ssm_cache_dtype", "auto", why),
            "prefill_context_parallel_size": read.count("prefill_context_parallel_size", 1, why),
        }

    @property
    def _family(self) -> str:
        return self.model.architecture.family if self.model is not None else ""

    def _caches(self) -> frozenset[str]:
        if self.model is None:
            return frozenset()
        layers = self.model.architecture.layers
        return frozenset(layer.cache.kind for layer in layers if layer.cache is not None)

    def dtype(self, activations: Value[str]) -> Value[str]:
        """The KV-cache dtype; `auto` follows the model, or the scheme its checkpoint tells.

        ModelOpt's is heeded from 0.14, compressed-tensors' from 0.15.
        """
        written = self.read.text("kv_cache_dtype", "auto", self.why)
        if self._family.startswith("deepseek_v4") and written.known:
            word = written.get()
            if word == "auto" or word.startswith("fp8"):
                return default("fp8_ds_mla", written.origin.place, "DeepSeek-V4's own layout")
        if not written.known or written.get() != "auto":
            return written.map(lambda word: KV_WORDS.get(word, word))
        if self.model is not None:
            scheme = self.model.scheme.either(None)
            late = scheme is not None and scheme.method == "compressed-tensors"
            if scheme is not None and scheme.kv and self.version >= (0, 15 if late else 14, 0):
                return default(scheme.kv, written.origin.place, "the checkpoint's KV scheme")
        if self._family == "deepseek_v32" and self.version == (0, 11, 0):
            return default("fp8_ds_mla", written.origin.place, "auto for sparse attention")
        return activations.because("auto: the model's dtype")

    def skipped_layers(self) -> Value[tuple[str, ...]]:
        """Layers whose cache is not quantized: their numbers, or `sliding_window`."""
        value = self.read.deployment.fields.get(self.read.path("kv_cache_dtype_skip_layers"))
        if value is None:
            return derived((), self.read.place, self.why)
        return value.map(lambda node: _words(to_plain(node)))

    def attention_backend(self) -> Value[str]:
        """The backend that an option or, before 0.15, the environment names; "": the engine's."""
        read = self.read
        for path in (
            read.path("attention_backend"),
            read.path("attention_config", "backend"),
            read.path("attention_config.backend"),
        ):
            found = read.deployment.text(*path)
            if found is not None:
                return found.map(lambda word: "" if word.lower() == "auto" else word.upper())
        named = read.env("VLLM_ATTENTION_BACKEND") if self.version < (0, 15, 0) else None
        return derived((named or "").upper().removesuffix("_VLLM_V1"), read.place, self.why)

    def connector(self) -> str | None:
        """The KV connector: "" when one is set up that is not named; None without."""
        read = self.read
        named = read.deployment.text(*read.path("kv_transfer_config", "kv_connector"))
        if named is not None:
            return named.either("")
        if read.has("kv_transfer_config"):
            return ""
        offloaded = read.deployment.number(*read.path("kv_offloading_size"))
        if offloaded is None or offloaded.either(1.0) == 0:
            return None
        backend = read.text("kv_offloading_backend", "native", self.why).either("")
        return "OffloadingConnector" if backend == "native" else ""

    def hybrid_manager(self) -> Value[bool]:
        """Whether windows and states get block tables of their own: from 0.9.1, in V1.

        A connector that does not know them, KV events before 0.20, chunked attention and devices
        without support turn it off. From 0.13 an explicit wish stands against a connector.
        """
        written = self.read.flag("disable_hybrid_kv_cache_manager", False, self.why)
        place = written.origin.place
        if not self.v1 or self.version < (0, 9, 1):
            return derived(False, place, "this release has no hybrid KV manager")
        if not written.known or written.get():
            return written.map(lambda off: not off)
        wished = self.read.has("disable_hybrid_kv_cache_manager") and self.version >= (0, 13, 0)
        for off, why in (
            (not self._device_has_manager(), "the device is not supported"),
            (not wished and self._connector_turns_off(), "the KV connector"),
            (self.version < (0, 20, 0) and self.read.has("kv_events_config"), "KV events"),
            (self._chunks_turn_off(), "chunked attention"),
        ):
            if off:
                return derived(False, place, f"the hybrid KV manager is off: {why}")
        return derived(True, place, self.why)

    def _device_has_manager(self) -> bool:
        vendor = self.accelerator.vendor if self.accelerator is not None else "nvidia"
        return vendor in ("nvidia", "amd") or (vendor == "intel" and self.version >= (0, 11, 0))

    def _connector_turns_off(self) -> bool:
        name = self.connector()
        if name is None:
            return False
        since = HYBRID_CONNECTORS.get(name)
        return since is None or self.version < since

    def _chunks_turn_off(self) -> bool:
        if "chunked" not in self._caches() or self.version < (0, 10, 0):
            return False
        method = self.read.deployment.text(*self.read.path("speculative_config", "method"))
        if method is not None and method.either("").lower() in ("eagle", "eagle3", "mtp"):
            return True
        if self.version < (0, 10, 1):
            return False
        told = self.read.env(ALLOW_CHUNKED)
        return self.version < (0, 14, 0) if told is None else told.strip() in ("0", "")

    def mamba_cache_mode(self) -> Value[str]:
        """Which states are kept for prefixes: none, those of the last block, all.

        Prefix caching is what asks for them: off by default with recurrent layers before 0.26,
        and before 0.15 only for models that can keep every state.
        """
        read, version = self.read, self.version
        written = read.text("mamba_cache_mode", "none", self.why)
        cached = read.flag("enable_prefix_caching", self._caches_prefixes(), self.why)
        if "state" not in self._caches() or version < (0, 11, 1):
            return derived("none", read.place, self.why)
        if not cached.known or not written.known:
            open_one = cached if not cached.known else written
            return unknown(open_one.origin.place, open_one.origin.why or "mamba_cache_mode")
        if not cached.get():
            return derived("none", read.place, "prefix caching is off")
        keeps = version < KEEPS_EVERY_STATE.get(self._family, (0,))
        if version < (0, 15, 0):
            return derived("all" if keeps else "none", read.place, "prefix caching")
        mode = written.get()
        if mode == "none":
            drafted = read.has("speculative_config") and (0, 20, 0) <= version < (0, 21, 0)
            mode = "all" if version < (0, 28, 0) and not drafted else "align"
        return derived("align" if mode == "all" and not keeps else mode, read.place, "")

    def _caches_prefixes(self) -> bool:
        attends = bool(self._caches() - {"state"})
        return self.version >= (0, 26, 0) and attends and not self.pooling

    def async_scheduling(self) -> Value[bool]:
        """On from 0.14, except where pooling, some drafts or Ray stand against it."""
        read = self.read
        drafted = self._draft_keeps_up()
        backend = read.text("distributed_executor_backend", "mp", self.why).either("mp")
        on = self.version >= (0, 14, 0) and not self.pooling and drafted and backend != "ray"
        return read.flag("async_scheduling", on, self.why)

    def _draft_keeps_up(self) -> bool:
        """Whether the draft, if any, is proposed on the device between steps."""
        text, path = self.read.deployment.text, self.read.path
        method = text(*path("speculative_config", "method"))
        if method is not None:
            word = method.either("").lower()
            return word in ASYNCHRONOUS_DRAFTS or word.endswith("_mtp")
        model = text(*path("speculative_config", "model"))
        return model is None or any(
            word in model.either("").lower() for word in ASYNCHRONOUS_DRAFTS
        )

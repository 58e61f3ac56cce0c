"""What TensorRT-LLM makes of its options: a neutral plan with every default explained."""

from __future__ import annotations

from typing import Any

from capcheck import Accelerator, MemoryPolicy, Model, Plan, Site, Value, default, derived, unknown
from capcheck_tensorrt_llm import defaults
from capcheck_tensorrt_llm.drafts import draft_of, draft_tokens
from capcheck_tensorrt_llm.reading import FRACTION, KV, Options
from capcheck_tensorrt_llm.releases import BENCH_PYTORCH, OLDEST, PYTORCH, REPLACES, STRICT_MERGE

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
KV_DTYPES = {"fp8": "fp8_e4m3", "nvfp4": "nvfp4", **DTYPES}
MODEL_UNKNOWN = "the model is not known"


class Planner:
    """One site's plan, field by field."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.version = site.release.version
        self.options = Options(site.deployment, self.version)
        self.place = self.options.place
        self.why = f"TensorRT-LLM {site.release.text} default"
        self.model: Model | None = site.model.either(None)
        self.accelerator: Accelerator | None = site.accelerator.either(None)

    def plan(self) -> Plan:
        """The whole plan."""
        ranks = self.size("tensor_parallel_size", 1)
        spread = self.flag("enable_attention_dp", False)
        length, batch = self.length(), self.size("max_batch_size", defaults.BATCH)
        draft = draft_of(self.options)
        one = default(1, self.place, "TensorRT-LLM has none")
        return Plan(
            tensor=self.attention_ranks(ranks, spread, alone=True),
            pipeline=self.size("pipeline_parallel_size", 1),
            data=self.attention_ranks(ranks, spread, alone=False),
            expert=self.expert(ranks, spread),
            context=one if not self.options.has("context_parallel_size")
            else self.size("context_parallel_size", 1),
            max_request_tokens=length,
            max_sequences=batch,
            max_step_tokens=self.step_tokens(length, batch),
            weight_dtype=self.dtype(),
            kv_dtype=self.kv_dtype(),
            memory=self.fraction().map(lambda part: MemoryPolicy("fraction of free", part)),
            graphs=self.graphs(),
            chunked_prefill=self.flag("enable_chunked_prefill", False),
            prefix_caching=self._flag_in(KV, "enable_block_reuse", True),
            draft=draft,
            draft_tokens=draft_tokens(self.options, draft),
            extra=self.extra(ranks, spread),
        )  # fmt: skip

    def _or(self, value: Value[Any] | None, otherwise: Any) -> Value[Any]:
        if value is not None:
            return value
        if self.options.reader.is_open:
            lost = self.options.reader.settle(None, default(otherwise, self.place, self.why))
            return Value((), lost.origin)
        return default(otherwise, self.place, self.why)

    def size(self, name: str, otherwise: int) -> Value[int]:
        """An option that counts something: less than one of it is no size."""
        value: Value[int] = self._or(self.options.count(name), otherwise)
        if value.known and value.get() < 1:
            return Value((), value.origin._replace(why=f"{name} is below 1"))
        return value

    def flag(self, name: str, otherwise: bool) -> Value[bool]:
        """A switch."""
        return self._or(self.options.flag(name), otherwise)

    def _flag_in(self, name: str, key: str, otherwise: bool) -> Value[bool]:
        return self._or(self.options.flag(name, key), otherwise)

    def attention_ranks(self, ranks: Value[int], spread: Value[bool], *, alone: bool) -> Value[int]:
        """With attention data parallelism every rank serves requests of its own, unsplit.

        `alone`: the devices that one request's attention is split over; else the ranks.
        """
        if not spread.known:
            return Value((), spread.origin)
        if not spread.get():
            return ranks if alone else default(1, self.place, self.why)
        return derived(1, spread.place, "enable_attention_dp") if alone else ranks

    def expert(self, ranks: Value[int], spread: Value[bool]) -> Value[int]:
        """Devices that share the experts; all ranks where attention is data parallel."""
        given = self.options.count("moe_expert_parallel_size")
        if given is not None and (not given.known or given.get() > 1):
            return given
        if spread.either(False) and ranks.known:
            return derived(ranks.get(), spread.place, "enable_attention_dp")
        return default(1, self.place, self.why)

    def length(self) -> Value[int]:
        """max_seq_len, at most what the model supports."""
        given = self.options.count("max_seq_len")
        if given is not None and given.known and given.get() < 1:
            return Value((), given.origin._replace(why="max_seq_len is below 1"))
        if given is None and self.options.reader.is_open:
            return self._or(None, 1)
        most = defaults.positions(self.model.architecture) if self.model is not None else None
        if given is not None:
            lifted = self.site.deployment.flag("engine", "env", "TLLM_ALLOW_LONG_MAX_MODEL_LEN")
            if most is None or self._doubtful() or (lifted is not None and lifted.either(True)):
                return given
            return given.map(lambda tokens: min(tokens, most))
        if self.model is None:
            return unknown(self.place, f"max_seq_len is absent and {MODEL_UNKNOWN}")
        if most is None:
            return unknown(self.place, "the model's configuration names no context length")
        return default(most, self.place, f"{self.model.name}'s full length")

    def _doubtful(self) -> bool:
        remarks = self.model.may_differ if self.model is not None else ()
        return any("position" in one for one in remarks)

    def step_tokens(self, length: Value[int], batch: Value[int]) -> Value[int]:
        """max_num_tokens, at most every sequence at full length."""
        tokens = self.size("max_num_tokens", defaults.STEP_TOKENS)
        if tokens.known and length.known and batch.known:
            return tokens.map(lambda count: min(count, length.get() * batch.get()))
        return tokens

    def dtype(self) -> Value[str]:
        """The dtype of activations and unquantized weights; `auto` is the checkpoint's."""
        given = self.options.text("dtype")
        if given is not None and given.either("auto") != "auto":
            return given.map(lambda word: DTYPES.get(word, word))
        if self.model is None:
            return unknown(self.place, f"dtype auto: {MODEL_UNKNOWN}")
        stored = self.model.architecture.dtype or "bf16"
        old = self.accelerator is not None and "bf16" not in self.accelerator.features
        return default("fp16" if old else stored, self.place, "auto: the checkpoint's dtype")

    def kv_dtype(self) -> Value[str]:
        """The KV cache's dtype; `auto` is what the checkpoint's quantization says."""
        given = self.options.text(KV, "dtype") or self.options.text("kv_cache_dtype")
        if given is not None and given.either("auto") != "auto":
            return given.map(lambda word: KV_DTYPES.get(word, word))
        if self.model is None:
            return self.dtype()
        known = self.model.scheme.either(None)
        if known is not None and known.kv:
            return default(known.kv, self.place, "the checkpoint's KV scheme")
        if known is not None and known.is_guess and known.weight in ("fp8_e4m3", "nvfp4"):
            why = "auto: the checkpoint's own quantization, which was not read, decides"
            plain = self.dtype()
            return Value(("fp8_e4m3", *plain.options), unknown(self.place, why).origin)
        return self.dtype().because("auto: the model's dtype")

    def fraction(self) -> Value[float]:
        """The share of free memory: kv_cache_config's, else the command line's.

        Up to 1.1 a kv_cache_config replaces all that the command line says of the KV cache.
        """
        inside = self.options.number(KV, "free_gpu_memory_fraction")
        if inside is not None:
            return inside
        given = self.options.number(FRACTION)
        if given is not None and self.options.replaced():
            if self.version < REPLACES:
                why = f"kv_cache_config replaces {given.origin.word or FRACTION}"
                return default(defaults.FRACTION, self.place, why)
            if self.version < STRICT_MERGE:
                why = "whether kv_cache_config replaces it depends on the release"
                return Value((), given.origin._replace(why=why))
        return self._or(given, defaults.FRACTION)

    def backend(self) -> Value[str]:
        """What runs the model: pytorch, or an engine that is built at start."""
        given = self.options.text("backend")
        if given is not None:
            return given.map(lambda word: "tensorrt" if word == "trt" else word)
        if self.version < OLDEST:
            return unknown(self.place, self.site.release.why)
        first = BENCH_PYTORCH if self.options.bench() else PYTORCH
        word = "pytorch" if self.version >= first else "tensorrt"
        return self._or(None, word)

    def graphs(self) -> Value[bool]:
        """CUDA graphs of decoding: on from 1.0 unless cuda_graph_config is null."""
        old = self.options.flag("use_cuda_graph")
        if old is not None:
            return old
        stated = self.options.has("cuda_graph_config")
        return self._or(None, stated or self.version >= PYTORCH)

    def extra(self, ranks: Value[int], spread: Value[bool]) -> dict[str, Value[Any]]:
        """What only this engine has and its accounting needs."""
        options = self.options
        found: dict[str, Value[Any]] = {
            "backend": self.backend(),
            "ranks": ranks,
            "attention_dp": spread,
            "tokens_per_block": self._or(
                options.count(KV, "tokens_per_block"), defaults.block_tokens(self.version)
            ),
            "strict_window": self.flag("fail_fast_on_attention_window_too_large", False),
        }
        for key in ("max_tokens", "max_gpu_total_bytes"):
            given = options.count(KV, key)
            if given is not None:
                found[key] = given
        return found

"""What vLLM will do with its options: a neutral plan with every default explained."""

from __future__ import annotations

from typing import Any

from capcheck import Accelerator, MemoryPolicy, Model, Plan, Release, Site, Value, default, derived
from capcheck.option_reader import OptionReader
from capcheck.values import Origin, unknown
from capcheck_vllm import defaults, offloading, spreading
from capcheck_vllm.generation import generation
from capcheck_vllm.plan_kv import KvOptions
from capcheck_vllm.table import TABLE

DTYPE_WORDS = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
}  # fmt: skip

MISNAMED = "chunked_prefill_enabled"  # an attribute of vLLM's own configuration
NOT_GIVEN = "num_speculative_tokens is not given"


def _generation(release: Release) -> str:
    return f"vLLM {release.text} default"


class Planner:
    """One site's plan, field by field."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.release = site.release
        self.version = site.release.version
        self.read = OptionReader(site.deployment, TABLE, self.version)
        self.why = _generation(site.release)
        self.model: Model | None = site.model.either(None)
        self.accelerator: Accelerator | None = site.accelerator.either(None)
        self.generation = generation(self.version, self.read, self.accelerator, self.model)
        self.v1 = self.generation.v1

    def _from(self, why: str, options: tuple[Any, ...]) -> Value[Any]:
        return Value(options, Origin("default", self.read.place, why=why))

    def size(self, name: str, otherwise: int, why: str = "") -> Value[int]:
        """An option that counts something: less than one of it is no size."""
        value = self.read.count(name, otherwise, why or self.why)
        if value.known and value.get() < 1:
            return Value((), value.origin._replace(why=f"{name} is below 1"))
        return value

    def plan(self) -> Plan:
        """The whole plan."""
        read = self.read
        tensor = self.size("tensor_parallel_size", 1)
        pipeline = self.size("pipeline_parallel_size", 1)
        data = self.size("data_parallel_size", 1)
        length = self.length()
        chunked = self.chunked_prefill(length)
        batched = self.batched_tokens(length, chunked)
        sequences = self.sequences(batched)
        draft = self.draft()
        return Plan(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            expert=self.expert(tensor, data),
            context=self.size("decode_context_parallel_size", 1),
            max_request_tokens=length,
            max_sequences=sequences,
            max_step_tokens=batched,
            weight_dtype=self.dtype(),
            kv_dtype=self.kv_dtype(),
            memory=self.memory(),
            graphs=read.flag("enforce_eager", False, self.why).map(lambda eager: not eager),
            chunked_prefill=chunked,
            prefix_caching=read.flag("enable_prefix_caching", self.v1, self.why),
            draft=draft,
            draft_tokens=self.draft_tokens(draft),
            extra=self.extra(),
            host_weights=self.offloaded(),
        )

    def expert(self, tensor: Value[int], data: Value[int]) -> Value[int]:
        """Devices that share the experts: TP x DP with expert parallel, else one group."""
        on = self.read.flag("enable_expert_parallel", False, self.why)
        if not (on.known and tensor.known and data.known):
            return Value((), (on if not on.known else tensor).origin)
        size = tensor.get() * data.get() if on.get() else 1
        return derived(size, on.origin.place, "tensor x data parallel" if on.get() else self.why)

    def length(self) -> Value[int]:
        """max_model_len, or the model's own length; `auto` is fitted to memory."""
        written = self.read.written_text("max_model_len")
        if written is not None and written.either("") in ("auto", "-1"):
            return Value((), written.origin._replace(why="auto: fitted to the memory at start"))
        if self.read.has("max_model_len") or (written is not None and written.unknown):
            return self.size("max_model_len", 1)
        if self.model is None:
            return unknown(self.read.place, "max_model_len is absent and the model is not known")
        positions = self.positions(self.model)
        other = next((one for one in self.model.may_differ if "position" in one), None)
        if other is not None:
            why = f"max_model_len is absent and {self.model.name} was not seen: {other}"
            return unknown(self.read.place, why)
        if positions is None:
            return unknown(self.read.place, "the model's configuration names no context length")
        return default(positions, self.read.place, f"{self.model.name}'s full length")

    def positions(self, model: Model) -> int | None:
        """The context length vLLM serves when nothing is asked, from the configuration.

        From 0.30 yarn's factor is not applied to a length that already carries it; models with
        a long-context rope start at their original length.
        """
        built = model.architecture
        if built.start_positions is not None:
            return built.start_positions
        if self.version >= (0, 30, 0) and built.most_positions_without_yarn is not None:
            return built.most_positions_without_yarn
        return built.max_positions

    def chunked_prefill(self, length: Value[int]) -> Value[bool]:
        """On in V1; V0 turned it on by itself for long text-only models."""
        if self.v1:
            return self.read.flag("enable_chunked_prefill", True, self.why)
        if self.read.has(MISNAMED):
            why = f"{MISNAMED} is no option, but enable_chunked_prefill may be meant"
            return unknown(self.read.place, why)
        if not length.known or self.model is None:
            return self.read.flag("enable_chunked_prefill", False, self.why)
        model = self.model.architecture
        sliding = any(layer.mixer.kind == "sliding" for layer in model.layers)
        on = defaults.v0_chunked_prefill(length.get(), model.vision is not None, sliding)
        return self.read.flag("enable_chunked_prefill", on, self.why)

    def batched_tokens(self, length: Value[int], chunked: Value[bool]) -> Value[int]:
        """The token budget of one step."""
        if self.read.has("max_num_batched_tokens"):
            return self.size("max_num_batched_tokens", 1)
        missing = self._hardware_missing("max_num_batched_tokens")
        if not self.v1 or not chunked.either(True):
            if not (length.known and chunked.known):
                return self._from("the length is not known", ())
            vision = self.model is not None and self.model.architecture.vision is not None
            tokens = defaults.v0_batched_tokens(self.version, chunked.get(), length.get(), vision)
            return self.read.count("max_num_batched_tokens", tokens, self.why)
        if missing is not None:
            return missing
        assert self.accelerator is not None
        tokens = defaults.max_num_batched_tokens(self.version, self.accelerator)
        return self.read.count("max_num_batched_tokens", self._capped(tokens, length), self.why)

    def _capped(self, tokens: int, length: Value[int]) -> int:
        """A default never exceeds max_num_seqs x max_model_len."""
        if self.accelerator is None or not length.known:
            return tokens
        written = self.read.written_count("max_num_seqs")
        seqs = written.either(None) if written is not None else None
        seqs = seqs or defaults.max_num_seqs(self.version, self.accelerator)
        return min(tokens, seqs * length.get())

    def _hardware_missing(self, option: str) -> Value[int] | None:
        if self.accelerator is None:
            why = f"{option}'s default depends on the accelerator, which is not known"
            return self._from(why, ())
        return None

    def sequences(self, batched: Value[int]) -> Value[int]:
        """max_num_seqs, from 0.10.1 at most the step's token budget."""
        if self.read.has("max_num_seqs"):
            return self.size("max_num_seqs", 1)
        if not self.v1:
            return self.read.count("max_num_seqs", 256, self.why)
        missing = self._hardware_missing("max_num_seqs")
        if missing is not None:
            return missing
        assert self.accelerator is not None
        seqs = defaults.max_num_seqs(self.version, self.accelerator)
        if self.version >= (0, 10, 1) and batched.known:
            seqs = min(seqs, batched.get())
        return self.read.count("max_num_seqs", seqs, self.why)

    def dtype(self) -> Value[str]:
        """The dtype of activations and unquantized weights."""
        written = self.read.text("dtype", "auto", self.why)
        if not written.known or written.get() != "auto":
            return written.map(lambda word: DTYPE_WORDS.get(word, word))
        if self.model is None:
            return unknown(written.origin.place, "dtype auto: the model is not known")
        stored = self.model.architecture.dtype or "bf16"
        capability = self.accelerator.capability if self.accelerator is not None else None
        old = self.accelerator is not None and "bf16" not in self.accelerator.features
        if stored == "fp32":
            stored = "fp16" if old else "bf16"
        elif stored == "bf16" and old and capability is not None and self.version >= (0, 9, 2):
            stored = "fp16"
        return default(stored, written.origin.place, "auto: the checkpoint's dtype")

    def kv_dtype(self) -> Value[str]:
        """The KV-cache dtype."""
        return self._kv().dtype(self.dtype())

    def _kv(self) -> KvOptions:
        pooling = bool(self.pooling().either(False))
        return KvOptions(
            self.read, self.version, self.v1, self.model, self.accelerator, pooling, self.why
        )

    def memory(self) -> Value[MemoryPolicy]:
        """A share of the total, or from 0.10.2 exactly kv_cache_memory_bytes; 0 is none."""
        exact = self.read.written_count("kv_cache_memory_bytes")
        if exact is not None and exact.either(None) != 0:
            if exact.known and exact.get() < 0:
                return unknown(exact.origin.place, "kv_cache_memory_bytes is below 0")
            return exact.map(lambda size: MemoryPolicy("bytes", float(size)))
        share = self.read.number(
            "gpu_memory_utilization", defaults.utilization(self.version), self.why
        )
        if share.known and share.get() <= 0:
            return unknown(share.origin.place, "gpu_memory_utilization is not above 0")
        return share.map(lambda part: MemoryPolicy("fraction of total", part))

    def draft(self) -> Value[str] | None:
        """The draft model of speculative decoding; None without speculation."""
        read = self.read
        for name, more in (("speculative_config", ("model",)), ("speculative_model", ())):
            found = read.deployment.text(*read.path(name, *more))
            if found is not None:
                return found
        return read.deployment.text(*read.path("speculative_config", "method"))

    def draft_tokens(self, draft: Value[str] | None) -> Value[int] | None:
        """Tokens that one step proposes."""
        if draft is None:
            return None
        read = self.read
        for path in (
            read.path("speculative_config", "num_speculative_tokens"),
            read.path("num_speculative_tokens"),
        ):
            found = read.deployment.count(*path)
            if found is not None:
                return found
        return unknown(draft.origin.place, NOT_GIVEN)

    def offloaded(self) -> Value[bool]:
        """Whether weights are read over the host's link in each step."""
        return self.read.number("cpu_offload_gb", 0.0, self.why).map(bool)

    def extra(self) -> dict[str, Value[Any]]:
        """What only vLLM has and its accounting needs."""
        read, why = self.read, self.why
        flags = {
            "enable_lora": False,
            "skip_mm_profiling": False,
            "language_model_only": False,
            "disable_sliding_window": False,
        }
        found: dict[str, Value[Any]] = {
            name: read.flag(name, otherwise, why) for name, otherwise in flags.items()
        }
        found.update(self._kv().extra())
        found["max_lora_rank"] = read.count("max_lora_rank", 16, why)
        found["max_loras"] = read.count("max_loras", 1, why)
        found["cpu_offload_gb"] = read.number("cpu_offload_gb", 0.0, why)
        found["num_gpu_blocks_override"] = read.count("num_gpu_blocks_override", 0, why)
        found["quantization"] = read.text("quantization", "", why)
        found["v1"] = derived(self.v1, read.place, self.generation.because or why)
        found["pooling"] = self.pooling()
        return {**found, **spreading.options(read, why), **offloading.options(read, why)}

    def pooling(self) -> Value[bool]:
        """Whether the model embeds or scores: nothing is sampled."""
        read = self.read
        runner = read.text("runner", "auto", self.why)
        task = read.text("task", "auto", self.why)
        if runner.known and runner.get() != "auto":
            return runner.map(lambda word: word == "pooling")
        if task.known and task.get() not in ("auto", "generate"):
            return task.map(
                lambda word: word in ("embed", "embedding", "score", "classify", "reward")
            )
        name = self.model.name.lower() if self.model is not None else ""
        embeds = any(word in name for word in ("embedding", "reranker", "-embed", "bge-", "gte-"))
        return derived(embeds, read.place, "the model's name")

"""What SGLang will do with its options: a neutral plan with every default explained."""

from __future__ import annotations

from typing import Any

from capcheck import Accelerator, MemoryPolicy, Model, Plan, Site, Value, default, derived, unknown
from capcheck.option_reader import OptionReader
from capcheck_sglang import defaults, graphs
from capcheck_sglang.drafting import Drafting
from capcheck_sglang.table import TABLE

MIB = 2.0**20
DTYPE_WORDS = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
}  # fmt: skip
KV_WORDS = {"bfloat16": "bf16", "mxfp8": "fp8_e4m3", "fp4_e2m1": "nvfp4"}
SPARSE = ("deepseek_v32", "glm_moe_dsa")


class Planner:
    """One site's plan, field by field."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.version = site.release.version
        self.read = OptionReader(site.deployment, TABLE, self.version)
        self.why = f"SGLang {site.release.text} default"
        self.model: Model | None = site.model.either(None)
        self.accelerator: Accelerator | None = site.accelerator.either(None)
        self.tensor = self.size("tp_size", 1)
        self.pipeline = self.size("pp_size", 1)
        self.data = self.size("dp_size", 1)
        self.drafting = Drafting(self.read, self.version, self.model, self.why)

    def size(self, name: str, otherwise: int) -> Value[int]:
        """An option that counts something: less than one of it is no size."""
        value = self.read.count(name, otherwise, self.why)
        if value.known and value.get() < 1:
            return Value((), value.origin._replace(why=f"{name} is below 1"))
        return value

    def plan(self) -> Plan:
        """The whole plan. Ranks of data-parallel attention share the tensor-parallel devices."""
        ranks = self.attention_ranks()
        chunk = self.chunk(ranks)
        inside = ranks.either(1) != 1
        return Plan(
            tensor=self._attention_tensor(ranks),
            pipeline=self.pipeline,
            data=ranks if inside or ranks.unknown else self.data,
            expert=self.expert(inside),
            context=self.size("dcp_size", 1),
            max_request_tokens=self.length(),
            max_sequences=self.sequences(ranks),
            max_step_tokens=chunk,
            weight_dtype=self.dtype(),
            kv_dtype=self.kv_dtype(),
            memory=self.memory(ranks),
            graphs=self.graphs(),
            chunked_prefill=self._chunked(),
            prefix_caching=self.read.flag("disable_radix_cache", False, self.why).map(_opposite),
            draft=self.drafting.name(),
            draft_tokens=self.drafting.tokens(),
            extra=self.extra(ranks),
            poll_steps=self.size("scheduler_recv_interval", 1),
            host_weights=self.read.number("cpu_offload_gb", 0.0, self.why).map(bool),
        )

    def attention_ranks(self) -> Value[int]:
        """Data-parallel ranks of attention inside tensor parallelism; 1: none."""
        stated = self.size("attn_dp_size", 1)
        if stated.known and stated.get() > 1:
            return stated
        on = self.read.flag("enable_dp_attention", False, self.why)
        if not (on.known and self.data.known and self.tensor.known):
            return Value(
                (), next(one for one in (on, self.data, self.tensor) if one.unknown).origin
            )
        whole = self.version < (0, 4, 1)  # then every device was a rank of its own
        if on.get():
            return self.tensor if whole else self.data
        return derived(1, on.origin.place, self.why)

    def _attention_tensor(self, ranks: Value[int]) -> Value[int]:
        if not (ranks.known and self.tensor.known):
            return Value((), (ranks if ranks.unknown else self.tensor).origin)
        return self.tensor.map(lambda size: max(1, size // ranks.get()))

    def expert(self, inside: bool) -> Value[int]:
        """Devices that share the experts."""
        read = self.read
        everywhere = any(
            read.flag(name, False).either(False) for name in ("enable_ep_moe", "enable_deepep_moe")
        )
        backend = read.text("moe_a2a_backend", "none", self.why).either("none")
        if everywhere or backend not in ("none", None) or inside:
            return self.tensor.because("experts are spread over all tensor-parallel devices")
        return self.size("ep_size", 1)

    def length(self) -> Value[int]:
        """context_length, or the model's own."""
        if self.read.has("context_length") or self.read.is_open:
            return self.size("context_length", 1)
        if self.model is None:
            return unknown(self.read.place, "context_length is absent and the model is not known")
        built = self.model.architecture
        positions = built.most_positions_without_yarn or built.max_positions
        other = next((one for one in self.model.may_differ if "position" in one), None)
        if other is not None:
            why = f"context_length is absent and {self.model.name} was not seen: {other}"
            return unknown(self.read.place, why)
        if positions is None:
            return unknown(self.read.place, "the model's configuration names no context length")
        return default(positions, self.read.place, f"{self.model.name}'s full length")

    def _mib(self) -> float | None:
        if self.accelerator is None:
            return None
        part = self.accelerator
        return (part.visible_bytes or part.nominal_bytes * part.visible_factor) / MIB

    def _by_device(self, name: str) -> Value[Any]:
        return unknown(self.read.place, f"{name}'s default depends on the accelerator")

    def _chunked(self) -> Value[bool]:
        return self.read.count("chunked_prefill_size", 1, self.why).map(lambda size: size > 0)

    def whole_chunk(self) -> Value[int]:
        """chunked_prefill_size as written or by device; -1: prompts are not cut."""
        mib = self._mib()
        if self.read.has("chunked_prefill_size") or mib is not None:
            otherwise = defaults.chunked_prefill(self.version, mib or 0.0)
            return self.read.count("chunked_prefill_size", otherwise, self.why)
        return self._by_device("chunked_prefill_size")

    def chunk(self, ranks: Value[int]) -> Value[int]:
        """Prompt tokens of one step on one rank."""
        whole = self.whole_chunk()
        if whole.known and whole.get() <= 0:
            return self.size("max_prefill_tokens", 16384)
        parts = ranks.either(1) or 1
        return whole.map(lambda size: max(1, size // parts))

    def graph_batch(self) -> Value[int]:
        """The largest batch of a decode graph."""
        read = self.read
        for name in ("cuda_graph_bs", "cuda_graph_bs_decode"):
            sizes = read.deployment.fields.get(read.path(name)) if read.has(name) else None
            counts = graphs.numbers(sizes)
            if sizes is not None and counts:
                return Value((max(counts),), sizes.origin)
        for name in ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"):
            if read.has(name):
                return self.size(name, 1)
        mib = self._mib()
        if mib is None or not self.tensor.known:
            return self._by_device("cuda_graph_max_bs")
        most = defaults.graph_batch(self.version, mib, self.tensor.get())
        asked = read.written_count("max_running_requests")
        if asked is not None and asked.known and self.version >= (0, 5, 19):
            most = min(most, max(1, asked.get()))
        return default(most, read.place, self.why)

    def graphs(self) -> Value[bool]:
        """Whether decode graphs are captured."""
        backend = self.read.text("cuda_graph_backend_decode", "full").either("full")
        if backend == "disabled":
            return self.read.text("cuda_graph_backend_decode", "full").map(lambda _: False)
        return self.read.flag("disable_cuda_graph", False, self.why).map(_opposite)

    def sequences(self, ranks: Value[int]) -> Value[int]:
        """max_running_requests of one rank; by default 2,048 to 4,096 as the pool allows."""
        otherwise = 48 if self.drafting.limits_requests() else 2048
        whole = self.read.count("max_running_requests", otherwise, self.why)
        if whole.known and whole.get() < 1:
            return Value((), whole.origin._replace(why="max_running_requests is below 1"))
        return whole.map(lambda most: max(1, most // (ranks.either(1) or 1)))

    def dtype(self) -> Value[str]:
        """The dtype of activations and unquantized weights."""
        written = self.read.text("dtype", "auto", self.why)
        if not written.known or written.get() != "auto":
            return written.map(lambda word: DTYPE_WORDS.get(word, word))
        if self.model is None:
            return unknown(written.origin.place, "dtype auto: the model is not known")
        stored = self.model.architecture.dtype or "bf16"
        part = self.accelerator
        if stored == "fp32":
            stored = "bf16" if self.model.architecture.family.startswith("gemma") else "fp16"
        if part is not None and part.vendor == "nvidia" and "bf16" not in part.features:
            stored = "fp16"
        return default(stored, written.origin.place, "auto: the checkpoint's dtype")

    def kv_dtype(self) -> Value[str]:
        """The dtype of cells; `auto` follows the checkpoint."""
        written = self.read.text("kv_cache_dtype", "auto", self.why)
        if not written.known or written.get() != "auto":
            return written.map(lambda word: KV_WORDS.get(word, word))
        model, part = self.model, self.accelerator
        if model is None:
            return unknown(written.origin.place, "kv_cache_dtype auto: the model is not known")
        scheme = model.scheme.either(None)
        # A name without its owner stands for several uploads, and not all of them ask for it.
        own = scheme is not None and scheme.seen == "config" and "/" in model.name
        if scheme is not None and own and scheme.kv and "modelopt" in scheme.method:
            return default(scheme.kv, written.origin.place, "the checkpoint's KV scheme")
        blackwell = part is not None and part.capability in (10.0, 10.3)
        if model.architecture.family in SPARSE and blackwell:
            return default("fp8_e4m3", written.origin.place, "sparse attention on this device")
        return self.dtype().because("auto: the model's dtype")

    def memory(self, ranks: Value[int]) -> Value[MemoryPolicy]:
        """The share of what is free before loading that weights and cells may take."""
        share = self.read.number("mem_fraction_static", 0.0, self.why)
        written = self.read.has("mem_fraction_static") or self.read.is_open
        sight = graphs.encoder(self.read, self.model) is not None
        if written:
            factor = defaults.vision_share(self.version) if sight else 1.0
            return share.map(lambda part: MemoryPolicy("static fraction", part * factor))
        fraction = self._default_fraction(ranks)
        if fraction is None:
            return self._by_device("mem_fraction_static")
        if sight:
            fraction *= defaults.vision_share(self.version)
        return default(MemoryPolicy("static fraction", fraction), self.read.place, self.why)

    def _default_fraction(self, ranks: Value[int]) -> float | None:
        mib, chunk, batch = self._mib(), self.whole_chunk(), self.graph_batch()
        known = self.tensor.known and self.pipeline.known and ranks.known
        if mib is None or not (known and chunk.known and batch.known):
            return None
        layout = defaults.Layout(
            mib, self.tensor.get(), self.pipeline.get(), ranks.get(), chunk.get(),
            self.read.count("max_prefill_tokens", 16384).either(16384) or 16384,
            batch.get() if self.graphs().either(True) or self.version < (0, 5, 16) else 0,
            self.drafting.algorithm, graphs.prefill(self, chunk.get(), ranks.get()),
            graphs.latent(self.model), graphs.encoder(self.read, self.model),
            self.read.text("moe_a2a_backend", "none").either("none") == "deepep",
        )  # fmt: skip
        return defaults.static_fraction(self.version, layout)

    def extra(self, ranks: Value[int]) -> dict[str, Value[Any]]:
        """What only SGLang has and its accounting needs."""
        read, why = self.read, self.why
        names = ("max_total_tokens", "max_mamba_cache_size", "page_size")
        found: dict[str, Value[Any]] = {name: read.count(name, 0, why) for name in names}
        for name in (
            "disable_hybrid_swa_memory",
            "enable_dp_lm_head",
            "enable_mixed_chunk",
            "language_only",
        ):
            found[name] = read.flag(name, False, why)
        found["spare_experts"] = read.count("ep_num_redundant_experts", 0, why)
        found["swa_full_tokens_ratio"] = read.number("swa_full_tokens_ratio", self._ratio(), why)
        found["mamba_full_memory_ratio"] = read.number("mamba_full_memory_ratio", 0.9, why)
        found["cpu_offload_gb"] = read.number("cpu_offload_gb", 0.0, why)
        found["quantization"] = read.text("quantization", "", why)
        found["speculative_algorithm"] = derived(self.drafting.algorithm, read.place, why)
        found["all_tensor"], found["attention_ranks"] = self.tensor, ranks
        found["graph_batch"] = self.graph_batch()
        return found

    def _ratio(self) -> float:
        family = self.model.architecture.family if self.model is not None else ""
        return 0.1 if family.startswith(("deepseek_v4", "inkling")) else 0.8


def _opposite(on: bool) -> bool:
    return not on

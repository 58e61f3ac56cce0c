"""What Text Generation Inference makes of its options: a plan with every default explained."""

from __future__ import annotations

from typing import Any

from capcheck import Accelerator, MemoryPolicy, Model, Plan, Site, Value, default, derived, unknown
from capcheck_tgi import defaults
from capcheck_tgi.reading import Options
from capcheck_tgi.releases import CHUNKING, room

DTYPES = {"float16": "fp16", "bfloat16": "bf16"}
KV_DTYPES = {"fp8_e4m3fn": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"}
FITTED = "fitted to the memory at start"
NO_GRAPHS = ("bitsandbytes", "exl2")
OLD_NO_GRAPHS = (*NO_GRAPHS, "bitsandbytes-nf4", "bitsandbytes-fp4")


class Planner:
    """One site's plan, field by field."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.version = site.release.version
        self.options = Options(site.deployment, self.version)
        self.place = self.options.place
        self.why = f"Text Generation Inference {site.release.text} default"
        self.model: Model | None = site.model.either(None)
        self.accelerator: Accelerator | None = site.accelerator.either(None)
        self.chunks = self.version >= CHUNKING

    def plan(self) -> Plan:
        """The whole plan."""
        one = default(1, self.place, "Text Generation Inference has none")
        total = self.total_tokens()
        prefill = self.prefill_tokens(total)
        dtype = self.dtype()
        return Plan(
            tensor=self.shards(), pipeline=one, data=one, expert=one, context=one,
            max_request_tokens=total, max_sequences=self.sequences(), max_step_tokens=prefill,
            weight_dtype=dtype, kv_dtype=self.kv_dtype(dtype), memory=self.memory(),
            graphs=self.graphs(), chunked_prefill=default(self.chunks, self.place, self.why),
            prefix_caching=self.prefix_caching(), draft=None, draft_tokens=None,
            extra=self.extra(),
        )  # fmt: skip

    def shards(self) -> Value[int]:
        """num_shard, else every device that is visible."""
        given = self.options.count("num_shard")
        if given is not None:
            return self._size(given, "num_shard")
        sharded = self.options.flag("sharded")
        if sharded is not None and sharded.either(True) is False:
            return derived(1, sharded.place, "sharded is false")
        devices = self.site.deployment.count("hardware", "count")
        if devices is None:
            return unknown(self.place, "num_shard is absent, the visible devices are not known")
        return devices.because("num_shard is absent: every visible device")

    def _size(self, value: Value[int], name: str) -> Value[int]:
        if value.known and value.get() < 1:
            return Value((), value.origin._replace(why=f"{name} is below 1"))
        return value

    def input_tokens(self) -> Value[int] | None:
        """The longest prompt; None when it is fitted at start."""
        options = self.options
        given = options.count("max_input_tokens") or options.count("max_input_length")
        if given is not None:
            return self._size(given, "max_input_tokens")
        if self.chunks:
            return None
        if self.version < (2, 0, 0):
            return default(defaults.OLD_INPUT_TOKENS, self.place, self.why)
        return self._capped().map(lambda tokens: tokens - 1)

    def _capped(self) -> Value[int]:
        """2.x serves at most 4,096 tokens unless it is asked to."""
        if self.model is None:
            return unknown(self.place, "the length is absent and the model is not known")
        positions = self.model.architecture.max_positions or defaults.MOST_DEFAULT_TOKENS
        return derived(min(positions, defaults.MOST_DEFAULT_TOKENS), self.place, self.why)

    def total_tokens(self) -> Value[int]:
        """Prompt and answer of one request."""
        given = self.options.count("max_total_tokens")
        if given is not None:
            return self._size(given, "max_total_tokens")
        if self.chunks:
            return unknown(self.place, f"max_total_tokens is absent: {FITTED}")
        if self.version < (2, 0, 0):
            return default(defaults.OLD_TOTAL_TOKENS, self.place, self.why)
        return self._capped()

    def prefill_tokens(self, total: Value[int]) -> Value[int]:
        """Tokens of one prefill step: the size of the warm-up."""
        given = self.options.count("max_batch_prefill_tokens")
        if given is not None:
            return self._size(given, "max_batch_prefill_tokens")
        if self.version < (2, 0, 0):
            return default(defaults.OLD_PREFILL_TOKENS, self.place, self.why)
        if not self.chunks:
            return self._prefill_from_input()
        return self._prefill_by_compute()

    def _prefill_from_input(self) -> Value[int]:
        longest = self.input_tokens()
        assert longest is not None
        batch = self.options.count("max_batch_size")
        if batch is None:
            made = longest.map(lambda tokens: tokens + defaults.PREFILL_EDGE)
            return made.because("max_input_tokens + 50")
        batch = self._size(batch, "max_batch_size")
        if not (batch.known and longest.known):
            return Value((), batch.origin if not batch.known else longest.origin)
        return derived(
            batch.get() * longest.get(), batch.place, "max_batch_size x max_input_tokens"
        )

    def _prefill_by_compute(self) -> Value[int]:
        if self.model is None or self.accelerator is None:
            why = "max_batch_prefill_tokens is absent; it follows from the model and the devices"
            return unknown(self.place, why)
        shards, share = self.shards(), self._fraction()
        if not (shards.known and share.known):
            return Value((), (shards if not shards.known else share).origin)
        tokens = defaults.prefill_by_compute(
            self.version, self.model.architecture, self.accelerator, shards.get(), share.get()
        )
        return default(tokens, self.place, "what the devices compute while they read the weights")

    def sequences(self) -> Value[int]:
        """max_batch_size, else every request that is let in."""
        batch = self.options.count("max_batch_size")
        if batch is not None:
            return self._size(batch, "max_batch_size")
        given = self.options.count("max_concurrent_requests")
        if given is not None:
            return self._size(given, "max_concurrent_requests")
        return default(defaults.CONCURRENT_REQUESTS, self.place, self.why)

    def dtype(self) -> Value[str]:
        """float16 unless asked otherwise, whatever the checkpoint is stored in."""
        given = self.options.text("dtype")
        if given is not None:
            return given.map(lambda word: DTYPES.get(word, word))
        return default("fp16", self.place, self.why)

    def kv_dtype(self, dtype: Value[str]) -> Value[str]:
        """kv_cache_dtype, else the model's own."""
        given = self.options.text("kv_cache_dtype")
        if given is None:
            return dtype.because("the model's dtype")
        return given.map(lambda word: KV_DTYPES.get(word, DTYPES.get(word, word)))

    def _fraction(self) -> Value[float]:
        given = self.options.number("cuda_memory_fraction")
        return given if given is not None else default(1.0, self.place, self.why)

    def room(self) -> Value[float]:
        """The share that the warm-up does not keep back."""
        given = self.site.deployment.number("engine", "env", "TGI_WIGGLE_ROOM")
        return given if given is not None else default(room(self.version), self.place, self.why)

    def memory(self) -> Value[MemoryPolicy]:
        """A share of the device from 3.0 on, before of what the warm-up leaves free."""
        share, left = self._fraction(), self.room()
        if not (share.known and left.known):
            return Value((), (share if not share.known else left).origin)
        amount = share.get() * left.get()
        policy = MemoryPolicy("fraction of total" if self.chunks else "fraction of free", amount)
        return Value((policy,), share.origin)

    def quantize(self) -> str:
        """The quantization option's word; "" when it is absent."""
        given = self.options.text("quantize")
        return (given.either("") or "") if given is not None else ""

    def graphs(self) -> Value[bool]:
        """CUDA graphs from 2.0 on, unless cuda_graphs is 0 or the quantization forbids them."""
        given = self.options.text("cuda_graphs")
        if given is not None:
            return given.map(lambda words: any(defaults.graph_sizes(words)))
        without = NO_GRAPHS if self.chunks else OLD_NO_GRAPHS
        on = self.version >= (2, 0, 0) and self.quantize() not in without
        return default(on, self.place, self.why)

    def prefix_caching(self) -> Value[bool]:
        """On from 3.0 where the attention kernel can."""
        given = self.site.deployment.flag("engine", "env", "PREFIX_CACHING")
        return given if given is not None else default(self.chunks, self.place, self.why)

    def extra(self) -> dict[str, Value[Any]]:
        """What only this engine has and its accounting needs."""
        logprobs = self.options.flag("enable_prefill_logprobs")
        found: dict[str, Value[Any]] = {
            "fraction": self._fraction(),
            "room": self.room(),
            "attention": self.attention(),
            "prefill_logprobs": default(not self.chunks, self.place, self.why)
            if logprobs is None
            else logprobs,
        }
        longest = self.input_tokens()
        if longest is not None:
            found["max_input_tokens"] = longest
        quantize = self.options.text("quantize")
        if quantize is not None:
            found["quantization"] = quantize
        batch = self.options.count("max_batch_size")
        if batch is not None:
            found["max_batch_size"] = self._size(batch, "max_batch_size")
        return found

    def attention(self) -> Value[str]:
        """The attention kernel, which decides how many tokens a block holds."""
        given = self.site.deployment.text("engine", "env", "ATTENTION")
        if given is not None:
            return given
        if self.model is None or self.accelerator is None:
            return unknown(self.place, "the kernel follows from the model and the device")
        capability = self.accelerator.capability
        word = defaults.attention(self.version, self.model.architecture, capability)
        return default(word, self.place, self.why)

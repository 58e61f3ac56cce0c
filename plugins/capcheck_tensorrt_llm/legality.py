"""What TensorRT-LLM refuses at start, or of the declared requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from capcheck import ARGS, Case, Support, Unknown, Value
from capcheck.measure import show_count
from capcheck.source import to_plain
from capcheck.workload import lengths
from capcheck_tensorrt_llm import defaults
from capcheck_tensorrt_llm.reading import BENCH_FRACTION, FRACTION, KV, Options
from capcheck_tensorrt_llm.releases import REPLACES
from capcheck_tensorrt_llm.table import TABLE

CONFLICT, VALUE, DIVISIBLE = "options/conflict", "options/value", "sharding/divisible"
CONTEXT, SUPPORTED = "options/context-limit", "quantization/supported"
SIZES = (
    "tensor_parallel_size", "pipeline_parallel_size", "max_batch_size", "max_num_tokens",
    "max_seq_len",
)  # fmt: skip
KV_WORDS = ("auto", "fp8", "nvfp4")
MAPPINGS = (KV, "cuda_graph_config", "speculative_config")
OLDEST_BF16 = 8.0
UNREAD, EIGHT_BIT = frozenset({"awq", "bitsandbytes", "gptq"}), 8
LOADER_READ = (1, 3, 0)
TRANSFER_CHECKED = (1, 2, 0)  # from here on the transfer buffer wants whole blocks
SERVE_DASHES = (1, 4, 0)  # releases before were read

Check = Callable[[Case], Iterable[Support]]


def _options(case: Case) -> Options:
    return Options(case.deployment, case.release.version)


def _known(value: Value[int] | None) -> Value[int] | None:
    return value if value is not None and value.known else None


def sizes(case: Case) -> Iterator[Support]:
    """Options that count something and count less than one; shares outside of 0 to 1."""
    options = _options(case)
    for name in SIZES:
        value = _known(options.count(name))
        if value is not None:
            words = f"{name}: expected a whole number of at least 1"
            yield Support(VALUE, value.get() >= 1, value, words)
    for name, *more in ((KV, "free_gpu_memory_fraction"), (FRACTION,)):
        share = options.number(name, *more)
        if share is not None and share.known:
            word = more[0] if more else share.origin.word or name
            legal = 0 <= share.get() < 1
            yield Support(VALUE, legal, share, f"{word}: expected at least 0 and below 1")
    block = _known(options.count(KV, "tokens_per_block"))
    if block is not None:
        size = block.get()
        legal = size > 0 and size & (size - 1) == 0
        yield Support(VALUE, legal, block, f"tokens_per_block {size}: expected a power of two")


def mappings(case: Case) -> Iterator[Support]:
    """Options that hold options: a number or a list in their place has none of their keys."""
    options = _options(case)
    for name in MAPPINGS:
        value = case.deployment.fields.get(options.path(name))
        if value is not None and value.known and TABLE.has(name, case.release.version):
            plain = to_plain(value.options[0])
            legal = not isinstance(plain, bool | int | float | list)
            yield Support(VALUE, legal, value, f"{name}: expected a mapping of its keys")


def graph_sizes(case: Case) -> Iterator[Support]:
    """cuda_graph_config.batch_sizes is a list of whole numbers."""
    path = _options(case).path("cuda_graph_config", "batch_sizes")
    value = case.deployment.fields.get(path)
    if value is None or not value.known:
        return
    plain = to_plain(value.options[0])
    items = plain if isinstance(plain, list) else []
    wrong = [one for one in items if isinstance(one, str) and not _is_number(one)]
    words = "cuda_graph_config.batch_sizes: expected a whole number in each place of the list"
    yield Support(VALUE, not wrong, value, words)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def kv_words(case: Case) -> Iterator[Support]:
    """The KV cache's dtype: few words, and not against what the checkpoint was made for."""
    given = _options(case).text(KV, "dtype")
    if given is None or not given.known:
        return
    word = given.get()
    known = ", ".join(KV_WORDS)
    yield Support(VALUE, word in KV_WORDS, given, f"kv_cache_config.dtype: expected one of {known}")
    scheme = case.model.get("model").scheme.get("quantization")
    if scheme is not None and scheme.kv and not scheme.is_guess and word in ("fp8", "nvfp4"):
        legal = word == "fp8" if scheme.kv.startswith("fp8") else word == scheme.kv
        yield Support(
            CONFLICT, legal, given,
            f"the checkpoint's KV cache is {scheme.kv}, kv_cache_config.dtype is {word}",
            ("kv_cache_config.dtype: auto",),
        )  # fmt: skip


def spelling(case: Case) -> Iterator[Support]:
    """Names that only another command has, or that are spelled with dashes."""
    args = case.deployment.under(*ARGS).items()
    for path, value in args:
        word = value.origin.word
        if not path or not word.startswith("--"):
            continue
        if word.lstrip("-") == BENCH_FRACTION:
            yield Support(
                VALUE, False, value, f"{word} is an option of trtllm-bench, not of trtllm-serve",
                (f"--{FRACTION}",),
            )  # fmt: skip
        dashed = word[2:].partition("=")[0]
        known = "xqa" in dashed or "-" not in dashed or "_" in dashed
        if not known and case.release.version < SERVE_DASHES:
            right = f"--{dashed.replace('-', '_')}"
            yield Support(VALUE, False, value, f"{word}: trtllm-serve spells it {right}", (right,))


def replaced(case: Case) -> Iterator[Support]:
    """A kv_cache_config makes old releases forget the share on the command line."""
    options = _options(case)
    given = options.number(FRACTION)
    if given is None or not options.replaced() or case.release.version >= REPLACES:
        return
    if options.has(KV, "free_gpu_memory_fraction"):
        return
    word = given.origin.word or FRACTION
    yield Support(
        CONFLICT, False, given,
        f"kv_cache_config replaces {word}: the share is {defaults.FRACTION:g}",
        (f"kv_cache_config.free_gpu_memory_fraction: {given.either(0.9):g}",),
        doubt="the server starts all the same",
    )  # fmt: skip


def heads(case: Case) -> Iterator[Support]:
    """Query heads over the devices that one request's attention is split over."""
    model = case.model.get("model").architecture
    tensor = case.plan.tensor
    size = tensor.get("tensor_parallel_size")
    if model.heads:
        fitting = [str(one) for one in (1, 2, 4, 8, 16) if model.heads % one == 0]
        yield Support(
            DIVISIBLE, model.heads % size == 0, tensor,
            f"tensor parallel {size} does not divide {model.heads:,} attention heads",
            (f"use one of {', '.join(fitting)}",),
            f"{model.heads:,} / {size} = {model.heads / size:g}",
        )  # fmt: skip


def experts(case: Case) -> Iterator[Support]:
    """Expert parallel x tensor parallel of experts is the tensor parallel size."""
    options = _options(case)
    ranks = case.plan.extra["ranks"].get("tensor_parallel_size")
    dealt = _known(options.count("moe_expert_parallel_size"))
    cut = _known(options.count("moe_tensor_parallel_size"))
    cluster = _known(options.count("moe_cluster_parallel_size"))
    if dealt is None or dealt.get() < 1:
        return
    over = dealt.get() * max(1, cluster.get() if cluster else 1)
    if cut is not None and cut.get() > 0:
        legal, words = over * cut.get() == ranks, f"{over} x {cut.get()}"
    else:
        legal, words = ranks % over == 0, f"{over}"
    yield Support(
        CONFLICT, legal, dealt,
        f"moe_expert_parallel_size {words} does not make up tensor_parallel_size {ranks}",
        (f"moe_expert_parallel_size: {ranks}",),
    )  # fmt: skip
    count = case.model.get("model").architecture.experts
    if count:
        legal = count % dealt.get() == 0
        words = f"{count} experts do not divide over {dealt.get()} devices"
        doubt = "moe_config.load_balancer deals out copies" if options.has("moe_config") else ""
        yield Support(DIVISIBLE, legal, dealt, words, doubt=doubt)


def context(case: Case) -> Iterator[Support]:
    """max_seq_len above what the model supports is lowered."""
    given = _known(_options(case).count("max_seq_len"))
    if given is None:
        return
    model = case.model.get("model")
    most = case.plan.max_request_tokens.get("max_seq_len")
    yield Support(
        CONTEXT, given.get() <= most, given,
        f"max_seq_len {show_count(given.get())} is above what {model.name} supports",
        (f"max_seq_len: {most}",), f"{show_count(given.get())} > {show_count(most)}",
        doubt=f"TensorRT-LLM lowers it to {show_count(most)} and goes on",
    )  # fmt: skip


def prompts(case: Case) -> Iterator[Support]:
    """Without chunked prefill a prompt longer than one step is refused."""
    declared = lengths(case.deployment, "prompt_tokens")
    if declared is None or case.plan.chunked_prefill.get("enable_chunked_prefill"):
        return
    longest = max(declared.get(key, 0.0) for key in ("max", "constant", "p999", "p99", "p95"))
    step = case.plan.max_step_tokens.get("max_num_tokens")
    at = case.deployment.place_for("workload", "prompt_tokens")
    yield Support(
        CONFLICT, longest <= step, at,
        f"prompts of {show_count(longest)} tokens are refused: max_num_tokens is "
        f"{show_count(step)} and enable_chunked_prefill is off",
        ("enable_chunked_prefill: true", f"max_num_tokens: {int(longest)}"),
    )  # fmt: skip


def transfer(case: Case) -> Iterator[Support]:
    """The buffer of disaggregated serving holds whole blocks."""
    options = _options(case)
    buffer = _known(options.count("cache_transceiver_config", "max_tokens_in_buffer"))
    if buffer is None or case.release.version < TRANSFER_CHECKED:
        return
    block = case.plan.extra["tokens_per_block"].get("tokens_per_block")
    size = buffer.get()
    yield Support(
        CONFLICT, size % max(1, block) == 0, buffer,
        f"max_tokens_in_buffer {show_count(size)} is no multiple of tokens_per_block {block}",
        (f"max_tokens_in_buffer: {-(-size // max(1, block)) * block}",),
    )  # fmt: skip


def old_devices(case: Case) -> Iterator[Support]:
    """bfloat16 needs compute capability 8.0."""
    given = _options(case).text("dtype")
    part = case.accelerator.get("accelerator")
    if given is not None and given.either("") == "bfloat16" and part.capability:
        words = f"bfloat16 needs compute capability {OLDEST_BF16}, the device has {part.capability}"
        yield Support(SUPPORTED, part.capability >= OLDEST_BF16, given, words, ("dtype: float16",))


def checkpoint(case: Case) -> Iterator[Support]:
    """The PyTorch backend reads few packings: others are taken for unpacked ones, and fail."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    if scheme is None or scheme.is_guess or scheme.seen == "online":
        return
    if case.plan.extra["backend"].get("backend") != "pytorch":
        return
    words = f"the PyTorch backend reads no {scheme.method} checkpoints"
    legal = scheme.method not in UNREAD
    if scheme.method == "compressed-tensors" and not scheme.mixed:
        words = f"of compressed-tensors only 8 bit are read, these are {scheme.bits:g}"
        legal = scheme.bits == EIGHT_BIT
    read = case.release.known and case.release.version >= LOADER_READ
    yield Support(
        SUPPORTED, legal, case.model, words, ("a ModelOpt checkpoint in FP8 or NVFP4",),
        doubt="" if read else "the loader of this release was not read",
    )  # fmt: skip


CHECKS: tuple[tuple[str, Check], ...] = (
    (VALUE, sizes), (VALUE, mappings), (VALUE, graph_sizes), (VALUE, kv_words),
    (VALUE, spelling), (CONFLICT, replaced),
    (DIVISIBLE, heads), (DIVISIBLE, experts), (CONTEXT, context), (CONFLICT, prompts),
    (CONFLICT, transfer), (SUPPORTED, old_devices), (SUPPORTED, checkpoint),
)  # fmt: skip


def supports(case: Case) -> Iterator[Support]:
    """Everything, check by check: an input that is not known costs only its own check."""
    for rule, check in CHECKS:
        try:
            yield from list(check(case))
        except Unknown as lost:
            yield Support(rule, None, lost.value, lost.why)

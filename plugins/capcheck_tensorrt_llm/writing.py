"""Neutral changes as options of trtllm-serve or keys of its YAML."""

from __future__ import annotations

from capcheck import ARGS, Change, Deployment, Edit
from capcheck_tensorrt_llm.reading import FRACTION, KV, Options

OPTION_OF = {
    "max_request_tokens": "max_seq_len",
    "max_sequences": "max_batch_size",
    "max_step_tokens": "max_num_tokens",
    "tensor": "tensor_parallel_size",
    "pipeline": "pipeline_parallel_size",
}
WORDS = {"fp8_e4m3": "fp8", "bf16": "bfloat16", "fp16": "float16"}


def write(change: Change, deployment: Deployment) -> Edit | None:
    """The change as an edit; None for what has no option."""
    options = Options(deployment, None)
    if change.field == "kv_dtype":
        return _keyed(deployment, (KV, "dtype"), WORDS.get(str(change.to), str(change.to)))
    if change.field == "memory_fraction":
        if options.has(KV, "free_gpu_memory_fraction") or not _by_command(deployment):
            return _keyed(deployment, (KV, "free_gpu_memory_fraction"), f"{change.to:g}")
        return _plain(deployment, options, FRACTION, f"{change.to:g}")
    option = OPTION_OF.get(change.field)
    return None if option is None else _plain(deployment, options, option, str(change.to))


def _by_command(deployment: Deployment) -> bool:
    """Whether the user's own options are words of a command line."""
    args = deployment.under(*ARGS)
    return any(path and value.origin.word.startswith("--") for path, value in args.items())


def _plain(deployment: Deployment, options: Options, option: str, text: str) -> Edit:
    path = options.path(option)
    value = deployment.fields.get(path)
    word = value.origin.word if value is not None else ""
    if word.startswith("--") or (not word and _by_command(deployment)):
        return Edit(path, text, f"{word or f'--{option}'} {text}")
    return Edit(path, text, f"{path[-1]}: {text}")


def _keyed(deployment: Deployment, keys: tuple[str, str], text: str) -> Edit:
    del deployment  # no command line has the keys: they stand in the YAML
    return Edit((*ARGS, *keys), text, f"{'.'.join(keys)}: {text}")

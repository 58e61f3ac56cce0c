"""Which model and which file type llama.cpp's own options name."""

from __future__ import annotations

import re

from capcheck import Deployment, Value
from capcheck.values import default
from capcheck_llama_cpp.reading import Reading

DEFAULT_TYPE = "q4_k_m"  # of a repository that is named without a file type
_TYPE = re.compile(
    r"(?i)(?:^|[-_.:/])(?P<type>(?:ud-)?(?:"
    r"i?q\d_(?:k_(?:xl|l|m|s)|kl?|nl|xxs|xs|s|m|0|1)(?:_xl|_r4)?|tq[12]_0|mxfp4(?:[-_]moe)?|"
    r"bf16|f(?:p)?16|f(?:p)?32))(?=$|[-_./])"
)
_WORDS = {"f16": "fp16", "f32": "fp32", "mxfp4": "mxfp4_moe", "mxfp4-moe": "mxfp4_moe"}
_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")


def file_type(name: str) -> str | None:
    """The word of `weights.precision` that a file's or a repository's name ends in."""
    last = _SHARD.sub("", name).rpartition("/")[2]
    found = [one["type"].lower() for one in _TYPE.finditer(last)]
    return _WORDS.get(found[-1], found[-1]) if found else None


def model_name(deployment: Deployment) -> Value[str] | None:
    """The repository or the file; None when no option names one."""
    read = Reading(deployment, None)
    for option in ("hf_repo", "model", "model_url"):
        if read.has(option):
            return read.text(option)
    return None


def precision(deployment: Deployment) -> Value[str] | None:
    """The type of the file that is loaded, as its name tells it."""
    read = Reading(deployment, None)
    for option in ("hf_file", "hf_repo", "model", "model_url"):
        value = read.text(option) if read.has(option) else None
        if value is None or not value.known:
            continue
        found = file_type(value.get())
        if found is not None:
            return value.map(lambda _, found=found: found)  # type: ignore[misc]
        if option == "hf_repo" and ":" not in value.get():
            why = "llama.cpp takes Q4_K_M of a repository where no file type is named"
            return default(DEFAULT_TYPE, value.place, why)
    return None

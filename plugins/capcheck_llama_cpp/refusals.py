"""Values that llama-server refuses while it reads its options, as its sources read them.

Numbers are read by std::stoi and std::stof: what follows a number is not looked at, what starts
with none or exceeds 32 bits stops the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from capcheck import Case, Support, Value
from capcheck_llama_cpp.layout import build_of
from capcheck_llama_cpp.reading import Reading
from capcheck_llama_cpp.releases import packaged
from capcheck_llama_cpp.table import TABLE

RULE = "options/value"
WHOLE = (
    "ctx_size", "batch_size", "ubatch_size", "parallel", "gpu_layers", "main_gpu", "n_cpu_moe",
    "threads",
)  # fmt: skip
WORDS = {"gpu_layers": ("auto", "all")}
BARE = ("", "true", "false")  # an option without a value is the table's to judge
SPLITS = ("none", "layer", "row", "tensor")
MOST = 2**31
ONE_OF_DEVICES = 5310  # from here on, at the latest, a main device that is not there is refused
NO_ZERO_SLOTS = 8450  # from here on, at the latest, zero slots are refused
_WHOLE = re.compile(r"\s*([+-]?\d{1,40})")
_REAL = re.compile(r"(?i)\s*[+-]?(?:\d|\.\d|inf|nan)")


class Asked:
    """The options of one case, and what is known of the server that reads them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.read = Reading(case.deployment, case.release.version)
        self.build = build_of(case)

    def text(self, option: str) -> tuple[Value[str], str] | None:
        """The only value that is written of an option."""
        value = self.read.text(option)
        text = value.either(None) if value is not None else None
        return None if value is None or text is None or text in BARE else (value, text)

    def number(self, option: str) -> tuple[Value[str], int] | None:
        """What the server reads of it as a whole number."""
        found = self.text(option)
        begins = _WHOLE.match(found[1]) if found is not None else None
        return (found[0], int(begins[1])) if found is not None and begins else None


def _server(case: Case) -> bool:
    """Whether llama.cpp's own programs read the options: packages and forks have readers."""
    named = case.deployment.text("engine", "name")
    python = named is not None and "python" in named.either("")
    return not (python or case.release.foreign or packaged(case.release.text) is not None)


def _refusal(option: str, value: Value[str], expected: str) -> Support:
    return Support(RULE, False, value, f"{option.replace('_', '-')}: expected {expected}")


def numbers(asked: Asked) -> Iterator[Support]:
    """Options that are whole numbers of 32 bits."""
    for option in WHOLE:
        found = asked.text(option)
        words = WORDS.get(option, ())
        if found is None or found[1] in words:
            continue
        number = asked.number(option)
        if number is None:
            yield _refusal(option, found[0], " or ".join(("a whole number", *words)))
        elif not -MOST <= number[1] < MOST:
            yield _refusal(option, found[0], f"a whole number below {MOST:,}")


def bounds(asked: Asked) -> Iterator[Support]:
    """Numbers that are too small."""
    found = asked.number("n_cpu_moe")
    if found is not None and -MOST <= found[1] < 0:
        yield _refusal("n_cpu_moe", found[0], "0 or more")
    found = asked.number("parallel")
    certain = asked.case.release.known and asked.build >= NO_ZERO_SLOTS
    if certain and found is not None and found[1] == 0:
        yield _refusal("parallel", found[0], "1 or more, or -1 for as many as the server chooses")


def splits(asked: Asked) -> Iterator[Support]:
    """How the model is split, and by which shares. Newer builds may know more ways to split it."""
    found = asked.text("split_mode")
    looked_at = asked.case.release.known and asked.build <= TABLE.releases[-1][0]
    if found is not None and looked_at and found[1] not in SPLITS:
        yield _refusal("split_mode", found[0], f"one of {', '.join(SPLITS)}")
    found = asked.text("tensor_split")
    parts = re.split(r"[,/]+", found[1]) if found is not None else []
    if found is not None and not all(_REAL.match(part) for part in parts if part):
        yield _refusal("tensor_split", found[0], "numbers with commas between them, such as 3,1")


def devices(asked: Asked) -> Iterator[Support]:
    """The only device that is used has to be there; others may come over the network."""
    split, main = asked.text("split_mode"), asked.number("main_gpu")
    count = asked.case.deployment.count("hardware", "count")
    many = count.either(None) if count is not None else None
    others = any(asked.read.has(one) for one in ("device", "rpc"))
    others = others or asked.case.deployment.has("hardware", "nodes")
    certain = asked.case.release.known and asked.build >= ONE_OF_DEVICES and not others
    if not certain or split is None or split[1] != "none" or main is None or many is None:
        return
    if many <= main[1] < MOST:
        yield _refusal("main_gpu", main[0], f"one of the {many} devices, counted from 0")


def overriding(asked: Asked) -> Iterator[Support]:
    """Patterns without a place for what they find."""
    found = asked.text("override_tensor")
    if found is not None and "=" not in found[1]:
        yield _refusal("override_tensor", found[0], "patterns and their places, such as exps=CPU")


def _of_server(check: Callable[[Asked], Iterator[Support]]) -> Callable[[Case], Iterable[Support]]:
    return lambda case: check(Asked(case)) if _server(case) else ()


REFUSALS = tuple(_of_server(one) for one in (numbers, bounds, splits, devices, overriding))

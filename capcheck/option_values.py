"""Whether a release takes a value, and what it expects where it does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from capcheck.option_types import Bounds, Option, OptionType, Shape

_HUMAN = re.compile(r"(\d+)(\.\d+)?([kKmMgGtT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NOTHING = ("", "None")  # stands for no value where no value is allowed
_MOST_NAMED = 12  # choices that a message lists
_SWITCH_WORDS = ("true", "false")
_VARIABLE_SWITCH = ("0", "1", "true", "false", "")  # some variables take only the numbers


def human_number(text: str) -> int | None:
    """32000 for 32k, 32768 for 32K, 25600 for 25.6k; None for other text and for 25.6K."""
    match = _HUMAN.fullmatch(text.strip())
    if match is None:
        return None
    whole, fraction, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(float(whole + (fraction or "")) * _DECIMAL[suffix])
    return None if fraction else int(whole) * _BINARY[suffix]


def expectation(
    shape: Shape,
    choices: Sequence[str],
    option: Option,
    value: object,
    defaults: Sequence[object],
) -> str | None:
    """What is expected in place of `value`; None if it is taken. See `OptionTable.check_value`."""
    if option.group == "environment" and shape.type == "bool":
        return None if str(value).strip().lower() in _VARIABLE_SWITCH else "0 or 1"
    if shape.type == "bool":
        return _switch(shape, option, value)
    if value is None or (None in defaults and value in _NOTHING):
        return None
    if isinstance(value, bool):
        if value is False or shape.optional_value:
            return None
        return f"a value after --{_flag(option.name)}"
    if shape.type == "list":
        return _several(shape, value)
    if isinstance(value, str):
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            return f"the value without the quotes, which belong to it here: {value[1:-1]}"
        if _matches(value, shape.words, shape.folded):
            return None
    if choices and not shape.open:
        return _choice(shape, choices, value)
    return _READERS[shape.type](shape, value)


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _switch(shape: Shape, option: Option, value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    text = str(value)
    if shape.optional_value and text.lower() in _SWITCH_WORDS:
        return None
    flag = f"--{_flag(option.name)}"
    if shape.optional_value:
        return f"{flag} alone, or true or false after it"
    if not shape.negatable:
        return f"{flag} alone: it takes no value"
    return f"{flag} or --no-{_flag(option.name)} alone: it takes no value"


def _matches(value: str, words: Sequence[str], folded: bool) -> bool:
    if not folded:
        return value in words or value.lower() in [word for word in words if word.isalpha()]
    return _fold(value) in [_fold(word) for word in words]


def _fold(text: str) -> str:
    return text.lower().replace("-", "_")


def _choice(shape: Shape, choices: Sequence[str], value: object) -> str | None:
    text = str(value)
    folded = {_fold(choice): choice for choice in choices}
    if text in choices or (shape.folded and _fold(text) in folded):
        return None
    if _fold(text) in folded:
        return f"{folded[_fold(text)]}, spelled so"
    from difflib import get_close_matches

    near = [] if text.isdigit() else get_close_matches(_fold(text), list(folded), 1)
    hint = f" (did you mean {folded[near[0]]}?)" if near else ""
    if len(choices) > _MOST_NAMED:
        return f"one of {len(choices)} names{hint}"
    return f"one of {', '.join(choices)}{hint}"


def _several(shape: Shape, value: object) -> str | None:
    items = value if isinstance(value, list | tuple) else [value]
    reader = _READERS[shape.item]
    for item in items:
        if isinstance(item, dict):
            continue
        expected = reader(shape, item)
        if expected:
            return f"{expected} in each place of the list"
    return None


def _number(value: object, convert: Callable[[str], float]) -> float | None:
    try:
        return convert(str(value))
    except (ValueError, OverflowError):
        return None


def _whole(shape: Shape, value: object) -> str | None:
    number = _number(value, int)
    if number is not None:
        return _within(shape.bounds, number, "a whole number")
    if isinstance(value, str) and human_number(value) is not None:
        return f"a whole number in digits: {human_number(value)}"
    return f"a whole number{_limits(shape.bounds)}"


def _tokens(shape: Shape, value: object) -> str | None:
    number = _number(value, int)
    if number is None and isinstance(value, str):
        number = human_number(value)
    words = [word for word in shape.words if word.isalpha()]
    kind = " or ".join(["a whole number such as 32768, 32k or 32K", *words])
    if number is None:
        return kind
    return _within(shape.bounds, number, kind)


def _real(shape: Shape, value: object) -> str | None:
    number = _number(value, float)
    if number is None:
        return f"a number{_limits(shape.bounds)}"
    return _within(shape.bounds, number, "a number")


def _within(bounds: Bounds, number: float, kind: str) -> str | None:
    return None if bounds.hold(number) else kind + _limits(bounds)


def _limits(bounds: Bounds) -> str:
    parts = []
    if bounds.minimum is not None:
        parts.append(f"{'above' if bounds.above else 'of at least'} {bounds.minimum:g}")
    if bounds.maximum is not None:
        most = "at most" if parts else "of at most"
        parts.append(f"{'below' if bounds.below else most} {bounds.maximum:g}")
    return f" {' and '.join(parts)}" if parts else ""


def _json(shape: Shape, value: object) -> str | None:
    if not isinstance(value, str) or shape.loose:
        return None
    if shape.pairs and _are_pairs(value):
        return None
    import json

    try:
        json.loads(value)
    except ValueError:
        return 'JSON, such as {"key": 1}'
    return None


def _are_pairs(value: str) -> bool:
    return all(len(item.split("=")) == 2 for item in value.split(","))


def _text(shape: Shape, value: object) -> str | None:
    if isinstance(value, dict | list | tuple):
        return "one value"
    if shape.pairs and not _are_pairs(str(value)):
        return "pairs such as image=4,video=1"
    return None


_READERS: dict[OptionType, Callable[[Shape, Any], str | None]] = {
    "int": _whole,
    "tokens": _tokens,
    "float": _real,
    "json": _json,
    "text": _text,
    "choice": _text,
}

"""What an add_argument call says of an option's values, as JSON."""

from __future__ import annotations

import ast
from typing import Any

from vllm_reader.values import Class, Function, Instance, Lambda, Member, Opaque, Value, Wrapped

HUMAN = {"human_readable_int": "tokens", "human_readable_int_or_auto": "tokens or auto"}
FUNCTIONS = {"union_dict_and_str": "json or text", "from_cli": "json", "nullable_kvs": "pairs"}
PYTHON_TYPES: dict[type, str] = {int: "int", float: "float"}
SPECIAL: dict[str, dict[str, Any]] = {
    "tokens or auto": {"type": "tokens", "words": ["-1", "auto"]},
    "folded": {"type": "text", "folded": True},
    "json or text": {"type": "json", "loose": True},
    "pairs": {"type": "text", "pairs": True},
    "port": {"type": "int", "bounds": {"ge": 1024.0, "le": 65535.0}},
}
FLAGS: dict[str, dict[str, Any]] = {
    "store_true": {"type": "bool"},
    "store_false": {"type": "bool"},
    "BooleanOptionalAction": {"type": "bool", "negatable": True},
    "StoreBoolean": {"type": "bool", "optional_value": True},
}


def is_many(value: Value) -> bool:
    """Whether a value is a container of known values."""
    return isinstance(value, list | tuple | set | dict)


def shape_of(words: dict[str, Value]) -> dict[str, Any]:
    """Type, choices, bounds and arity, from the keywords of add_argument."""
    action = _action(words.get("action", ""))
    if action in FLAGS:
        return dict(FLAGS[action])
    name = _type_name(words.get("type", "text"))
    shape: dict[str, Any] = dict(SPECIAL.get(name, {"type": name}))
    if words.get("pairs"):
        shape["pairs"] = True
    nargs = words.get("nargs")
    if nargs == "?":
        shape["optional_value"] = True
    if nargs in ("+", "*") or isinstance(nargs, int) or action == "append":
        shape |= {"type": "list", "item": shape["type"], "repeated": action == "append"}
    shape |= _choices(words, shape["type"])
    if words.get("bounds"):
        shape["bounds"] = words["bounds"]
    return shape


def _choices(words: dict[str, Value], type_name: str) -> dict[str, Any]:
    choices = words.get("choices")
    if not isinstance(choices, list | tuple | set | dict):
        return {}
    if not all(isinstance(one, str | int | None) for one in choices):
        return {}
    texts = sorted({str(one) for one in choices if one not in (None, "None")})
    shape: dict[str, Any] = {"choices": texts, "open": bool(words.get("open"))}
    if type_name == "text" and not words.get("open"):
        shape["type"] = "choice"
    return shape


def _action(action: Value) -> str:
    match action:
        case str():
            return action
        case Class():
            return action.node.name
        case Opaque():
            return action.text.rpartition(".")[2]
    return ""


def _type_name(value: Value) -> str:
    match value:
        case str():
            return value
        case Wrapped():
            return _type_name(value.inner)
        case type():
            return PYTHON_TYPES.get(value, "text")
        case Function():
            name = value.node.name
            return HUMAN.get(name, FUNCTIONS.get(name, "text"))
        case Lambda():
            return "folded" if ".lower()" in ast.unparse(value.node) else "text"
        case Opaque() if value.text.endswith("json.loads"):
            return "json"
        case Opaque() if value.text.endswith("check_port"):
            return "port"
    return "text"


def json_default(value: Value) -> Any:
    """JSON for a default; {"computed": text} when only running the program would tell."""
    match value:
        case Member():
            return json_default(value.value)
        case Instance():
            return {}
        case Opaque() if value.text.endswith("SUPPRESS"):
            return None
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [json_default(one) for one in value]
        case set():
            return sorted(json_default(one) for one in value)
        case dict():
            return {str(key): json_default(one) for key, one in value.items()}
        case Opaque():
            return {"computed": value.text}
    return {"computed": type(value).__name__}

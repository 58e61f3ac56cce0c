"""The options of one release: what its `vllm serve` parser registers."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from vllm_reader.checks import coded_checks
from vllm_reader.evaluator import Evaluator
from vllm_reader.hints import Field, Hint, fields_of
from vllm_reader.shapes import HUMAN, is_many, json_default, shape_of
from vllm_reader.sources import Tree
from vllm_reader.values import Argument, Class, Function, Parser, Scope, Value

ARG_UTILS = "vllm.engine.arg_utils"
FRONTENDS = (
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)
SERVE = ("vllm.entrypoints.cli.serve", "vllm.scripts")
QUANTIZATION = ("vllm.model_executor.layers.quantization", "QUANTIZATION_METHODS")
# Their Literals admit any text, for plug-ins; what no plug-in registered fails at start-up.
VERIFIED_LATER = ("kv_cache_dtype", "quantization", "attention_backend")
TEXTS = frozenset({"generation_config"})  # a folder or a word, though its name says config


class Reading(NamedTuple):
    """One option in one release. `shape` holds only what differs from the plainest option."""

    name: str
    group: str
    default: Any  # JSON; {"computed": text} when only running would tell
    shape: dict[str, Any]


class Release:
    """Reads one release."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.evaluator = Evaluator(tree, self._kwargs_of)
        self.human = self._human_readable()
        self.inverses = bool(tree.find("vllm.utils.argparse_utils", "EnableDisableAction"))
        self.pairs = bool(tree.find(ARG_UTILS, "nullable_kvs"))  # JSON may be image=4,video=1
        self.checks = coded_checks(tree)
        self._fields: dict[str, Field] | None = None

    def _human_readable(self) -> dict[str, str]:
        """Which integer fields take 32k, as the release's get_kwargs says."""
        found: dict[str, str] = {}
        local: dict[str, set[str]] = {}
        for function in ("_compute_kwargs", "get_kwargs"):
            definition = self.tree.find(ARG_UTILS, function)
            for node in ast.walk(definition[1]) if definition else ():
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.Set() as value):
                        local[name] = _texts(value)
                    case ast.If(test=ast.Compare(left=ast.Name(id="name"), comparators=[other])):
                        names = local.get(ast.unparse(other)) or _texts(other)
                        found |= dict.fromkeys(names, kind) if (kind := _human(node)) else {}
        return found

    def _kwargs_of(self, evaluator: Evaluator, owner: Class) -> Value:
        kwargs: dict[str, dict[str, Value]] = {}
        for field in fields_of(evaluator, owner):
            words = {"default": field.default, "bounds": field.bounds} | _kind(field, self.human)
            if words.get("type") == "json" and "class" not in words:
                words["pairs"] = self.pairs
            kwargs[field.name] = words
        return kwargs

    def options(self) -> list[Reading]:
        """Every option of the server's parser. Raises LookupError if there is no parser."""
        frontend = next((one for one in FRONTENDS if self.tree.find(one, "make_arg_parser")), "")
        made = self._run(frontend, "make_arg_parser", Parser())
        if not isinstance(made, Parser):
            raise LookupError(f"{frontend} makes no parser")
        engine = self.engine_arguments()
        flags = {argument.flags for argument in engine}
        readings = [
            self._reading(one, "frontend")
            for one in (*made.arguments, *self._serve_arguments())
            if one.flags and one.flags not in flags
        ]
        readings += [self._reading(one, "engine") for one in engine]
        return list({reading.name: reading for reading in readings}.values())

    def engine_class(self) -> Class:
        """AsyncEngineArgs. Raises LookupError if the release has none."""
        module = self.tree.module(ARG_UTILS)
        found = self.evaluator.lookup(module, "AsyncEngineArgs") if module else None
        if not isinstance(found, Class):
            raise LookupError(f"no engine arguments under {self.tree.root}")
        return found

    def engine_arguments(self) -> list[Argument]:
        """What the engine itself registers, without the HTTP server's options."""
        parser = Parser()
        method = self.evaluator.class_attribute(self.engine_class(), "add_cli_args")
        self.evaluator.run(method, [parser], {})
        return parser.arguments

    def fields(self) -> dict[str, Field]:
        """The fields of AsyncEngineArgs by name."""
        if self._fields is None:
            found = fields_of(self.evaluator, self.engine_class())
            self._fields = {field.name: field for field in found}
        return self._fields

    def _attention_auto(self) -> bool:
        """Whether --attention-backend takes the word auto."""
        found = self.tree.find("vllm.config.attention", "AttentionConfig")
        methods = found[1].body if found and isinstance(found[1], ast.ClassDef) else []
        return any(
            isinstance(method, ast.FunctionDef)
            and method.name == "validate_backend_before"
            and "auto" in _texts(method)
            for method in methods
        )

    def _run(self, module: str, name: str, parser: Parser) -> Value:
        found = self.tree.find(module, name)
        if found is None or not isinstance(found[1], ast.FunctionDef):
            raise LookupError(f"no parser of options under {self.tree.root}")
        return self.evaluator.run(Function(found[0], found[1]), [parser], {})

    def _serve_arguments(self) -> list[Argument]:
        """What older releases add outside of make_arg_parser: model_tag and --config."""
        parser = Parser()
        for name in SERVE:
            path = self.tree.root.joinpath(*name.split(".")).with_suffix(".py")
            module = self.tree.module(name)
            if module is None or not path.is_file():
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="serve_parser"), attr="add_argument")
                    ):
                        self.evaluator.evaluate(node, Scope(module, {"serve_parser": parser}))
        return parser.arguments

    def quantizations(self) -> list[str]:
        """The names that --quantization knows."""
        module = self.tree.module(QUANTIZATION[0])
        value = self.evaluator.lookup(module, QUANTIZATION[1]) if module else ()
        return sorted(str(name) for name in value) if is_many(value) else []

    def _reading(self, argument: Argument, group: str) -> Reading:
        words = argument.keywords
        longs = [flag[2:].replace("-", "_") for flag in argument.flags if flag.startswith("--")]
        plain = [flag for flag in argument.flags if not flag.startswith("-")]
        dest = words.get("dest")
        name = dest if isinstance(dest, str) and dest in longs else (longs or plain)[0]
        shape = shape_of(words) | self.checks.get(name, {})
        shape["shorts"] = [flag for flag in argument.flags if flag[0] == "-" and flag[1] != "-"]
        shape["aliases"] = [long for long in longs if long != name]
        shape["positional"] = bool(plain)
        if self.inverses and shape.get("negatable"):
            shape["inverse"] = _inverse(name)
        if name == "quantization":
            shape["choices"] = self.quantizations()
        if name.endswith("_config") and name not in TEXTS and shape["type"] == "text":
            shape |= {"type": "json"}  # read as JSON later than by the parser
        if name == "optimization_level":
            shape["shorts"] = ["-O"]  # the parser itself turns -O3 into it
        if name == "attention_backend" and self._attention_auto():
            shape["words"] = ["auto"]
        if name in VERIFIED_LATER and shape.get("choices"):
            shape |= {"open": False, "type": "choice"}
        fallback = self.fields().get(name)
        default = words.get("default", fallback.default if fallback else None)
        if default is None and shape["type"] == "bool" and "default" not in words:
            default = False
        return Reading(name, group, json_default(default), {k: v for k, v in shape.items() if v})


def _human(node: ast.If) -> str:
    kinds = (
        HUMAN.get(ast.unparse(line.value), "") for line in node.body if isinstance(line, ast.Assign)
    )
    return next(filter(None, kinds), "")


def _texts(node: ast.AST) -> set[str]:
    return {
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def _inverse(name: str) -> str:
    for one, other in (("enable_", "disable_"), ("disable_", "enable_")):
        if name.startswith(one):
            return other + name.removeprefix(one)
    return ""


def _kind(field: Field, human: dict[str, str]) -> dict[str, Value]:
    """What vLLM's get_kwargs makes of a field's type hint, in its order of precedence."""
    by_kind = {hint.kind: hint for hint in reversed(field.hints)}
    kinds = set(by_kind)
    if "dataclass" in kinds:
        return {"type": "json", "class": by_kind["dataclass"].owner}
    if kinds == {"bool", "str", "none"}:
        return {"type": "text", "nargs": "?", "const": True}
    if "bool" in kinds:
        return {"action": "BooleanOptionalAction"}
    if "literal" in kinds:
        values = by_kind["literal"].values
        numbers = all(isinstance(value, int) for value in values)
        return {
            "choices": list(values),
            "type": "int" if numbers else "text",
            "open": "str" in kinds,
        }
    for many in ("tuple", "list", "set"):
        if many in kinds:
            return {"nargs": "+", "type": _item(by_kind[many].item)}
    if "int" in kinds:
        return {"type": human.get(field.name, "int")}
    if "float" in kinds:
        return {"type": "float"}
    if "dict" in kinds:
        return {"type": "json or text" if kinds & {"str", "other", "enum"} else "json"}
    if "enum" in kinds:
        return {"type": "folded", "choices": list(by_kind["enum"].values), "open": True}
    return {"type": "text"}


def _item(item: tuple[Hint, ...]) -> str:
    return "int" if {hint.kind for hint in item} == {"int"} else "text"

"""Rebuilds the SGLang option table of plugins/capcheck_sglang from unpacked release sources.

    python tools/sglang_options.py FOLDER        FOLDER/0.4.6.post5/sglang/srt/server_args.py ...
    python tools/sglang_options.py FOLDER --fetch 0.5.4 0.5.23     download wheels there first

Reads syntax trees only; nothing that was downloaded is run. Writes options.jsonl, whose first line
lists the inspected releases. renamed.jsonl, what to write instead of other names, is kept by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vllm_reader import history
from vllm_reader.registry import Reading

DATA = Path(__file__).resolve().parent.parent / "plugins" / "capcheck_sglang"
ARGUMENTS = Path("sglang", "srt", "server_args.py")
GROUPS = Path("sglang", "srt", "arg_groups")
SWITCHES = ("store_true", "StoreTrueAction", "DeprecatedStoreTrueAction", "DeprecatedAction")
NEGATABLE = ("BooleanOptionalAction",)
TYPES = {
    "int": "int", "float": "float", "str": "text", "bool": "bool", "dict": "json",
    "human_readable_int": "tokens", "json.loads": "json", "json_list_type": "json",
}  # fmt: skip
UNTOLD = "untold"
WHEEL = ("--python-version", "3.11", "--platform", "manylinux_2_34_x86_64",
         "--platform", "manylinux2014_x86_64", "--platform", "any")  # fmt: skip


def order(version: str) -> tuple[int, ...]:
    """Sorts releases; a post-release follows its base."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


class Source:
    """The argument files of one release: constants, fields with defaults, registrations."""

    def __init__(self, folder: Path) -> None:
        files = [folder / ARGUMENTS, *sorted((folder / GROUPS).rglob("*.py"))]
        self.trees = [ast.parse(file.read_text("utf-8")) for file in files if file.is_file()]
        self.constants: dict[str, ast.expr] = {}
        self.fields: dict[str, ast.AnnAssign] = {}
        self.values: dict[str, Any] = {}
        for tree in self.trees:
            self._collect(tree)

    def _collect(self, tree: ast.Module) -> None:
        for node in tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.constants[name] = value
                case ast.ClassDef() if self._holds_fields(node):
                    for line in node.body:
                        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                            self.fields[line.target.id] = line

    @staticmethod
    def _holds_fields(node: ast.ClassDef) -> bool:
        bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        return node.name == "ServerArgs" or bool(bases & {"Struct"})

    def value(self, node: ast.expr | None) -> Any:
        """A constant expression's value; UNTOLD for whatever only running would tell."""
        if node is None:
            return UNTOLD
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.value(self.constants[node.id])
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ServerArgs":
            field = self.fields.get(node.attr)
            return self.value(field.value) if field is not None else UNTOLD
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_declared_default":
            named = self.value(node.args[0])
            field = self.fields.get(named) if isinstance(named, str) else None
            return self.value(field.value) if field is not None else UNTOLD
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("field"):
            words = {word.arg: word.value for word in node.keywords}
            return [] if "default_factory" in words else self.value(words.get("default"))
        try:
            return ast.literal_eval(node)
        except ValueError:
            return UNTOLD

    def options(self) -> list[Reading]:
        """Every option of the server, each once: declared fields, then registrations."""
        found = {reading.name: reading for reading in self._declared()}
        for tree in self.trees:
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("add_argument"):
                    reading = self._registered(call)
                    if reading is not None:
                        found.setdefault(reading.name, reading)
        return list(found.values())

    def _registered(self, call: ast.Call) -> Reading | None:
        flags = [self.value(one) for one in call.args]
        longs = [one[2:].replace("-", "_") for one in flags if str(one).startswith("--")]
        if not longs:
            return None
        words = {word.arg: word.value for word in call.keywords if word.arg}
        dest = self.value(words.get("dest"))
        name = next((one for one in longs if one in self.fields), longs[0])
        if dest in self.fields and len(longs) > 1:
            name = str(dest)
        shorts = [one for one in flags if isinstance(one, str) and re.fullmatch(r"-[^-].*", one)]
        shape = self._shape(words) | _names(name, longs, shorts)
        default = self.value(words.get("default"))
        if "default" not in words:
            default = False if shape["type"] == "bool" else None
        return Reading(name, "engine", _json(default), shape)

    def _shape(self, words: dict[str, ast.expr]) -> dict[str, Any]:
        action = _last(words.get("action"), self)
        if action in SWITCHES:
            return {"type": "bool"}
        if action in NEGATABLE:
            return {"type": "bool", "negatable": True}
        kind = words.get("type") or words.get("type_parser")
        type_name = TYPES.get(ast.unparse(kind), "text") if kind is not None else "text"
        shape: dict[str, Any] = {"type": type_name}
        nargs = self.value(words.get("nargs"))
        if nargs == "?":
            shape["optional_value"] = True
        elif nargs in ("+", "*") or isinstance(nargs, int):
            shape = {"type": "list", "item": type_name}
        elif action == "append":
            shape = {"type": "list", "item": type_name, "repeated": True}
        choices = self.value(words.get("choices"))
        if isinstance(choices, list | tuple | set) and shape["type"] in ("text", "int"):
            texts = sorted({str(one) for one in choices if one is not None})
            shape |= {"type": "choice", "choices": texts}
        return shape

    def _declared(self) -> Iterator[Reading]:
        for name, field in self.fields.items():
            node = field.annotation
            if not isinstance(node, ast.Subscript) or ast.unparse(node.value) not in (
                "A",
                "Annotated",
            ):
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            told = next((one for one in parts[1:] if isinstance(one, ast.Call)), None)
            words = {word.arg: word.value for word in told.keywords if word.arg} if told else {}
            if self.value(words.get("no_cli")) is True:
                continue
            yield self._field(name, parts[0], words, field.value)

    def _field(
        self, name: str, hint: ast.expr, words: dict[str, ast.expr], value: ast.expr | None
    ) -> Reading:
        shape = self._shape(words)
        if shape["type"] == "text" and "type" not in words:
            shape |= _hinted(hint, self)
        cli = self.value(words.get("cli_name"))
        aliases = self.value(words.get("aliases"))
        longs = [str(cli) if isinstance(cli, str) else f"--{name}"]
        longs += aliases if isinstance(aliases, list) else []
        shorts = [one for one in longs if re.fullmatch(r"-[^-].*", one)]
        plain = [one[2:].replace("-", "_") for one in longs if one.startswith("--")]
        default = self.value(value) if value is not None else None
        return Reading(name, "engine", _json(default), shape | _names(name, plain, shorts))


def _hinted(hint: ast.expr, source: Source) -> dict[str, Any]:
    """What a type hint says of the value: Optional[int], List[str], Literal[...], bool."""
    text = ast.unparse(hint)
    inner = re.sub(r"^Optional\[(.*)\]$", r"\1", text).removesuffix(" | None")
    if inner in TYPES:
        return {"type": TYPES[inner]}
    if inner.startswith(("List[", "list[")):
        item = inner.partition("[")[2].rstrip("]")
        return {"type": "list", "item": TYPES.get(item, "text")}
    literal = re.search(r"Literal\[(.*)\]", inner)
    if literal:
        values = source.value(ast.parse(f"[{literal[1]}]", mode="eval").body)
        if isinstance(values, list):
            return {"type": "choice", "choices": sorted({str(one) for one in values})}
    return {}


def _names(name: str, longs: Sequence[str], shorts: Sequence[str]) -> dict[str, Any]:
    aliases = [one for one in dict.fromkeys(longs) if one != name]
    found: dict[str, Any] = {"aliases": aliases} if aliases else {}
    return found | ({"shorts": list(shorts)} if shorts else {})


def _last(node: ast.expr | None, source: Source) -> str:
    """The action's name, whether a word or a class."""
    if node is None:
        return ""
    value = source.value(node)
    return value if value != UNTOLD else ast.unparse(node).rpartition(".")[2]


def _json(value: Any) -> Any:
    if value == UNTOLD:
        return {"computed": "at start"}
    return sorted(value) if isinstance(value, set) else value


def fetch(version: str, folder: Path) -> bool:
    """Unpacks the Python files of one release's wheel below `folder`."""
    with TemporaryDirectory() as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
        ]
        command += [*WHEEL, "-d", scratch, f"sglang=={version}"]
        if subprocess.run(command, check=False).returncode:
            return False
        for wheel in Path(scratch).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                names = [one for one in archive.namelist() if one.endswith(".py")]
                archive.extractall(folder / version, names)
    return True


def main() -> int:
    """Reads the releases and writes the table; 1 if a release could not be had."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="holds one folder for each release")
    parser.add_argument("--fetch", nargs="+", default=[], help="releases to download first")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the table")
    words = parser.parse_args()
    missing = [version for version in words.fetch if not fetch(version, words.folder)]
    found = [one for one in words.folder.iterdir() if (one / ARGUMENTS).is_file()]
    readings = {
        one.name: Source(one).options() for one in sorted(found, key=lambda one: order(one.name))
    }
    head: history.Record = {"releases": [[version, ""] for version in readings]}
    lines = [history.write_line(record) for record in (head, *history.options(readings))]
    words.out.mkdir(parents=True, exist_ok=True)
    words.out.joinpath("options.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"options.jsonl: {len(lines) - 1} records, {len(readings)} releases")
    if missing:
        print("could not be had: " + ", ".join(missing), file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

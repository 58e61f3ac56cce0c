"""Rebuilds the llama.cpp option table of plugins/capcheck_llama_cpp from unpacked sources.

    python tools/llama_cpp_options.py FOLDER     FOLDER/b6160/common/arg.cpp ...

Each folder is named after a build. The sources of a build without a number of its own (a vendored
copy) go under the nearest one. Older builds take their arguments apart in common/common.cpp and in
examples/server/server.cpp. Reads text only; nothing is compiled. Writes options.jsonl, whose
first line lists the inspected builds, and environment.jsonl, the variable of each option; and,
from FOLDER/v0.12.0/api/types.go ..., ollama.jsonl, the parameters of an Ollama model.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vllm_reader import history
from vllm_reader.registry import Reading

DATA = Path(__file__).resolve().parent.parent / "plugins" / "capcheck_llama_cpp"
SOURCE = Path("common", "arg.cpp")
OLDER = (Path("common", "common.cpp"), Path("examples", "server", "server.cpp"))
STRING = r'"((?:[^"\\]|\\.)*)"'
NAMES = re.compile(r"common_arg\(\s*\{([^{}]*)\}\s*,\s*(\{[^{}]*\}\s*,\s*)?")
HANDLERS = {"int": "int", "bool": "bool", "conststd::string&": "text", "std::string": "text"}
GO = {"int": "int", "bool": "text", "float32": "float"}
# What llama.cpp's own log, its library and llama-cpp-python's server call the same options.
LIBRARY = {
    "ctx_size": ("n_ctx",), "batch_size": ("n_batch",), "ubatch_size": ("n_ubatch",),
    "parallel": ("n_parallel", "n_seq_max"), "gpu_layers": ("n_gpu_layers",),
    "cache_type_k": ("type_k",), "cache_type_v": ("type_v",), "threads": ("n_threads",),
    "kv_offload": ("offload_kqv",), "hf_repo": ("hf_model_repo_id",),
}  # fmt: skip
# Changes that are known to have come with a build between two inspected ones.
KNOWN = {("flash_attn", "b8450"): "b6325"}
LOOSE = ("flash_attn", "gpu_layers", "fit", "gpu_layers_draft")
REPEATED = ("override_tensor",)


class Registered(NamedTuple):
    """One option as a source registers it."""

    names: tuple[str, ...]
    negative: tuple[str, ...]
    type: str
    variable: str


def registered(source: str) -> Iterator[Registered]:
    """Every option of one arg.cpp."""
    found = list(NAMES.finditer(source))
    for at, one in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(source)
        body = source[one.end() : end]
        names = tuple(re.findall(STRING, one[1]))
        negative = tuple(re.findall(STRING, one[2] or ""))
        if names and all(name.startswith("-") for name in names):
            yield Registered(names, negative, _type(body), _variable(body))


def _type(body: str) -> str:
    """What follows the name: nothing for a switch."""
    handler = re.search(r"\[[^\]]*\]\s*\(\s*common_params\s*&\s*\w*\s*(?:,([^)]*))?\)", body)
    if handler is None or not handler[1]:
        return "bool"
    parameters = handler[1].split(",")
    if len(parameters) > 1:
        return "list"
    kind = re.sub(r"\s*\w+$", "", parameters[0].strip()).replace(" ", "")
    return HANDLERS.get(kind, "text")


def _variable(body: str) -> str:
    found = re.search(rf"set_env\({STRING}\)", body)
    return found[1] if found else ""


def compared(source: str) -> Iterator[Registered]:
    """Every option of a source that compares each argument with names: `arg == "-c" || ...`."""
    branch = r'if \(((?:\s*arg == "[^"]*"\s*(?:\|\|)?)+)\)'
    found = list(re.finditer(branch, source))
    for at, one in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else one.end() + 400
        names = tuple(re.findall(STRING, one[1]))
        body = source[one.end() : end]
        kind = "text" if re.search(r"\+\+i|CHECK_ARG", body) else "bool"
        if kind == "text" and re.search(r"std::sto[iul]+\(", body):
            kind = "int"
        if all(name.startswith("-") for name in names):
            yield Registered(names, (), kind, "")


def options_of(folder: Path) -> Iterator[Registered]:
    """The options of one build."""
    if (folder / SOURCE).is_file():
        yield from registered((folder / SOURCE).read_text("utf-8"))
        return
    for file in OLDER:
        if (folder / file).is_file():
            yield from compared((folder / file).read_text("utf-8"))


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")


def _longs(names: tuple[str, ...]) -> list[str]:
    return [_plain(name) for name in names if name.startswith("--")]


def parameters(source: str) -> list[Reading]:
    """The parameters of an Ollama model: the fields of two structs of its API."""
    named = {"type": "text", "positional": True}  # the word after `ollama run`
    found = [Reading("model", "engine", None, named)]
    for struct in re.findall(r"type (?:Options|Runner) struct \{(.*?)\n\}", source, re.DOTALL):
        for kind, name in re.findall(r"\w+\s+(\S+)\s+`json:\"(\w+),omitempty\"`", struct):
            shape: dict[str, Any] = {"type": GO.get(kind.lstrip("*"), "text")}
            if kind.startswith("[]"):
                shape = {"type": "list", "item": "text", "repeated": True}
            found.append(Reading(name, "engine", None, shape))
    return found


class Table:
    """Readings of all builds: an option keeps the name that it first had."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}
        self.variables: dict[str, str] = {}

    def read(self, options: Iterable[Registered]) -> list[Reading]:
        """The options of one build. Those of several programs of one name are one option."""
        found: dict[str, Reading] = {}
        for one in options:
            for names, kind in ((one.names, one.type), (one.negative, "bool")):
                reading = self._reading(names, kind)
                if reading is None:
                    continue
                known = found.get(reading.name)
                found[reading.name] = _joined(known, reading) if known else reading
                if one.variable and names is one.names:
                    self.variables[one.variable] = reading.name
        return list(found.values())

    def _reading(self, names: tuple[str, ...], kind: str) -> Reading | None:
        longs = _longs(names)
        if not longs:
            return None
        name = next((self.named[long] for long in longs if long in self.named), longs[0])
        self.named.update(dict.fromkeys(longs, name))
        shorts = [short for short in names if re.fullmatch(r"-[^-].*", short)]
        shape: dict[str, Any] = {"type": "text" if name in LOOSE and kind != "bool" else kind}
        if kind == "list":
            shape["item"] = "text"
        if shape["type"] == "text" and name in LOOSE:
            shape["optional_value"] = True  # libraries take true for it
        if name in REPEATED:
            shape = {"type": "text"}
        aliases = [one for one in dict.fromkeys((*longs, *LIBRARY.get(name, ()))) if one != name]
        shape |= ({"aliases": aliases} if aliases else {}) | ({"shorts": shorts} if shorts else {})
        return Reading(name, "engine", False if kind == "bool" else None, shape)


def _joined(one: Reading, other: Reading) -> Reading:
    """Two programs' options of one name: all names of both."""
    shape = dict(one.shape)
    for key in ("aliases", "shorts"):
        both = list(dict.fromkeys((*one.shape.get(key, ()), *other.shape.get(key, ()))))
        if both:
            shape[key] = both
    return one._replace(shape=shape)


def tables(builds: Mapping[str, Iterable[Registered]]) -> tuple[list[str], list[str]]:
    """Lines of options.jsonl and of environment.jsonl, of builds given oldest first."""
    table = Table()
    readings = {build: table.read(options) for build, options in builds.items()}
    head: history.Record = {"releases": [[build, ""] for build in readings]}
    records = (head, *(_dated(one) for one in history.options(readings)))
    variables = (
        {"name": variable, "option": name} for variable, name in sorted(table.variables.items())
    )
    return (
        [history.write_line(one) for one in records],
        [history.write_line(one) for one in variables],
    )


def _dated(record: history.Record) -> history.Record:
    """The record with the builds that are known to have brought its changes."""
    for key in ("defaults", "shapes"):
        record[key] = [
            [KNOWN.get((record["name"], build), build), told] for build, told in record[key]
        ]
    return record


def ollama(folder: Path) -> list[str]:
    """Lines of ollama.jsonl."""
    releases = sorted(
        (one.name[1:] for one in folder.iterdir() if (one / "api" / "types.go").is_file()),
        key=lambda text: [int(part) for part in text.split(".")],
    )
    readings = {
        one: parameters((folder / f"v{one}" / "api" / "types.go").read_text("utf-8"))
        for one in releases
    }
    head: history.Record = {"releases": [[one, ""] for one in readings]}
    return [history.write_line(one) for one in (head, *history.options(readings))]


def main() -> int:
    """Reads the builds and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="holds one folder for each build")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the tables")
    words = parser.parse_args()
    found = sorted(
        (one for one in words.folder.iterdir() if re.fullmatch(r"b\d+", one.name)),
        key=lambda one: int(one.name.lstrip("b")),
    )
    builds = {one.name: list(options_of(one)) for one in found}
    written = dict(zip(("options.jsonl", "environment.jsonl"), tables(builds), strict=True))
    written["ollama.jsonl"] = ollama(words.folder)
    for name, lines in written.items():
        words.out.joinpath(name).write_text("\n".join(lines) + "\n", "utf-8")
        print(f"{name}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())

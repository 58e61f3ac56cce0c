"""Command lines as argparse takes them apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from capcheck.argv import Argv, read_argv
from capcheck.options import OptionTable
from capcheck.values import Place
from capcheck.words import Word

SHAPES: dict[str, list[Any]] = {
    "max_num_seqs": [["1.0.0", {"type": "int"}]],
    "max_num_scheduled": [["2.0.0", {"type": "int"}]],
    "tensor_parallel_size": [["1.0.0", {"type": "int", "shorts": ["-tp"]}]],
    "quantization": [["1.0.0", {"type": "text", "shorts": ["-q"]}]],
    "level": [["2.0.0", {"type": "int", "shorts": ["-O"]}]],
    "compilation": [["1.0.0", {"type": "json", "shorts": ["-O"]}], ["2.0.0", {"type": "json"}]],
    "enforce_eager": [["1.0.0", {"type": "bool", "negatable": True}]],
    "hf_token": [["1.0.0", {"type": "text", "optional_value": True}]],
    "served_name": [["1.0.0", {"type": "list"}]],
    "middleware": [["1.0.0", {"type": "list", "repeated": True}]],
    "speculative": [["1.0.0", {"type": "json"}]],
    "share": [["1.0.0", {"type": "float"}], ["2.0.0", {"type": "float", "aliases": ["part"]}]],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> OptionTable:
    records: list[dict[str, Any]] = [{"releases": [["1.0.0", ""], ["2.0.0", ""]]}]
    for name, shapes in SHAPES.items():
        start = shapes[0][0]
        edges = {"before_first": "1.0.0", "first": "2.0.0"} if start == "2.0.0" else {}
        record = {"name": name, "group": "engine", "defaults": [[start, 0]], "shapes": shapes}
        records.append({**record, **edges})
    file = tmp_path_factory.mktemp("table") / "options.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return OptionTable(file)


def words(line: str) -> list[Word]:
    """Words split at blanks, each where it stands in line 1."""
    found, column = [], 1
    for text in line.split(" "):
        place = Place("run.sh", 1, column, 1, column + len(text))
        found.append(Word(text, place, verbatim=True))
        column += len(text) + 1
    return found


def plain(argv: Argv) -> list[tuple[str, Any]]:
    def value(given: Any) -> Any:
        if isinstance(given, bool):
            return given
        return [word.text for word in given] if isinstance(given, list) else given.text

    return [(option.name or option.written, value(option.value)) for option in argv.options]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--max-num-seqs 5", [("max_num_seqs", "5")]),
        ("--max_num_seqs 5", [("max_num_seqs", "5")]),
        ("--max-num-seqs=5", [("max_num_seqs", "5")]),
        ("--max-num-seqs=", [("max_num_seqs", "")]),
        ("--max-num-seqs -1", [("max_num_seqs", "-1")]),
        ("--max-num-seqs --enforce-eager", [("max_num_seqs", True), ("enforce_eager", True)]),
        ("--max-num-seqs", [("max_num_seqs", True)]),
        ("--max-num-se 5", [("max_num_seqs", "5")]),
        ("--max-num-s 5", [("--max-num-s", "5")]),  # two releases differ: left as written
        ("-tp 2", [("tensor_parallel_size", "2")]),
        ("-tp=2", [("tensor_parallel_size", "2")]),
        ("-qawq", [("quantization", "awq")]),
        ("-q=awq", [("quantization", "awq")]),
        ("-O3", [("level", "3")]),
        ("-O 3", [("level", "3")]),
        ("--enforce-eager", [("enforce_eager", True)]),
        ("--no-enforce-eager", [("enforce_eager", False)]),
        ("--enforce-eager true", [("enforce_eager", "true")]),
        ("--enforce-eager=false", [("enforce_eager", "false")]),
        ("--hf-token", [("hf_token", True)]),
        ("--hf-token abc", [("hf_token", "abc")]),
        ("--served-name a b -tp 2", [("served_name", ["a", "b"]), ("tensor_parallel_size", "2")]),
        ("--served-name=a", [("served_name", ["a"])]),
        ("--middleware a --middleware b", [("middleware", ["a"]), ("middleware", ["a", "b"])]),
        ("--speculative.model m", [("speculative.model", "m")]),
        ("--speculative.a.b=1", [("speculative.a.b", "1")]),
        (
            "--speculative.list+ a,b --speculative.list+=c",
            [("speculative.list", ["a", "b"]), ("speculative.list", ["a", "b", "c"])],
        ),
        ("--speculative {}", [("speculative", "{}")]),
        ("--part 0.5", [("share", "0.5")]),
        ("--bogus 7", [("--bogus", "7")]),
        ("--bogus --enforce-eager", [("--bogus", True), ("enforce_eager", True)]),
        ("--bogus=7", [("--bogus", "7")]),
        ("--share 0.5 --share 0.6", [("share", "0.5"), ("share", "0.6")]),
    ],
)
def test_options(table: OptionTable, line: str, expected: list[tuple[str, Any]]) -> None:
    argv = read_argv(words(line), table)
    assert plain(argv) == expected
    assert argv.positionals == ()


def test_a_release_settles_prefixes_and_shorts(table: OptionTable) -> None:
    assert plain(read_argv(words("--max-num-s 5"), table, (1, 0, 0))) == [("max_num_seqs", "5")]
    assert plain(read_argv(words("-O3"), table, (1, 0, 0))) == [("compilation", "3")]


def test_positional_words(table: OptionTable) -> None:
    argv = read_argv(words("model --enforce-eager stray -- --max-num-seqs 5"), table)
    assert [word.text for word in argv.positionals] == ["model", "stray", "--max-num-seqs", "5"]
    assert plain(argv) == [("enforce_eager", True)]


def test_places(table: OptionTable) -> None:
    option, short, flag = read_argv(words("--max-num-seqs=5 -O3 --enforce-eager"), table).options
    assert (option.written, option.place.column, option.place.end_column) == (
        "--max-num-seqs",
        1,
        15,
    )
    assert (option.value_place.column, option.value_place.end_column) == (16, 17)
    assert (short.written, short.value_place.column) == ("-O", 20)
    assert flag.value_place == flag.place


def test_unresolved_words(table: OptionTable) -> None:
    place = Place("run.sh")
    extra = Word("$EXTRA", place, ("EXTRA",))
    seqs = Word("--max-num-seqs=$SEQS", place, ("SEQS",), quoted=True)
    whole = Word("--$NAME=3", place, ("NAME",))
    argv = read_argv([seqs, extra, whole, Word("-tp", place), extra], table)
    assert argv.positionals == (extra, whole)
    value = argv.options[0].value
    assert isinstance(value, Word) and (value.text, value.unresolved) == ("$SEQS", ("SEQS",))
    assert argv.options[1].value == extra


@given(some.lists(some.text(alphabet="-=.+O tpqa1_{}$", max_size=8)))
def test_every_word_ends_up_somewhere(texts: list[str]) -> None:
    """Nothing raises, and no option's place is lost, whatever the words."""
    table = OptionTable(Path("/nonexistent/options.jsonl"))
    given_words = [Word(text, Place("f", n + 1)) for n, text in enumerate(texts)]
    argv = read_argv(given_words, table)
    used = {word.place.line for word in argv.positionals}
    for option in argv.options:
        used |= {option.place.line, option.value_place.line}
    separators = {word.place.line for word in given_words if word.text == "--"}
    assert used | separators == {word.place.line for word in given_words}

"""Every character of a scalar stands where it is written, or the whole scalar is marked."""

from __future__ import annotations

from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from node_tools import at, node_at, scalar_at, scalars

from capcheck.embedded import offset_places, whole_text
from capcheck.source import Scalar, Style, read_documents
from capcheck.values import Place


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        "k: run --len 32k now",
        "k: 'run --len 32k'",
        "k: 'it''s --len 32k'",
        'k: "run\\t\\"x\\" \\u00e9 --len 32k"',
        'k: "run \\\n  --len 32k"',
        'k: "run\n\n  --len 32k"',
        "k: run\n  and\n\n  --len 32k\n  more",
        "k: 'run ''x''\n  --len 32k'",
        "k: |\n  run\n    --len 32k\n",
        "k: |4-\n      run\n    --len 32k\n",
        "k: &a |+ # note\n\n  run\n\n  --len 32k\n\n",
        "k: >-\n  run\n  --len 32k\n  more\n",
        "k: >\n  run\n\n    more\n  é😀 --len 32k\n",
        "k: !!str >1\n  run\n --len 32k\n",
        'k: ["x", "run --len 32k"]',
    ],
)
def test_a_stretch_of_a_scalar_stands_where_it_is_written(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    scalar = next(one for one in scalars(node_at(text)) if "--len" in one.text)
    start = scalar.text.index("32k")
    place = offset_places(scalar, text)(start, start + 3)
    assert place.exact and place.path == scalar.place.path
    assert at(text, place) == "32k"


def test_json_escapes() -> None:
    text = '{"k": "\\ud83d\\ude00\\/ \\b 32k"}'
    scalar = scalar_at(text, "k", file="f.json")
    places = offset_places(scalar, text)
    assert scalar.text == "😀/ \b 32k"
    assert at(text, places(0, 1)) == "\\ud83d\\ude00"
    assert at(text, places(5, 8)) == "32k"


def test_stretches_over_lines_and_beyond_the_ends() -> None:
    text = "k: >\n  one\n  two\n"
    scalar = scalar_at(text, "k")
    places = offset_places(scalar, text)
    assert at(text, places(0, 7)) == "one\n  two"
    assert at(text, places(-5, 100)).startswith("one\n  two")
    assert places(2, 2)[1:5] == (2, 5, 2, 5)
    assert places(99, 99)[1:5] == (4, 1, 4, 1)


def test_nothing_stands_where_its_quotes_do() -> None:
    scalar = scalar_at("k: ''\n", "k")
    assert offset_places(scalar, "k: ''\n")(0, 0) == scalar.place


def test_a_scalar_that_stands_elsewhere_is_marked_as_a_whole() -> None:
    scalar = scalar_at("k: value\n", "k")
    place = offset_places(scalar, "something else altogether")(0, 2)
    assert place == scalar.place._replace(exact=False)
    far = scalar._replace(place=Place("f", 9, 1, 9, 4))
    assert offset_places(far, "x")(0, 1).exact is False


words = st.lists(
    st.sampled_from(
        [
            "a",
            "b ",
            "  ",
            "\n",
            "\n\n",
            " \n",
            "'",
            '"',
            "\\",
            "é",
            "😀",
            "#",
            ": ",
            "\t",
            "-",
            "\\\n",
        ]
    ),
    max_size=12,
).map("".join)


@given(
    words,
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([12, 80]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_character_of_a_dumped_scalar_has_a_place(
    value: str, style: str | None, width: int, unicode: bool, newline: str
) -> None:
    text = yaml.dump([{"x": value}, 1], default_style=style, width=width, allow_unicode=unicode)
    text = text.replace("\n", newline)
    scalar = scalar_at(text, 0, "x")
    places = offset_places(scalar, text)
    for offset, char in enumerate(scalar.text):
        place = places(offset, offset + 1)
        assert place.exact
        if char not in " \n\t'\"\\" and place.end_column - place.column == 1:
            assert at(text, place) == char


block_lines = st.lists(st.text("ab \t#'", max_size=6), max_size=6)


@given(block_lines, st.sampled_from(["|", ">", "|-", ">-", "|+", ">+", "|2", ">1-"]), st.booleans())
def test_every_place_in_a_block_is_right(lines: list[str], header: str, more: bool) -> None:
    text = f"k: {header}\n" + "".join(f"  {line}\n" for line in lines) + "z: 1\n" * more
    documents = read_documents(text, "f")
    if documents.problems:
        return
    scalar = scalar_at(text, "k")
    places = offset_places(scalar, text)
    for offset, char in enumerate(scalar.text):
        place = places(offset, offset + 1)
        if place.exact and char in "ab#'":
            assert at(text, place) == char
    if scalar.text.strip():
        assert places(0, 1).exact


@given(st.text(max_size=30), st.text(max_size=30), st.integers(-5, 40), st.integers(-5, 40))
def test_no_text_raises(text: str, source: str, start: int, end: int) -> None:
    place = Place("f", 1, 1, 1, 5)
    for style in get_args(Style):
        found = offset_places(Scalar(text, "text", style, place), source)(start, end)
        assert found.file == "f"


def test_whole_text() -> None:
    text = "#!/bin/sh\r\nexec x\n"
    scalar = whole_text(text, "run.sh")
    assert scalar.place == Place("run.sh", 1, 1, 3, 1)
    assert offset_places(scalar, text)(16, 17)[1:] == (2, 6, 2, 7, (), True)

"""Where things stand: every place points at what it is the place of."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from node_tools import at, node_at, scalars

from capcheck.source import Mapping, read_documents

words = st.text(st.sampled_from("ab'\"\\ é😀:#-\n$"), max_size=8)
data = st.recursive(
    words | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def check_places(text: str, file: str) -> None:
    for root in read_documents(text, file).roots:
        for scalar in scalars(root):
            there = at(text, scalar.place)
            if scalar.style == "plain" and scalar.place.line == scalar.place.end_line:
                assert there == scalar.text
            elif scalar.style in ("single", "double"):
                assert there[0] == there[-1] == {"single": "'", "double": '"'}[scalar.style]
            elif scalar.style in ("literal", "folded"):
                assert there[0] in "|>"


@given(
    data,
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([None, True]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_yaml_places(value: Any, style: str | None, flow: bool | None, newline: str) -> None:
    text = yaml.safe_dump(
        [value, {"k": value}], default_style=style, default_flow_style=flow, allow_unicode=True
    )
    check_places("# é\n" + text.replace("\n", newline), "f.yaml")


@given(data, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_places(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    documents = read_documents(text, "f.json")
    assert documents.problems == ()
    check_places(text, "f.json")


@pytest.mark.parametrize(
    ("text", "path", "span"),
    [
        ("a: 1\n", ("a",), (1, 4, 1, 5)),
        ("a: 'it''s'\n", ("a",), (1, 4, 1, 11)),
        ("a:\nb: 1\n", ("a",), (1, 3, 1, 3)),
        ("a: &x 1\n", ("a",), (1, 7, 1, 8)),
        ("a: &x !!str 1 # c\n", ("a",), (1, 13, 1, 14)),
        ("a: &x # c\n  b: 1\n", ("a",), (2, 3, 2, 7)),
        ("a: &x\nb: 1\n", ("a",), (1, 6, 1, 6)),
        ("[&x , 1]\n", (0,), (1, 4, 1, 4)),
        ("a: !<tag:x,y> v\n", ("a",), (1, 15, 1, 16)),
        ("a: |\n  x\n  y\n\n\nb: 1\n", ("a",), (1, 4, 3, 4)),
        ("a: |\r\n  x\r\n\r\nb: 1\r\n", ("a",), (1, 4, 2, 4)),
        ("a: >-\n  x\n\n  # text\n", ("a",), (1, 4, 4, 9)),
        ("a:\n  b: 1\n\n# c\nc: 2\n", ("a",), (2, 3, 2, 7)),
        ("a:\n- 1\n- [2,\n   3]\n\nb: 1\n", ("a",), (2, 1, 4, 6)),
        ("a: {b: 1,\n  }\nc: 1\n", ("a",), (1, 4, 2, 4)),
        ("😀é: [x, ü]\n", ("😀é", 1), (1, 9, 1, 10)),
        ("\ufeffa: 1\n", ("a",), (1, 4, 1, 5)),
        ("---\na: 1\n", ("a",), (2, 4, 2, 5)),
        ("x: 'a\u2028b'\ny: 1\n", ("y",), (2, 4, 2, 5)),
        ("x: 'a\x85b'\ny: 1\n", ("x",), (1, 4, 1, 9)),
        ("a: one\n  two\n", ("a",), (1, 4, 2, 6)),
    ],
)
def test_places(text: str, path: tuple[str | int, ...], span: tuple[int, ...]) -> None:
    place = node_at(text, *path).place
    assert place[1:5] == span
    assert place.exact


def test_paths() -> None:
    root = read_documents("a:\n  - b: 1\n    c/d: [x]\n", "dir/f.yaml").roots[0]
    found = [(one.text, one.place.path, one.place.file) for one in scalars(root)]
    assert found == [
        ("a", ("a",), "dir/f.yaml"),
        ("b", ("a", 0, "b"), "dir/f.yaml"),
        ("1", ("a", 0, "b"), "dir/f.yaml"),
        ("c/d", ("a", 0, "c/d"), "dir/f.yaml"),
        ("x", ("a", 0, "c/d", 0), "dir/f.yaml"),
    ]


def test_places_after_a_bad_document() -> None:
    text = "a: [\n---\nb: &x |\n  t\nc: *x\n"
    documents = read_documents(text, "f")
    (root,) = documents.roots
    assert isinstance(root, Mapping)
    assert [(key.text, key.place.line) for key, _ in root.entries] == [("b", 3), ("c", 5)]
    value = root.get("b")
    assert value is not None and value.place[1:5] == (3, 7, 4, 4)

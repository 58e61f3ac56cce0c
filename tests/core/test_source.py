"""Reading YAML: data, types, keys, merges, aliases."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from capcheck.source import (
    Mapping,
    Node,
    Scalar,
    Sequence,
    as_boolean,
    as_integer,
    as_number,
    as_text,
    line_of,
    read_documents,
    to_plain,
)


def root(text: str, file: str = "f.yaml") -> Node:
    documents = read_documents(text, file)
    assert documents.problems == ()
    assert len(documents.roots) == 1
    return documents.roots[0]


def scalar(text: str) -> Scalar:
    node = root(f"k: {text}\n")
    assert isinstance(node, Mapping)
    found = node.get("k")
    assert isinstance(found, Scalar)
    return found


texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), include_characters="\n\t")
).filter(lambda text: "\ufeff" not in text)
leaves = st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False)
data = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def as_json_has_it(value: Any) -> Any:
    """What `to_plain` gives for plain data: endless numbers are text."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    if isinstance(value, dict):
        return {key: as_json_has_it(child) for key, child in value.items()}
    return [as_json_has_it(item) for item in value] if isinstance(value, list) else value


@given(
    data,
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([None, True, False]),
    st.sampled_from([10, 80]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_dumped_data_comes_back(
    value: Any, style: str | None, flow: bool | None, width: int, plain: bool, newline: str
) -> None:
    text = yaml.safe_dump(
        {"root": value},
        default_style=style,
        default_flow_style=flow,
        width=width,
        allow_unicode=plain,
        sort_keys=False,
    )
    text = text.replace("\n", newline)
    # Nearly always the value itself: the emitter breaks some lines wrongly.
    assert to_plain(root(text)) == as_json_has_it(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("text", "kind", "plain"),
    [
        ("1e9", "number", 1e9),
        ("1.0e9", "number", 1e9),
        ("70.6e9", "number", 70.6e9),
        ("1.0e+9", "number", 1e9),
        ("-.5", "number", -0.5),
        ("1.", "number", 1.0),
        ("0.10", "number", 0.1),
        ("12:30", "integer", 750),
        ("-1:00", "integer", -60),
        ("1:02:03.5", "number", 3723.5),
        ("017", "integer", 15),
        ("0x1F", "integer", 31),
        ("0b101", "integer", 5),
        ("08", "text", "08"),
        ("1_000", "integer", 1000),
        ("0", "integer", 0),
        ("yes", "boolean", True),
        ("NO", "boolean", False),
        ("on", "boolean", True),
        ("Off", "boolean", False),
        ("y", "text", "y"),
        ("~", "null", None),
        ("null", "null", None),
        ("Null", "null", None),
        ("", "null", None),
        (".nan", "number", ".nan"),
        (".inf", "number", ".inf"),
        ("-.INF", "number", "-.INF"),
        ("1e400", "number", "1e400"),
        ("2024-01-01", "timestamp", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "timestamp", "2024-01-01T10:00:00Z"),
        ("1.2.3", "text", "1.2.3"),
        ("0.11.0", "text", "0.11.0"),
        ("=", "text", "="),
        ("'12'", "text", "12"),
        ('"yes"', "text", "yes"),
        ("!!str 12", "text", "12"),
        ("! 12", "text", "12"),
        ("!!int '12'", "integer", 12),
        ("!!float 1", "number", 1.0),
        ("9" * 500, "text", "9" * 500),
        ("1" * 320, "integer", "1" * 320),
    ],
)
def test_types_of_scalars(text: str, kind: str, plain: object) -> None:
    found = scalar(text)
    assert found.type == kind
    assert to_plain(found) == plain
    assert type(to_plain(found)) is type(plain)


@pytest.mark.parametrize(
    ("text", "integer", "number", "boolean"),
    [
        ("017", 15, 15.0, None),
        ("'017'", 17, 17.0, None),
        ("08", 8, 8.0, None),
        ("1e9", 10**9, 1e9, None),
        ("2.0", 2, 2.0, None),
        ("2.5", None, 2.5, None),
        ("'0.9'", None, 0.9, None),
        ("' 8 '", 8, 8.0, None),
        ("'12:30'", None, None, None),
        ("12:30.5", None, 750.5, None),
        ("-12:30.5", None, -750.5, None),
        (".nan", None, None, None),
        (".inf", None, None, None),
        ("1e400", None, None, None),
        ("1" * 320, None, None, None),
        (":".join(["1", *["59"] * 130]) + ".0", None, float, None),
        ("'yes'", None, None, True),
        ("off", None, None, False),
        ("~", None, None, None),
        ("32k", None, None, None),
        ("!own 5", None, None, None),
    ],
)
def test_a_field_decides_about_its_text(
    text: str, integer: int | None, number: object, boolean: bool | None
) -> None:
    found = scalar(text)
    assert as_integer(found) == integer
    if number is float:
        assert isinstance(as_number(found), float)
    else:
        assert as_number(found) == number
    assert as_boolean(found) is boolean
    assert as_text(found) == found.text


def test_integers_keep_every_digit() -> None:
    assert as_integer(scalar("123456789012345678901")) == 123456789012345678901


def test_styles() -> None:
    node = root("a: x\nb: 'x'\nc: \"x\"\nd: |\n  x\ne: >\n  x\n")
    assert isinstance(node, Mapping)
    styles = [value.style for _, value in node.entries if isinstance(value, Scalar)]
    assert styles == ["plain", "single", "double", "literal", "folded"]


def test_several_documents_and_empty_ones() -> None:
    documents = read_documents("---\na: 1\n---\n# only a comment\n---\n---\nb\n...\n", "f")
    assert [to_plain(one) for one in documents.roots] == [{"a": 1}, "b"]
    assert documents.problems == ()


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "\ufeff", "--- # x\n...\n"])
def test_nothing(text: str) -> None:
    assert read_documents(text, "f")[:2] == ((), ())


def test_keys_are_text() -> None:
    assert to_plain(root("1: a\ntrue: b\n~: c\n2024-01-01: d\n")) == {
        "1": "a",
        "true": "b",
        "~": "c",
        "2024-01-01": "d",
    }


def test_mapping_lookup() -> None:
    node = root("a: 1\nb: [x]\n")
    assert isinstance(node, Mapping)
    assert isinstance(node.get("b"), Sequence)
    assert node.get("c") is None
    key = node.key("b")
    assert key is not None and key.place.line == 2
    assert node.key("c") is None


def test_merge_keys_lose_to_the_mappings_own() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  y: 0\n  <<: [*a, *b]\n  w: 5\n"
    node = root(text)
    assert to_plain(node)["c"] == {"x": 1, "z": 4, "y": 0, "w": 5}
    assert isinstance(node, Mapping)
    merged = node.get("c")
    assert isinstance(merged, Mapping)
    x = merged.get("x")
    assert x is not None and (x.place.line, x.place.path) == (1, ("a", "x"))


def test_a_quoted_merge_key_is_a_key() -> None:
    assert to_plain(root("'<<': {a: 1}\n")) == {"<<": {"a": 1}}


def test_aliases_keep_the_place_of_what_they_stand_for() -> None:
    node = root("a: &x\n  - 1\nb: *x\nc: [*x, *x]\n")
    assert to_plain(node) == {"a": [1], "b": [1], "c": [[1], [1]]}
    assert isinstance(node, Mapping)
    assert node.get("b") is node.get("a")


def test_alias_as_a_key() -> None:
    assert to_plain(root("a: &k name\n*k : 1\n")) == {"a": "name", "name": 1}


def test_an_applications_tag_is_kept_and_nothing_is_made_of_it() -> None:
    node = root("a: !reset null\nb: !override [1]\nc: !x {d: 1}\n")
    assert to_plain(node) == {"a": "null", "b": [1], "c": {"d": 1}}
    assert isinstance(node, Mapping)
    assert [value.tag for _, value in node.entries] == ["!reset", "!override", "!x"]


def test_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    text = "a: &x |\n  t\n\nb: !!str 1\nc: [*x, {d: 'e'}]\n"
    slow = read_documents(text, "f")
    monkeypatch.setattr(yaml, "__with_libyaml__", True)
    assert slow == read_documents(text, "f")
    assert slow.problems == () and len(slow.roots) == 1


@pytest.mark.parametrize(
    ("line", "expected"), [(1, "a"), (2, ""), (3, "b\x85c"), (4, "d"), (5, ""), (6, ""), (0, "")]
)
def test_line_of(line: int, expected: str) -> None:
    assert line_of("a\n\nb\x85c\rd\r\n", line) == expected


def test_line_of_a_very_long_line() -> None:
    assert len(line_of("x" * 10_000_000 + "\ny", 1)) == 10_000_000

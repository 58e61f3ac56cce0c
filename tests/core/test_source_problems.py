"""Bad YAML and JSON: one clear sentence at the right place, and the rest is still read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from capcheck.source import (
    PROBLEM_RULES,
    Documents,
    Mapping,
    Node,
    Scalar,
    read_documents,
    to_plain,
)


def read(text: str, file: str = "f.yaml") -> Documents:
    documents = read_documents(text, file)
    for problem in documents.problems:
        assert problem.rule in PROBLEM_RULES
        assert problem.message and len(problem.message) < 200 and "\n" not in problem.message
        assert problem.place.file == file
        assert 1 <= problem.place.line <= text.count("\n") + text.count("\r") + 1
    return documents


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a:\n\tb: 1", 2, 1, "a tab is used as indentation"),
        ("a:\n  - x\n\t- y\n", 3, 1, "a tab is used as indentation"),
        ("a: b: c", 1, 5, "': ' where no key can stand"),
        ("a: 1\n  b: 2\n", 2, 4, "': ' where no key can stand"),
        ("a: [1, 2\nb: 3", 2, 2, "the [ of line 1, column 4 is still open"),
        ("a: [1, 2\n", 1, 4, "the [ that opens here is never closed"),
        ("a: {b: 1", 1, 4, "the { that opens here is never closed"),
        ("a: 'x\nb: y\n", 1, 4, "the quote ' that opens here is never closed"),
        ('a: "x\n---\nb', 1, 4, 'the quote " that opens here is never closed'),
        ("a:\n  - x\n y: 2", 3, 2, "expected a key with the indentation of line 1, column 1"),
        ("- a\nb: 1", 2, 1, "expected a list item (- ) with the indentation of line 1"),
        ("a: @x", 1, 4, "a value cannot start with '@'"),
        ("a: `x`", 1, 4, "a value cannot start with '`'"),
        ("a: %x", 1, 4, "a value cannot start with '%'"),
        ('a: "\\d+"', 1, 5, "\\d is no escape in double quotes"),
        ("a: !x!y z", 1, 4, "this tag is not known"),
        ("a: *", 1, 4, "starts with * is an alias"),
        ("files: *.txt", 1, 8, "starts with * is an alias"),
        ("a: & b", 1, 4, "starts with & is an anchor"),
        ("a: |2x\n  b", 1, 6, "after | or > may follow"),
        ("a: - b", 1, 4, "a list item cannot start here"),
        ("x: [a, b]]", 1, 10, "this ] closes nothing"),
        ('x: "a" b', 1, 8, "nothing may follow a value that is closed"),
        ("x: ]", 1, 4, "expected a value, but found ']'"),
        ("x: [,]", 1, 5, "expected a value"),
        ("a\nb\nc: 1\n", 3, 2, "': ' where no key can stand"),
        ("a: 1\nb\n", 2, 1, "a ':' is missing"),
        ("a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", 2, 1, "merge conflict"),
        ("a: \x07", 1, 4, "U+0007 is not allowed"),
        ("a: \ud800", 1, 4, "U+D800 is not allowed"),
        ("a: 1\nb: \ufeff", 2, 4, "byte order mark in the middle"),
        ("? [a]\n: b\nc: d", 1, 3, "a key must be text"),
        ("<<: 3\nc: d", 1, 1, "the merge key << takes a mapping"),
        ("a: !!python/name:x y\n", 1, 4, "the tag !!python/name:x is not one that is read safely"),
    ],
)
def test_yaml_errors(text: str, line: int, column: int, words: str) -> None:
    for with_libyaml in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml, "__with_libyaml__", with_libyaml)
            (problem,) = read(text).problems
            assert (problem.rule, problem.place.line) == ("spec/yaml", line)
            assert words in problem.message
            if with_libyaml:
                assert problem.place.column == column


def test_a_bad_directive() -> None:
    (problem,) = read("%FOO\na: 1").problems
    assert "is no directive that YAML knows" in problem.message
    assert problem.place[1:3] == (1, 5)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: {{ .Values.x }}\n", 1, 4),
        ("# c\nimage: {{ x }}:1\n", 2, 8),
        ("a:\n{{- if .x }}\n  b: 1\n{{- end }}\n", 2, 1),
        ("{% if x %}\na: 1\n{% endif %}\n", 1, 1),
        ("a:\n  - {{ x }}\n---\nb: {{ y }}\n", 2, 5),
        ("{{ x }}: 1\n", 1, 1),
    ],
)
def test_templates_are_named_once(text: str, line: int, column: int) -> None:
    documents = read(text)
    (problem,) = documents.problems
    assert problem.rule == "spec/template"
    assert (problem.place.line, problem.place.column) == (line, column)
    assert documents.roots == ()
    (problem,) = read("{{ x }}", "f.json").problems
    assert problem.rule == "spec/template"


def test_braces_in_quotes_are_no_template() -> None:
    assert read("a: '{{ x }}'\nb: x {{ y }}\n").problems == ()


def test_duplicate_keys_name_both_places_and_the_last_counts() -> None:
    documents = read("a: {x: 1, y: 2, 'x': 3}\nb: 1\nb: 2\n")
    assert [to_plain(one) for one in documents.roots] == [{"a": {"y": 2, "x": 3}, "b": 2}]
    inner, outer = documents.problems
    assert inner.rule == outer.rule == "spec/duplicate-key"
    assert inner.place[1:5] == (1, 17, 1, 20) and "line 1, column 5" in inner.message
    assert outer.place[1:5] == (3, 1, 3, 2) and "line 2, column 1" in outer.message
    assert outer.place.path == ("b",)


def test_two_merge_keys() -> None:
    documents = read("a: &a {x: 1}\nb: &b {x: 2}\nc:\n  <<: *a\n  <<: *b\n")
    assert [problem.rule for problem in documents.problems] == ["spec/duplicate-key"]
    assert to_plain(documents.roots[0])["c"] == {"x": 2}


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: *b\n", "no anchor &b"), ("a: &b [*b]\n", "inside its own anchor")],
)
def test_aliases_that_cannot_be_resolved(text: str, words: str) -> None:
    documents = read(f"ok: 1\n---\n{text}---\nok: 2\n")
    (problem,) = documents.problems
    assert problem.rule == "spec/alias" and words in problem.message and problem.place.line == 3
    assert [to_plain(one) for one in documents.roots] == [{"ok": 1}, {"ok": 2}]


def test_other_documents_survive_a_bad_one() -> None:
    text = (
        "a: 1\n---\nb: [\n---\nc: |\n  ---\n  text\n--- {d: 'x\n...\n---\n? x\n"
        "---\n\te: \x07\n--- >\n f\n%YAML 1.1\n---\ng: 1\n"
    )
    documents = read(text)
    found = [to_plain(one) for one in documents.roots]
    assert found == [{"a": 1}, {"c": "---\ntext\n"}, {"x": None}, "f\n", {"g": 1}]
    assert [problem.place.line for problem in documents.problems] == [3, 8, 13]


def test_what_follows_a_document_without_a_separator_spoils_it() -> None:
    documents = read("a: 1\n---\n{b: 1}}\n---\nc: 1\n")
    assert [to_plain(one) for one in documents.roots] == [{"a": 1}, {"c": 1}]
    assert [problem.message for problem in documents.problems] == [
        "text after the end of the document"
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "words", "help"),
    [
        ('{"a": 1,}', 1, 9, "expected a key in double quotes", "remove the comma before it"),
        ("[1,\n\t]", 2, 2, "expected a value", "remove the comma before it"),
        ("{'a': 1}", 1, 2, "expected a key in double quotes or }", "double quotes only"),
        ('{"a": 1 // x\n}', 1, 9, "expected , or } here", "no comments"),
        ('{"a" 1}', 1, 6, "expected : after the key", ""),
        ("[1 2]", 1, 4, "the [ of line 1, column 1 is still open", ""),
        ("[1, 2", 1, 6, "but the text ends", ""),
        ('["x', 1, 2, "the quote that opens here is never closed", ""),
        ('{"a": "x\ny"}', 1, 7, "the quote that opens here is never closed", ""),
        ('"a\tb"', 1, 3, "U+0009 must be escaped", ""),
        ('{"a": "\\q"}', 1, 8, "\\q is no escape in JSON", ""),
        ("{} x", 1, 4, "text after the end", ""),
        ("01", 1, 1, "expected a value", ""),
        ('{"a": tru}', 1, 7, "expected a value", ""),
        ("-", 1, 1, "expected a value", ""),
    ],
)
def test_json_errors(text: str, line: int, column: int, words: str, help: str) -> None:
    (problem,) = read(text, "f.json").problems
    assert problem.rule == "spec/json"
    assert (problem.place.line, problem.place.column) == (line, column)
    assert words in problem.message and help in problem.help


def test_json_that_yaml_refuses() -> None:
    text = '{"a":\n\t{"b": "\\ud83d\\ude00\\/", "c": [NaN, -Infinity, 1E5, -0, true, null]}}\n'
    expected = {"a": {"b": "😀/", "c": ["NaN", "-Infinity", 1e5, 0, True, None]}}
    for file in ("f.json", "f.yaml", "pipe"):
        documents = read(text, file)
        assert documents.problems == ()
        assert [to_plain(one) for one in documents.roots] == [expected]


def test_yaml_in_a_json_file_is_read_but_said() -> None:
    documents = read("a: 1\n", "f.json")
    assert [problem.rule for problem in documents.problems] == ["spec/json"]
    assert [to_plain(one) for one in documents.roots] == [{"a": 1}]


def test_json_duplicates_and_empty() -> None:
    documents = read('{"a": 1, "a": 2}', "f.json")
    assert [problem.rule for problem in documents.problems] == ["spec/duplicate-key"]
    assert [to_plain(one) for one in documents.roots] == [{"a": 2}]
    assert read(" \n", "f.json")[:2] == ((), ())


def test_lone_surrogates_do_not_get_out() -> None:
    (root,) = read('["\\ud800x"]', "f.json").roots
    assert to_plain(root) == ["\ufffdx"]


PIECES = (
    "a|b: |- |\n|  |'|\"|[|]|{|}|, |&a |*a|!t |!!str |# c|---\n|...\n|%|\t|<<: |? |:|\\|\x85|\r\n"
    '|\r|\u2028|😀|{{|1e9|\ufeff|\x00|\ud800|"k": |=|~|>\n'
)
tokens = st.lists(st.sampled_from([*PIECES.split("|"), "|\n"]), max_size=25).map("".join)


@given(tokens | st.text(max_size=40), st.sampled_from(["f.yaml", "f.json"]))
@example("--- a\n%\n---\n", "f.yaml")
@example("%YAML 1.1\n%YAML 1.1\n--- a", "f.yaml")
def test_no_text_raises(text: str, file: str) -> None:
    for root in read(text, file).roots:
        to_plain(root)


def texts(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Mapping):
        return {key.text: texts(child) for key, child in node.entries}
    return [texts(item) for item in node.items]


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML's own parser reads tabs otherwise")
@given(tokens)
def test_what_is_read_is_what_pyyaml_reads(text: str) -> None:
    documents = read(text.removeprefix("\ufeff"))
    if documents.problems or "<<" in text or text.count("&a") > 1:
        return  # PyYAML refuses to anchor a name twice, YAML 1.2 does not
    loaded = [one for one in yaml.load_all(text, yaml.CBaseLoader) if one not in ("", None)]
    assert [texts(root) for root in documents.roots] == loaded

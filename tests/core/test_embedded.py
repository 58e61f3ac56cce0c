"""Kubernetes variables, list items, and YAML inside strings."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from node_tools import at, scalar_at, scalars

from capcheck.embedded import (
    Replacement,
    kubernetes_replacements,
    kubernetes_variables,
    list_word,
    offset_places,
    yaml_inside,
)
from capcheck.source import Mapping, Node, Scalar, to_plain
from capcheck.values import Place

VARIABLES = {"MODEL": "org/m", "SECRET": None, "EMPTY": "", "ODD": "$(MODEL)"}


@pytest.mark.parametrize(
    ("text", "expected", "unresolved"),
    [
        ("--model=$(MODEL)", "--model=org/m", ()),
        ("$(MODEL)$(MODEL)", "org/morg/m", ()),
        ("$$(MODEL)", "$(MODEL)", ()),
        ("$$$(MODEL)", "$org/m", ()),
        ("$$$$(MODEL)", "$$(MODEL)", ()),
        ("$(SECRET) $(NONE) $(NONE)", "$(SECRET) $(NONE) $(NONE)", ("SECRET", "NONE")),
        ("a$(EMPTY)b", "ab", ()),
        ("$(ODD)", "$(MODEL)", ()),
        ("$MODEL ${MODEL}", "$MODEL ${MODEL}", ()),
        ("$(MODEL", "$(MODEL", ()),
        ("cost $", "cost $", ()),
        ("$$", "$", ()),
        ("", "", ()),
    ],
)
def test_kubernetes_variables(text: str, expected: str, unresolved: tuple[str, ...]) -> None:
    assert kubernetes_variables(text, VARIABLES) == (expected, unresolved)


def test_kubernetes_replacements() -> None:
    found = kubernetes_replacements("x $(MODEL) $$(Y) $(NONE)", VARIABLES)
    assert found == (Replacement(2, 10, "org/m"), Replacement(11, 13, "$"))


def test_kubernetes_variables_do_not_grow_without_end() -> None:
    text, unresolved = kubernetes_variables("$(BIG)" * 100, {"BIG": "x" * 100_000})
    assert len(text) < 1_100_000 and unresolved == ("BIG",)


def test_list_word() -> None:
    text = 'args: ["--len=32k", --model=$(MODEL), "$(SECRET)"]\n'
    plain, model, secret = (
        list_word(scalar_at(text, "args", index), text, VARIABLES) for index in range(3)
    )
    assert (plain.text, at(text, plain.place), plain.quoted) == ("--len=32k", "--len=32k", True)
    assert at(text, plain.part(6, 9)) == "32k"
    assert (model.text, model.unresolved) == ("--model=org/m", ())
    assert at(text, model.place) == "--model=$(MODEL)" == at(text, model.part(8, 13))
    assert (secret.text, secret.unresolved) == ("$(SECRET)", ("SECRET",))


CONFIG_MAP = """\
kind: ConfigMap
data:
  engine.yaml: |
    max-model-len: 32k
    list: ['a''b',
      c]
    text: |
      one
      two
  quoted: "a: 1\\nb: \\"x\\"\\n"
  folded: >
    a: 1

    b: [x]
  model.json: '{"a": {"b": "it''s"}}'
  bad.yaml: |
    a: 1
    b: [
  two.yaml: |
    a: &x {y: 1}
    b: *x
    ---
    c: 1
"""


def inside(key: str) -> list[tuple[Node, Scalar]]:
    documents = yaml_inside(scalar_at(CONFIG_MAP, "data", key), CONFIG_MAP, key)
    assert documents.problems == ()
    return [(root, scalar) for root in documents.roots for scalar in scalars(root)]


@pytest.mark.parametrize("key", ["engine.yaml", "quoted", "folded", "model.json", "two.yaml"])
def test_places_of_yaml_inside_yaml(key: str) -> None:
    found = inside(key)
    for _, scalar in found:
        place = scalar.place
        assert place.exact and place.file == "f.yaml" and place.path[:2] == ("data", key)
        if scalar.style == "plain":
            assert at(CONFIG_MAP, place) == scalar.text
    root, value = found[0][0], found[1][1]
    if key == "engine.yaml":
        assert to_plain(root) == {
            "max-model-len": "32k",
            "list": ["a'b", "c"],
            "text": "one\ntwo\n",
        }
        assert value.place == Place("f.yaml", 4, 20, 4, 23, ("data", key, "max-model-len"))


def test_scalars_inside_strings_are_followed_too() -> None:
    text = next(scalar for _, scalar in inside("engine.yaml") if scalar.text == "one\ntwo\n")
    place = offset_places(text, CONFIG_MAP)(4, 7)
    assert place.exact and at(CONFIG_MAP, place) == "two"


def test_aliases_inside_strings_stay_shared() -> None:
    root = inside("two.yaml")[0][0]
    assert isinstance(root, Mapping) and root.get("a") is root.get("b")


def test_problems_of_yaml_inside_yaml() -> None:
    scalar = scalar_at(CONFIG_MAP, "data", "bad.yaml")
    (problem,) = yaml_inside(scalar, CONFIG_MAP, "bad.yaml").problems
    assert problem.rule == "spec/yaml" and problem.place.exact
    assert (problem.place.line, problem.place.column) == (18, 9)


def test_yaml_inside_a_string_that_cannot_be_followed() -> None:
    scalar = scalar_at("k: 'a: 1'\n", "k")
    (root,) = yaml_inside(scalar, "k: elsewhere\n", "x").roots
    assert root.place == scalar.place._replace(exact=False)


@given(st.text(st.sampled_from("ab:-[]{}'\" \n|>&*#"), max_size=20), st.booleans())
def test_no_inner_text_raises(text: str, quoted: bool) -> None:
    outer = yaml.dump({"k": text}, default_style='"' if quoted else "|")
    scalar = scalar_at(outer, "k")
    for root in yaml_inside(scalar, outer, "x").roots:
        assert all(one.place.path[0] == "k" for one in scalars(root))

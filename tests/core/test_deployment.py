"""Drafts: leaves and places, layers and what they override, assumptions, typed access."""

from __future__ import annotations

import pytest
from core_fakes import draft_of, fields_of, got, some

from capcheck.deployment import (
    Deployment,
    Draft,
    FieldPath,
    assume,
    flatten,
    merge,
    places_of,
    through,
)
from capcheck.source import Node, Scalar, read_documents
from capcheck.values import COMMAND_LINE, Origin, Place, Value

FOREIGN = "engine: {name: vllm, args: {max_model_len: 1, tensor_parallel_size: 1, seed: 1}}\n"
CONFIG = "engine: {args: {max_model_len: 2, tensor_parallel_size: 2}}\n"
SPEC = "engine: {args: {max_model_len: 3}}\nname: spec\n"


def texts(draft: Draft) -> dict[str, str]:
    found = {}
    for path, value in draft.fields.items():
        node = value.options[0] if value.options else None
        found[".".join(path)] = node.text if isinstance(node, Scalar) else str(node)
    return found


def test_leaves_by_path() -> None:
    fields, _ = fields_of("a: {b: 1, c: {d: x}}\ne: [1, 2]\nf: null\ng: {}\n")
    assert list(fields) == [("a", "b"), ("a", "c", "d"), ("e",)]
    value = fields["a", "c", "d"]
    assert (value.origin.kind, value.origin.word, value.place.line) == ("written", "d", 1)
    assert value.place.path == ("a", "c", "d")


def test_a_document_that_is_no_mapping_has_one_leaf() -> None:
    root = read_documents("just text\n", "a.yaml").roots[0]
    assert list(flatten(root)) == [()]
    assert places_of(root) == {}


def test_places_of_keys_and_of_the_whole() -> None:
    _, root = fields_of("a:\n  b: 1\nc: {}\n")
    places = places_of(root)
    assert set(places) == {(), ("a",), ("a", "b"), ("c",)}
    assert (places["a", "b"].line, places["a", "b"].column) == (2, 3)


def test_layers_override_upwards_and_keep_what_they_do_not_say() -> None:
    merged = merge(merge(draft_of(FOREIGN), draft_of(CONFIG)), draft_of(SPEC, "spec"))
    assert texts(merged) == {
        "engine.name": "vllm", "engine.args.max_model_len": "3", "name": "spec",
        "engine.args.tensor_parallel_size": "2", "engine.args.seed": "1",
    }  # fmt: skip
    lost = [(".".join(one.path), one.value.options[0]) for one in merged.overridden]
    assert [(path, node.text) for path, node in lost if isinstance(node, Scalar)] == [
        ("engine.args.max_model_len", "1"), ("engine.args.tensor_parallel_size", "1"),
        ("engine.args.max_model_len", "2"),
    ]  # fmt: skip
    assert merged.name == "spec"


def test_an_option_is_overridden_as_a_whole_but_a_field_leaf_by_leaf() -> None:
    lower = draft_of(
        "engine: {args: {speculative_config: {method: ngram, num: 3}}}\n"
        "workload: {prompt_tokens: {p50: 1, p95: 2}}\n"
    )
    higher = draft_of(
        "engine: {args: {speculative_config: {method: eagle}}}\n"
        "workload: {prompt_tokens: {p50: 9}}\n"
    )
    assert texts(merge(lower, higher)) == {
        "engine.args.speculative_config.method": "eagle", "workload.prompt_tokens.p50": "9",
        "workload.prompt_tokens.p95": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("workload: {prompt_tokens: 5}\n", "workload: {prompt_tokens: {p50: 9}}\n"),
        ("workload: {prompt_tokens: {p50: 5, p95: 6}}\n", "workload: {prompt_tokens: 9}\n"),
    ],
)
def test_a_figure_and_a_distribution_replace_each_other(lower: str, higher: str) -> None:
    merged = merge(draft_of(lower), draft_of(higher))
    assert list(texts(merged).values()) == ["9"]
    assert merged.overridden


def test_an_unknown_value_above_hides_a_known_one_below() -> None:
    higher = draft_of("model: {id: x}\n")
    path: FieldPath = ("model", "id")
    lost: Value[Node] = Value((), higher.fields[path].origin._replace(why="$M is not resolved"))
    merged = merge(draft_of("model: {id: y}\n"), higher._replace(fields={path: lost}))
    assert merged.fields[path].unknown


def test_a_nearer_layer_is_where_missing_options_would_be_written() -> None:
    lower, higher = draft_of("engine: {args: {a: 1}}\n"), draft_of("\n\nengine: {args: {b: 1}}\n")
    merged = Deployment(merge(lower, higher))
    assert merged.place_for("engine", "args", "c").line == 3
    assert merged.place_for("engine", "args", "a").line == 1


def test_what_is_included_remembers_every_place_that_led_there() -> None:
    outer, inner = Place("a.yaml", 4), Place("b.yaml", 2)
    draft = through(through(draft_of("name: x\n"), inner), outer)
    assert draft.fields[("name",)].origin.via == (outer, inner)


def test_problems_and_links_of_all_layers_are_kept() -> None:
    lower = draft_of("a: 1\n", problems=(("spec/schema", "low", Place("l")),))
    higher = draft_of("b: 1\n", problems=(("spec/schema", "high", Place("h")),))
    assert [one[1] for one in merge(lower, higher).problems] == ["low", "high"]


# assumptions


def assumed(text: str, path: FieldPath = ("hardware", "accelerator")) -> Draft:
    node = Scalar("acme/card", "text", "plain", Place(COMMAND_LINE))
    return assume(draft_of(text), path, node, "--assume accelerator=acme/card")


def test_an_absent_field_is_filled() -> None:
    value = assumed("name: d\n").fields["hardware", "accelerator"]
    assert (value.origin.kind, value.origin.why) == ("assumed", "--assume accelerator=acme/card")
    assert value.place.file == COMMAND_LINE


def test_an_unknown_field_is_filled() -> None:
    draft = draft_of("hardware: {accelerator: $GPU}\n")
    path = ("hardware", "accelerator")
    lost: Value[Node] = Value((), draft.fields[path].origin)
    node = Scalar("acme/card", "text", "plain", Place(COMMAND_LINE))
    made = assume(draft._replace(fields={path: lost}), path, node, "why")
    assert made.fields[path].origin.kind == "assumed"


@pytest.mark.parametrize("text", ["acme/other", "[a, b]"])
def test_a_known_field_stays(text: str) -> None:
    draft = assumed(f"hardware: {{accelerator: {text}}}\n")
    assert draft.fields["hardware", "accelerator"].origin.kind == "written"


def test_a_figure_is_not_assumed_beside_a_distribution() -> None:
    draft = assumed("workload: {prompt_tokens: {p50: 7}}\n", ("workload", "prompt_tokens"))
    assert list(draft.fields) == [("workload", "prompt_tokens", "p50")]


# typed access


def deployment(text: str) -> Deployment:
    return Deployment(draft_of(text))


def test_fields_in_their_types() -> None:
    made = deployment(
        "a: 32k\nb: 0.9\nc: 30%\nd: 800ms\ne: 4/min\nf: 'yes'\ng: 0.10\nh: '1'\ni: on\n"
    )
    assert got(made.count("a")) == 32_000
    assert got(made.number("b")) == 0.9
    assert got(made.share("c")) == 0.3
    assert got(made.seconds("d")) == 0.8
    assert got(made.rate("e")) == pytest.approx(4 / 60)
    assert got(made.flag("f")) is True
    assert got(made.text("g")) == "0.10"
    assert got(made.flag("h")) is True
    assert got(made.flag("i")) is True


@pytest.mark.parametrize("read", ["text", "count", "number", "share", "seconds", "rate", "flag"])
def test_absent_is_none_and_nonsense_is_unknown_but_never_an_error(read: str) -> None:
    made = deployment("a: {b: c}\nd: [[1], {e: f}]\ng: often\n")
    assert getattr(made, read)("x") is None
    lost = getattr(made, read)("d")
    assert lost.unknown
    assert lost.origin.why.startswith("d is not ")
    if read != "text":
        assert getattr(made, read)("g").unknown


def test_a_list_of_texts_is_a_choice() -> None:
    made = deployment("a: [x, y]\nb: []\nc: [x, [y]]\n")
    assert some(made.text("a")).options == ("x", "y")
    assert some(made.text("b")).unknown
    assert some(made.text("c")).unknown


def test_alternatives_are_read_one_by_one() -> None:
    draft = draft_of("a: 1\n")
    nodes = tuple(Scalar(text, "text", "plain", Place("x")) for text in ("1", "2k"))
    origin = Origin("written", Place("x"))
    made = Deployment(draft._replace(fields={("a",): Value(nodes, origin)}))
    assert made.count("a") == Value((1, 2000), origin)


def test_what_lies_below_a_path() -> None:
    made = deployment("a: {b: {c: 1}, d: 2}\ne: 3\n")
    assert set(made.under("a")) == {("b", "c"), ("d",)}
    assert made.has("a", "b")
    assert made.has("e")
    assert not made.has("a", "x")


def test_the_place_of_what_is_not_written() -> None:
    made = deployment("a:\n  b: {c: 1}\n")
    assert made.place_for("a", "b", "c").start == "spec.yaml:2:10"
    assert made.place_for("a", "b", "x", "y").start == "spec.yaml:2:3"
    assert made.place_for("z") == made.place
    lost = made.absent("a", "z", why="nobody says")
    assert (lost.unknown, lost.place.line, lost.origin.why) == (True, 1, "nobody says")


def test_replacing_fields_leaves_the_original_alone() -> None:
    made = deployment("a: 1\nb: 2\n")
    nodes: Value[Node] = made.fields["b",]
    changed = made.with_fields([(("a",), nodes)])
    assert got(changed.count("a")) == 2
    assert got(made.count("a")) == 1
    assert changed.name == made.name

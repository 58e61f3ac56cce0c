"""Values: known, unknown, alternatives, and where they come from."""

from __future__ import annotations

import pytest

from capcheck.values import (
    MOST_ALTERNATIVES,
    NOWHERE,
    Origin,
    Place,
    Unknown,
    Value,
    alternatives,
    default,
    derived,
    unknown,
    written,
)

HERE = Place("a.yaml", 3, 5, 3, 9, ("engine", "name"))


def test_a_known_value_gives_its_only_option() -> None:
    value = written(4, HERE, "--tensor")
    assert (value.known, value.unknown, value.get(), value.either(9)) == (True, False, 4, 4)
    assert value.origin == Origin("written", HERE, word="--tensor")
    assert value.place.start == "a.yaml:3:5"


@pytest.mark.parametrize("option", [0, "", False, None, ()])
def test_empty_options_are_known(option: object) -> None:
    value: Value[object] = written(option, HERE)
    assert value.known
    assert value.get() == option
    assert value.either("else") == option


def test_an_unknown_value_says_why() -> None:
    value: Value[int] = unknown(HERE, "$N is not resolved", "--n")
    assert (value.known, value.unknown, value.either(7)) == (False, True, 7)
    with pytest.raises(Unknown) as lost:
        value.get("count")
    assert lost.value.value is value
    assert (lost.value.why, lost.value.reason) == (
        "$N is not resolved", "count: $N is not resolved",
    )  # fmt: skip
    assert value.origin.kind == "written"
    assert unknown(HERE, "x").origin.kind == "derived"


def test_nothing_to_say_is_still_said() -> None:
    value: Value[int] = Value((), Origin("derived", NOWHERE))
    with pytest.raises(Unknown, match="not known") as lost:
        value.get()
    assert lost.value.reason == "not known"


def test_alternatives_are_neither_known_nor_unknown() -> None:
    value = alternatives(["a", "b", "a"], Origin("written", HERE))
    assert value.options == ("a", "b")
    assert (value.known, value.unknown, value.either("c")) == (False, False, "c")
    with pytest.raises(Unknown) as lost:
        value.get()
    assert lost.value.reason == "one of a, b"
    assert value.only("b").get() == "b"
    assert value.only("b").origin == value.origin


def test_a_known_value_may_be_of_no_use() -> None:
    lost = Unknown(written(9, HERE).because("there are only 8 layers"), "pipeline")
    assert lost.reason == "pipeline: there are only 8 layers"


def test_too_many_alternatives_are_unknown() -> None:
    origin = Origin("written", HERE)
    assert len(alternatives(range(MOST_ALTERNATIVES), origin).options) == MOST_ALTERNATIVES
    many = alternatives(range(MOST_ALTERNATIVES + 1), origin)
    assert many.unknown
    assert many.origin.why == "9 possibilities"


def test_one_alternative_is_known_and_none_is_unknown() -> None:
    assert alternatives(["a"], Origin("written", HERE)).get() == "a"
    assert alternatives([], Origin("written", HERE)).unknown


def test_map_keeps_the_origin_and_may_explain() -> None:
    value = alternatives([1, 2], Origin("written", HERE, word="n"))
    assert value.map(str).options == ("1", "2")
    assert value.map(str).origin == value.origin
    doubled = value.map(lambda one: one * 2, "twice")
    assert (doubled.options, doubled.origin.why, doubled.origin.word) == ((2, 4), "twice", "n")


def test_because_changes_only_the_reason() -> None:
    value = default(8, HERE, "fake 1 default").because("it is so")
    assert (value.get(), value.origin.why, value.origin.kind) == (8, "it is so", "default")


def test_kinds_of_origin() -> None:
    assert default(1, HERE, "d").origin.kind == "default"
    assert derived(1, HERE, "d").origin.kind == "derived"
    assert written(1, HERE).origin.kind == "written"

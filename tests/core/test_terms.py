"""Fitted constants: where they hold, which one counts, and the bands they make."""

from __future__ import annotations

import json
from math import sqrt

import pytest
from core_fakes import book, term, text_file
from hypothesis import given
from hypothesis import strategies as st

from capcheck.quantity import Band, verdict_of
from capcheck.terms import TermBook, TermError, Terms, holds, spread, term_of
from capcheck.values import Unknown


@pytest.mark.parametrize(
    ("when", "facts", "expected"),
    [
        ({}, {}, True),
        ({"engine": "vllm"}, {"engine": "vllm"}, True),
        ({"engine": "vllm"}, {"engine": "sglang"}, False),
        ({"engine": "vllm"}, {}, False),
        ({"engine": "vllm"}, {"engine": None}, False),
        ({"engine": ["vllm", "sglang"]}, {"engine": "sglang"}, True),
        ({"engine": ["vllm", "sglang"]}, {"engine": "tgi"}, False),
        ({"moe": True}, {"moe": True}, True),
        ({"moe": False}, {"moe": True}, False),
        ({"moe": False}, {"moe": 0}, True),
        ({"tensor": 2}, {"tensor": 2}, True),
        ({"capability": 9}, {"capability": 9.0}, True),
        ({"capability": ">=8.9"}, {"capability": 8.9}, True),
        ({"capability": ">8.9"}, {"capability": 8.9}, False),
        ({"weight_bits": "<=6,>0"}, {"weight_bits": 4.5}, True),
        ({"weight_bits": "<=6,>0"}, {"weight_bits": 8}, False),
        ({"release": ">=0.20,<0.26"}, {"release": (0, 25, 9)}, True),
        ({"release": ">=0.20,<0.26"}, {"release": (0, 26)}, False),
        ({"release": ">=0.20"}, {"release": (0, 20, 0)}, True),
        ({"release": "<0.20"}, {"release": (0, 9, 1)}, True),
        ({"release": "0.11"}, {"release": (0, 11, 0)}, True),
        ({"release": [">=0.30", "0.11"]}, {"release": (0, 11, 0)}, True),
        ({"vendor": ">=2"}, {"vendor": "nvidia"}, False),
        ({"release": "newest"}, {"release": (0, 11)}, False),
        ({"engine": "vllm", "moe": True}, {"engine": "vllm", "moe": False}, False),
    ],
)
def test_conditions(when: dict[str, object], facts: dict[str, object], expected: bool) -> None:
    assert holds(tuple(when.items()), facts) is expected


def test_most_conditions_win() -> None:
    terms = book(
        term("x", 1, 1, 1),
        term("x", 2, 2, 2, when={"engine": "vllm"}),
        term("x", 3, 3, 3, when={"engine": "vllm", "release": ">=1.0"}),
    )
    facts = {"engine": "vllm", "release": (1, 2)}
    assert terms.select("x", facts).mid == 3
    assert terms.select("x", {"engine": "vllm", "release": (0, 9)}).mid == 2
    assert terms.select("x", {"engine": "tgi"}).mid == 1


def test_later_plugins_win_ties() -> None:
    first, second = json.dumps(term("x", 1, 1, 1)), json.dumps(term("x", 2, 2, 2))
    terms = TermBook([(text_file(first), "a"), (text_file(second), "b")])
    chosen = terms.select("x", {})
    assert (chosen.mid, chosen.owner) == (2, "b")


def test_nothing_fitted_here_is_unknown_but_a_name_nobody_ships_is_a_fault() -> None:
    terms = book(term("x", 1, 1, 1, when={"engine": "vllm"}))
    with pytest.raises(Unknown) as lost:
        terms.select("x", {"engine": "tgi"})
    assert lost.value.reason == "x was not fitted for such a case"
    with pytest.raises(TermError, match="no plugin ships the term 'y'"):
        terms.select("y", {"engine": "vllm"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 2}, "out of order|in order"),
        ({"low": "much"}, "lacks or misstates"),
        ({"high": float("inf")}, "no finite numbers"),
        ({"mid": float("nan")}, "no finite numbers"),
        ({"kind": "guess"}, "'guess' is no kind of term"),
        ({"when": {"release": ">=soon"}}, "'soon' is no bound"),
        ({"when": {"release": None}}, "None is no condition"),
        ({"when": {"release": [["a"]]}}, "is no condition"),
        ({"when": 3}, "lacks or misstates"),
        ({"cases": "some"}, "lacks or misstates"),
    ],
)
def test_malformed_terms(change: dict[str, object], message: str) -> None:
    with pytest.raises(TermError, match=message):
        term_of({**term("x", 1, 1, 1), **change}, "acme")


@pytest.mark.parametrize("key", ["name", "low", "unit", "cases", "dated", "source"])
def test_every_field_is_required(key: str) -> None:
    record = term("x", 1, 1, 1)
    del record[key]
    with pytest.raises(TermError, match=key):
        term_of(record, "acme")


def test_bad_lines_cost_only_themselves() -> None:
    lines = ["", "{nonsense", json.dumps(term("good", 1, 2, 3)), "[1]"]
    told: list[tuple[str, str]] = []
    files = [(text_file("\n".join(lines)), "acme"), (text_file("", "gone.jsonl"), "other")]
    terms = TermBook(files, lambda *fault: told.append(fault))
    assert [one.name for one in terms] == ["good"]
    assert [owner for owner, _ in told] == ["acme", "acme"]
    assert [message.split(": ")[1] for _, message in told] == ["terms.jsonl:2", "terms.jsonl:4"]
    assert list(terms)  # what is wrong is told once
    assert len(told) == 2


def test_an_unreadable_file_is_told() -> None:
    from pathlib import Path

    told: list[tuple[str, str]] = []
    terms = TermBook([(Path("/no/such/terms.jsonl"), "acme")], lambda *fault: told.append(fault))
    assert not list(terms)
    assert told[0][0] == "acme"
    assert "No such file" in told[0][1]


# bands


def terms_of(*records: dict[str, object]) -> Terms:
    return Terms(book(*records), {})


def test_quadrature_by_hand() -> None:
    t = terms_of(term("a", 8, 10, 13), term("b", 4, 5, 5.5), term("c", 0.9, 1.0, 1.2))
    made = spread(lambda t: (t.read("a") - t.read("b")) * t.read("c"), t)
    # a: -2 and +3; b: +1 and -0.5; c: 5 x -0.1 and 5 x +0.2
    assert made.band.mid == 5
    assert made.band.low == pytest.approx(5 - sqrt(2**2 + 0.5**2 + 0.5**2))
    assert made.band.high == pytest.approx(5 + sqrt(3**2 + 1**2 + 1**2))
    assert [name for name, _ in made.moved_by] == ["a", "b", "c"]
    assert dict(made.moved_by)["a"] == 3


def test_terms_of_one_group_add_linearly() -> None:
    apart = (term("a", 9, 10, 11), term("b", 8, 10, 12))
    together = tuple({**one, "group": "g"} for one in apart)

    def total(t: Terms) -> float:
        return t.read("a") + t.read("b")

    assert spread(total, terms_of(*apart)).band.high == pytest.approx(20 + sqrt(1 + 4))
    made = spread(total, terms_of(*together))
    assert made.band == Band(17, 20, 23)
    assert made.moved_by == (("g", 3.0),)


def test_terms_that_are_exact_or_not_read_move_nothing() -> None:
    t = terms_of(term("a", 1, 1, 1), term("b", 0, 1, 2))
    assert spread(lambda t: t.read("a"), t) == (Band(1, 1, 1), ())


def test_one_sided_moves_count_on_their_side_only() -> None:
    t = terms_of(term("a", -1, 0, 1))
    assert spread(lambda t: abs(t.read("a")), t).band == Band(0, 0, 1)


def test_facts_of_the_reader_make_a_read_of_their_own() -> None:
    t = terms_of(term("a", 1, 2, 3, when={"bits": 4}), term("a", 10, 20, 30, when={"bits": 8}))
    made = spread(lambda t: t.read("a", bits=4) + t.read("a", bits=8), t)
    assert made.band.mid == 22
    assert set(dict(made.moved_by)) == {"a (bits 4)", "a (bits 8)"}
    assert made.band.high == pytest.approx(22 + sqrt(1 + 100))


def test_enormous_deviations_do_not_overflow() -> None:
    t = terms_of(term("a", 0, 1e200, 1e300))
    assert spread(lambda t: t.read("a"), t).band.high == pytest.approx(1e300)


@given(
    st.lists(st.tuples(*[st.floats(0, 100)] * 3).map(lambda ends: tuple(sorted(ends))), max_size=5)
)
def test_the_mid_lies_in_every_band(ends: list[tuple[float, float, float]]) -> None:
    names = [f"t{number}" for number in range(len(ends))]
    t = terms_of(*(term(name, *one) for name, one in zip(names, ends, strict=True)))
    made = spread(lambda t: sum(t.read(name) for name in names), t)
    assert made.band.low <= made.band.mid <= made.band.high
    widths = [high - mid for _, mid, high in ends]
    assert made.band.high - made.band.mid == pytest.approx(sqrt(sum(w * w for w in widths)))


@pytest.mark.parametrize(
    ("band", "verdict"),
    [
        (Band(1, 2, 3), "pass"), (Band(0, 0, 0), "pass"), (Band(-1, 2, 3), "at risk"),
        (Band(-3, -2, 0), "at risk"), (Band(-3, -2, -1), "fail"),
    ],
)  # fmt: skip
def test_the_whole_band_decides(band: Band, verdict: str) -> None:
    assert verdict_of(band) == verdict

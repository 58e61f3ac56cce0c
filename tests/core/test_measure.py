"""Numbers with units, read and shown."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.measure import (
    NotAMeasure,
    parse_bytes,
    parse_count,
    parse_number,
    parse_rate,
    parse_seconds,
    parse_share,
    show_bytes,
    show_count,
    show_rate,
    show_seconds,
    show_share,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32768", 32768),
        (" 8 ", 8),
        ("-1", -1),
        ("+5", 5),
        ("1_000", 1000),
        ("017", 17),
        ("32k", 32_000),
        ("32K", 32_768),
        ("1.5k", 1500),
        ("1.001k", 1000),
        ("2m", 2_000_000),
        ("2M", 2 * 2**20),
        ("1g", 10**9),
        ("1G", 2**30),
        ("0.5t", 5 * 10**11),
        ("1T", 2**40),
        ("1e6", 10**6),
        ("70.6e9", 70_600_000_000),
        ("2.0", 2),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_counts(text: str, expected: int) -> None:
    found = parse_count(text)
    assert found == expected and isinstance(found, int)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GB", 24e9),
        ("24 GB", 24e9),
        ("24gb", 24e9),
        ("24G", 24e9),
        ("24GiB", 24 * 2.0**30),
        ("24Gi", 24 * 2.0**30),
        ("24gib", 24 * 2.0**30),
        ("1.5MB", 1.5e6),
        ("512MiB", 512 * 2.0**20),
        ("512Mi", 512 * 2.0**20),
        ("64KiB", 65536.0),
        ("64Ki", 65536.0),
        ("64kB", 64e3),
        ("64KB", 64e3),
        ("64k", 64e3),
        ("2TB", 2e12),
        ("2TiB", 2 * 2.0**40),
        ("1PiB", 2.0**50),
        ("1024", 1024.0),
        ("1e9", 1e9),
        ("12 B", 12.0),
        ("0", 0.0),
    ],
)
def test_bytes(text: str, expected: float) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("800ms", 0.8),
        ("1.5s", 1.5),
        ("1.5", 1.5),
        ("1e-3", 0.001),
        ("85us", 85e-6),
        ("85µs", 85e-6),
        ("5ns", 5e-9),
        ("2m", 120.0),
        ("2min", 120.0),
        ("2 minutes", 120.0),
        ("1m30s", 90.0),
        ("1h 2m 3s", 3723.0),
        ("1d", 86400.0),
        (".5s", 0.5),
    ],
)
def test_seconds(text: str, expected: float) -> None:
    assert parse_seconds(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4/s", 4), ("240/min", 4), ("240 / m", 4), ("7200/h", 2), ("3/h", 3 / 3600), ("0.5", 0.5)],
)
def test_rates(text: str, expected: float) -> None:
    assert parse_rate(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.3", 0.3), ("30%", 0.3), ("30 %", 0.3), ("1", 1), ("0", 0), ("2.5%", 0.025)],
)
def test_shares(text: str, expected: float) -> None:
    assert parse_share(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("text", ["0.9", "1e9", "-3", " 1_000.5 ", ".5", "2."])
def test_numbers(text: str) -> None:
    assert parse_number(text) == float(text.replace("_", ""))


LONG = "9" * 5000
REFUSED: list[tuple[Callable[[str], float], str, list[str]]] = [
    (
        parse_count,
        "a whole number",
        ["", "x", "1.5", "1.5K", "32kb", "1,000", "k", "1e999", LONG, "٣"],
    ),
    (parse_bytes, "a size", ["", "GB", "24Gb", "24g", "24m", "-1GB", "1e999", "1 2", LONG]),
    (parse_seconds, "a time", ["", "ms", "1x", "-1s", "-1", "1s x", "1 2", "1S", LONG]),
    (parse_rate, "a rate", ["", "/s", "4/x", "4s", "-4/s", "4/s/s", LONG]),
    (parse_share, "a share", ["", "30", "-0.1", "130%", "x", "%", "0.3x", LONG]),
    (parse_number, "a number", ["", "x", "1e999", "nan", "inf", "1 2", "12:30", LONG]),
]


@pytest.mark.parametrize(
    ("parse", "expected", "text"),
    [(parse, expected, text) for parse, expected, several in REFUSED for text in several],
)
def test_what_is_no_measure(parse: Callable[[str], float], expected: str, text: str) -> None:
    with pytest.raises(NotAMeasure) as caught:
        parse(text)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == caught.value.expected
    assert caught.value.expected.startswith(expected)


def test_a_binary_suffix_with_a_fraction_names_the_decimal_one() -> None:
    with pytest.raises(NotAMeasure, match=r"K takes no fraction; 1\.5k does"):
        parse_count("1.5K")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1 KiB"),
        (131072, "128 KiB"),
        (1536, "1.5 KiB"),
        (2.0**20 - 1, "1.0 MiB"),
        (23.5 * 2**30, "23.5 GiB"),
        (15 * 2**30, "15.0 GiB"),
        (2.0**40, "1.0 TiB"),
        (5000 * 2.0**40, "5,000.0 TiB"),
        (-1.4 * 2**30, "-1.4 GiB"),
        (float("inf"), "inf B"),
    ],
)
def test_show_bytes(value: float, expected: str) -> None:
    assert show_bytes(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.052, "52.0 ms"),
        (1.2, "1.2 s"),
        (85e-6, "85 us"),
        (0.99996, "1.0 s"),
        (0.0009996, "1.0 ms"),
        (90, "90.0 s"),
        (600, "10.0 min"),
        (10800, "3.0 h"),
        (0, "0 s"),
        (-0.5, "-500.0 ms"),
        (float("nan"), "nan s"),
    ],
)
def test_show_seconds(value: float, expected: str) -> None:
    assert show_seconds(value) == expected


def test_show_the_others() -> None:
    assert [show_count(32768), show_count(1023.6), show_count(float("inf"))] == [
        "32,768",
        "1,024",
        "inf",
    ]
    assert [show_share(0.3), show_share(0.975), show_share(12.0)] == ["30 %", "97.5 %", "1,200 %"]
    assert [show_rate(4), show_rate(0.05), show_rate(1 / 3600), show_rate(1e-5), show_rate(0)] == [
        "4.0/s",
        "3.0/min",
        "1.0/h",
        "0.036/h",
        "0/s",
    ]


positive = st.floats(1e-6, 1e16)


@given(st.floats(0, 2.0**60))
def test_shown_bytes_come_back(value: float) -> None:
    assert parse_bytes(show_bytes(value).replace(",", "")) == pytest.approx(
        value, rel=0.05, abs=0.5
    )


@given(positive)
def test_shown_seconds_come_back(value: float) -> None:
    shown = show_seconds(value).replace(",", "")
    assert parse_seconds(shown) == pytest.approx(value, rel=0.051, abs=5e-7)


@given(positive)
def test_shown_rates_come_back(value: float) -> None:
    assert parse_rate(show_rate(value).replace(",", "")) == pytest.approx(value, rel=0.051)


@given(st.integers(-(10**15), 10**15))
def test_shown_counts_come_back(value: int) -> None:
    assert parse_count(show_count(value).replace(",", "")) == value


@given(st.floats(0, 1))
def test_shown_shares_come_back(value: float) -> None:
    assert parse_share(show_share(value)) == pytest.approx(value, abs=5.1e-4)


@given(st.integers(0, 10**6), st.sampled_from("kKmMgGtT"))
def test_counts_with_suffixes(value: int, suffix: str) -> None:
    power = "kmgt".index(suffix.lower()) + 1
    assert parse_count(f"{value}{suffix}") == value * (1000 if suffix.islower() else 1024) ** power


@given(st.text(max_size=12))
def test_nothing_but_not_a_measure_is_raised(text: str) -> None:
    for parse in (parse_bytes, parse_count, parse_number, parse_rate, parse_seconds, parse_share):
        try:
            found = parse(text)
        except NotAMeasure:
            continue
        assert abs(found) <= sys.float_info.max

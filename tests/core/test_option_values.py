"""Values that releases of an invented engine take, and what they expect where they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_table import v, write_table

from capcheck.option_values import human_number
from capcheck.options import OptionTable


@pytest.fixture
def table(tmp_path: Path) -> OptionTable:
    return write_table(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "release", "expected"),
    [
        ("max_length", "4096", "1.0.0", None),
        ("max_length", 4096, "1.0.0", None),
        ("max_length", "32k", "1.0.0", "a whole number in digits: 32000"),
        ("max_length", "32k", "1.1.0", None),
        ("max_length", "25.6K", "1.1.0", "a whole number such as 32768, 32k or 32K"),
        ("max_length", "0", "1.1.0", "a whole number such as 32768, 32k or 32K above 0"),
        ("max_length", "auto", "1.3.0", "a whole number such as 32768, 32k or 32K"),
        ("max_length", "auto", "2.0.0", None),
        ("max_length", "AUTO", "2.0.0", None),
        ("max_length", -1, "2.0.0", None),
        ("max_length", 4096.0, "2.0.0", "a whole number such as 32768, 32k or 32K or auto"),
        ("max_length", True, "2.0.0", "a value after --max-length"),
        ("max_length", "None", "1.0.0", None),  # its default is none
        ("max_length", None, "1.0.0", None),
        ("share", "0.9", "1.0.0", None),
        ("share", 1, "1.0.0", None),
        ("share", 90, "1.0.0", "a number above 0 and at most 1"),
        ("share", "0", "1.0.0", "a number above 0 and at most 1"),
        ("share", "90%", "1.0.0", "a number above 0 and at most 1"),
        ("enable_cache", True, "1.0.0", None),
        ("enable_cache", False, "1.0.0", None),
        ("enable_cache", "true", "1.0.0", "--enable-cache alone: it takes no value"),
        ("enable_cache", "true", "1.1.0", None),
        ("enable_cache", "on", "1.1.0", "--enable-cache alone, or true or false after it"),
        (
            "enable_cache",
            "true",
            "1.3.0",
            "--enable-cache or --no-enable-cache alone: it takes no value",
        ),
        ("kind", "fast_one", "1.0.0", None),
        ("kind", "FAST-ONE", "1.0.0", "fast_one, spelled so"),
        ("kind", "FAST-ONE", "2.0.0", None),
        ("kind", "slow", "1.0.0", "one of auto, fast_one"),
        ("kind", "fastone", "1.0.0", "one of auto, fast_one (did you mean fast_one?)"),
        ("kind", "'auto'", "1.0.0", "the value without the quotes, which belong to it here: auto"),
        ("swap_files", [1, 2], "2.0.0", None),
        ("swap_files", "1,2", "2.0.0", "a whole number in each place of the list"),
        ("extra", '{"size": 1}', "1.0.0", None),
        ("extra", {"size": 1}, "2.0.0", None),
        ("extra", "size=1,old=2", "1.0.0", None),
        ("extra", "size=1", "2.0.0", 'JSON, such as {"key": 1}'),
        ("extra", "{size: 1}", "2.0.0", 'JSON, such as {"key": 1}'),
        ("no_such", "1", "2.0.0", None),
    ],
)
def test_values(
    table: OptionTable, name: str, value: object, release: str, expected: str | None
) -> None:
    assert table.check_value(name, value, v(release)) == expected


def test_without_a_release_what_any_release_takes_is_taken(table: OptionTable) -> None:
    assert table.check_value("max_length", "auto", None) is None
    assert table.check_value("kind", "slow", None) is None
    assert table.check_value("share", 2, None) == "a number above 0 and at most 1"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("32k", 32_000),
        ("32K", 32_768),
        ("25.6k", 25_600),
        ("1M", 2**20),
        ("2g", 2 * 10**9),
        ("25.6K", None),
        ("32", None),
        ("k", None),
        ("-1k", None),
        ("32kb", None),
    ],
)
def test_human_numbers(text: str, number: int | None) -> None:
    assert human_number(text) == number

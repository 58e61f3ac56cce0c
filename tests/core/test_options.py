"""Names, edges, defaults and keys of an invented engine's options."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from small_table import RELEASES, v, write_table

from capcheck.options import OptionTable, Since, dotted, parse_release, parse_version


@pytest.fixture
def table(tmp_path: Path) -> OptionTable:
    return write_table(tmp_path)


@pytest.mark.parametrize(
    ("text", "version", "development"),
    [
        ("0.11.0", (0, 11, 0), False),
        ("v0.11.0", (0, 11, 0), False),
        (" 0.11 ", (0, 11, 0), False),
        ("0.10.1.1", (0, 10, 1, 1), False),
        ("0.8.5.post1", (0, 8, 5, 1), False),
        ("0.11.2+cu129", (0, 11, 2), False),
        ("v0.11.0-aarch64", (0, 11, 0), False),
        ("0.20.2rc1.dev249", (0, 20, 2), True),
        ("0.20.2rc1.dev249+g0123abc", (0, 20, 2), True),
        ("0.9.0.dev1", (0, 9, 0), True),
        ("1.0.0rc2", (1, 0, 0), True),
    ],
)
def test_releases_are_read(text: str, version: tuple[int, ...], development: bool) -> None:
    release = parse_release(text)
    assert release is not None
    assert (release.version, release.development) == (version, development)
    assert parse_version(text) == version


@pytest.mark.parametrize(
    "text", ["latest", "nightly", "", "v1", "abc", "0.11.x", "24.08-py3", "main", "1.2.3.4.5"]
)
def test_other_words_are_no_release(text: str) -> None:
    assert parse_release(text) is None


@given(some.lists(some.integers(0, 999), min_size=3, max_size=4))
def test_a_version_written_out_is_read_back(numbers: list[int]) -> None:
    assert parse_version(dotted(tuple(numbers))) == tuple(numbers)


@pytest.mark.parametrize(
    ("written", "release", "verdict", "name"),
    [
        ("max_length", "1.0.0", "known", "max_length"),
        ("--max-length", "2.0.0", "known", "max_length"),
        ("--max_length", "2.0.0", "known", "max_length"),
        ("--extra.size", "1.0.0", "known", "extra"),
        ("-s", "1.3.0", "known", "share"),
        ("-s", "2.0.0", "removed", "share"),
        ("-z", "2.0.0", "unknown", None),
        ("swap", "1.1.0", "known", "swap"),
        ("swap", "1.1.0.post1", "known", "swap"),
        ("swap", "1.2.0", "unsure", "swap"),
        ("swap", "1.3.0", "removed", "swap"),
        ("swap_files", "1.3.0", "not yet", "swap_files"),
        ("swap_files", "1.9.9", "unsure", "swap_files"),
        ("max_lists", "1.3.0", "known", "max_lists"),
        ("max_lists", "2.0.0", "removed", "max_lists"),
        ("device_share", "2.0.0", "known", "share"),
        ("device_share", "1.3.0", "not yet", "share"),
        ("max-len", "1.0.0", "known", "max_length"),
        ("max-l", "1.1.0", "known", "max_length"),
        ("max-l", "1.3.0", "ambiguous", None),
        ("tar", "1.0.0", "unknown", None),  # a positional word has no name to abbreviate
        ("nothing_like_it", "2.0.0", "unknown", None),
        ("nothing_like_it", "2.1.0", "unsure", None),  # a newer release may have it
        ("max_length", "3.0.0", "known", "max_length"),
        ("max_length", "0.9.0", "unsure", "max_length"),
    ],
)
def test_names_stand_for_options_of_their_release(
    table: OptionTable, written: str, release: str, verdict: str, name: str | None
) -> None:
    standing = table.resolve(written, v(release))
    assert standing.verdict == verdict
    assert (standing.option.name if standing.option else None) == name


def test_ambiguous_prefixes_name_what_they_could_be(table: OptionTable) -> None:
    assert table.resolve("--max-l", v("1.3.0")).candidates == ("max_length", "max_lists")
    assert table.resolve("--max-l", v("1.3.0"), prefixes=False).verdict == "unknown"


def test_a_removed_name_is_not_taken_for_the_longer_one_it_abbreviates(table: OptionTable) -> None:
    standing = table.resolve("--swap", v("2.0.0"))
    assert standing.verdict == "removed"
    assert standing.candidates == ("swap_files",)
    assert standing.until == Since(v("1.1.0.post1"), v("1.3.0"))
    assert standing.instead == "use swap_files"
    assert table.resolve("--swap", v("1.3.0")).instead == "remove it"


def test_not_yet_tells_the_edge(table: OptionTable) -> None:
    assert table.resolve("swap_files", v("1.0.0")).since == Since(v("1.3.0"), v("2.0.0"))
    assert table.resolve("device_share", v("1.0.0")).since == Since(v("1.3.0"), v("2.0.0"))


def test_negations(table: OptionTable) -> None:
    for written in ("--no-enable-cache", "--no-enable-ca", "no_enable_cache"):
        standing = table.resolve(written, v("1.3.0"))
        assert (standing.verdict, standing.negated) == ("known", True)
    assert table.resolve("--no-enable-cache", v("1.1.0")).verdict == "not yet"
    assert table.resolve("--disable-cache", v("2.0.0")).negated
    assert table.resolve("--disable-cache", v("1.3.0")).verdict == "not yet"
    assert not table.resolve("--enable-cache", v("2.0.0")).negated


def test_misspelt_names_have_near_misses_of_their_release(table: OptionTable) -> None:
    assert table.resolve("max_lenght", v("1.0.0")).candidates == ("max_length",)
    assert "swap_files" not in table.resolve("swap_filse", v("1.0.0")).candidates
    assert table.resolve("swap_filse", v("2.0.0")).candidates == ("swap_files",)
    assert table.resolve("length", v("2.0.0")).instead == "use max_length"


def test_without_a_release_only_what_all_have_is_known(table: OptionTable) -> None:
    assert table.resolve("max_length", None).verdict == "known"
    swap = table.resolve("swap", None)
    assert (swap.verdict, swap.until) == ("unsure", Since(v("1.1.0.post1"), v("1.3.0")))
    assert table.resolve("swap_files", None).since == Since(v("1.3.0"), v("2.0.0"))
    assert table.resolve("nothing_like_it", None).verdict == "unknown"


def test_defaults_by_release(table: OptionTable) -> None:
    assert table.default("share", v("1.3.0")) == (0.9,)
    assert table.default("share", v("2.0.0")) == (0.92,)
    assert table.default("share", v("9.0.0")) == (0.92,)
    assert table.default("share", v("1.9.0")) == (0.9, 0.92)  # between two inspected releases
    assert table.default("share", None) == (0.9, 0.92)
    assert table.default("max_length", None) == (None,)
    assert table.default("swap", v("2.0.0")) == ()
    assert table.default("swap_files", v("2.0.0")) == ()  # computed when the engine starts
    assert table.default("no_such", None) == ()


def test_the_names_of_a_release(table: OptionTable) -> None:
    assert "swap" in table.known(v("1.0.0")) and "swap_files" not in table.known(v("1.0.0"))
    assert "swap" not in table.known(v("2.0.0")) and "swap_files" in table.known(v("2.0.0"))
    assert table.releases == tuple(v(release) for release in RELEASES)


def test_what_takes_a_value(table: OptionTable) -> None:
    assert table.takes_value("max_length") is True
    assert table.takes_value("enable_cache") is None  # only some releases let true follow
    assert table.takes_value("no_such") is None


def test_keys_inside_json(table: OptionTable) -> None:
    early, late = v("1.0.0"), v("2.0.0")
    assert table.resolve_key("extra", "size", early).verdict == "known"
    assert table.resolve_key("extra", "size.deep", early).verdict == "known"
    assert table.resolve_key("extra", "old", late).verdict == "removed"
    assert table.resolve_key("extra", "fresh", early).verdict == "not yet"
    width = table.resolve_key("extra", "width", late)
    assert (width.verdict, width.stray, width.instead) == ("unknown", "error", "use the key size")
    assert table.resolve_key("extra", "sise", early).candidates == ("size",)
    assert table.resolve_key("extra", "sise", early).stray == "ignored"
    assert table.resolve_key("extra", "sise", None).stray == "unsure"
    assert table.resolve_key("kind", "size", late).verdict == "unsure"


def test_a_table_that_is_not_there_knows_nothing(tmp_path: Path) -> None:
    empty = OptionTable(tmp_path / "none.jsonl")
    assert empty.resolve("--anything", v("1.0.0")).verdict == "unknown"
    assert empty.releases == () and empty.names == ()

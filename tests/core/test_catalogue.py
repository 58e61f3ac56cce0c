"""Shelves, ids, layers and names, with invented vendors: the machinery knows none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.catalogue import CONFIGURATION, VENDOR, Catalogue, CatalogueError, Match, Shelf
from capcheck.naming import readings, without_count
from capcheck.shelf import fold

Records = Iterable[Mapping[str, Any]]
Put = Callable[..., Shelf]


def part(identity: str, **fields: Any) -> dict[str, Any]:
    base = {
        "id": identity, "memory_class": "hbm", "memory_gb": 80, "bandwidth_gb_s": 1000,
        "visible_factor": 0.98,
    }  # fmt: skip
    return {**base, **fields}


PARTS = (
    part("acme/one-40gb", memory_gb=40, shared_names=["One"]),
    part("acme/one-80gb", shared_names=["One"], aliases=["One Large"]),
    part("acme/two", name="Acme Two (rev. 3)", memory_gb=15, aliases=["Two", "T-2"]),
    part("acme/chip", memory_options=[{"memory_gb": 64}, {"memory_gb": 128}], aliases=["Chip"]),
    part("other/dual", aliases=["Duo"]),
)
NAMES = (
    {"names": ["x9.large", "ml.x9.large"], "keys": ["type"], "ids": ["acme/two"], "count": 4},
    {"names": ["x9f"], "keys": ["type"], "ids": ["acme/two"], "count": 1, "fraction": 0.25},
    {"names": ["acme-one"], "label": True, "keys": ["cloud/gpu"], "ids": ["acme/one-40gb"]},
    {"names": ["one"], "label": True, "keys": ["cloud/name"], "ids": ["acme/one-80gb"]},
    {"names": ["acme/any"], "label": True, "keys": ["res"], "ids": [], "notes": "any of Acme's"},
    {"prefixes": ["Acme", "Big Acme"], "vendor": "acme"},
    {"suffix_pattern": r"-SHARED$", "notes": "shared in time"},
    {"suffix_pattern": r"-CUT-(?P<memory_gb>\d+)g$", "notes": "a slice"},
)


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write(
        records: Records, owner: str = "acme_plugin", kind: str = "accelerator", rank: int = 0
    ) -> Shelf:
        file = tmp_path / f"{owner}-{kind}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        return Shelf(kind, file, owner, rank)

    return write


@pytest.fixture
def catalogue(put: Put) -> Catalogue:
    return Catalogue([put(PARTS), put(NAMES, kind="accelerator-name")])


def ids(match: Match) -> set[str]:
    return set(match.ids)


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    catalogue = Catalogue([Shelf("model", tmp_path / "none.jsonl", "ghost")])
    assert catalogue.ids("accelerator") == ()
    with pytest.raises(CatalogueError, match=r"ghost: none\.jsonl"):
        catalogue.ids("model")


def test_a_look_up_parses_only_the_lines_it_needs(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [part(f"acme/p{number}", aliases=[f"P {number}"]) for number in range(300)]
    catalogue = Catalogue([put(many), put(NAMES, kind="accelerator-name")])
    parsed: list[str | bytes] = []
    real = json.loads

    def counted(text: str | bytes) -> Any:
        parsed.append(text)
        return real(text)

    monkeypatch.setattr("capcheck.shelf.json.loads", counted)
    assert catalogue.accelerators("p-77").ids == ("acme/p77",)
    assert catalogue.accelerator("acme/p77").id == "acme/p77"
    assert len(parsed) < 10


def test_record_by_id(catalogue: Catalogue) -> None:
    assert catalogue.record("accelerator", "acme/two")["memory_gb"] == 15
    assert catalogue.source("accelerator", "acme/two").owner == "acme_plugin"
    assert catalogue.ids("accelerator") == tuple(sorted(one["id"] for one in PARTS))
    for wrong in ("acme/tw", "two", "Two", "", "acme/TWO"):
        with pytest.raises(KeyError):
            catalogue.record("accelerator", wrong)


def test_holding_finds_whole_strings_only(catalogue: Catalogue) -> None:
    assert [one["id"] for one in catalogue.holding("accelerator", "Duo")] == ["other/dual"]
    assert catalogue.holding("accelerator", "Du") == ()


def test_later_ranks_override(put: Put) -> None:
    shipped = put([part("acme/two", memory_gb=15, aliases=["Two"])])
    mine = put([part("acme/two", memory_gb=30)], "capcheck.toml", rank=CONFIGURATION)
    vendor = put([part("acme/two", memory_gb=20)], "vendor", rank=VENDOR)
    for order in ((shipped, mine, vendor), (mine, vendor, shipped)):
        catalogue = Catalogue(order)
        assert catalogue.record("accelerator", "acme/two")["memory_gb"] == 30
        assert catalogue.source("accelerator", "acme/two").owner == "capcheck.toml"
        assert catalogue.accelerators("Two").ids == ("acme/two",)


def test_two_owners_of_one_id_are_both_named(put: Put) -> None:
    catalogue = Catalogue([put([part("acme/two")], "first"), put([part("acme/two")], "second")])
    with pytest.raises(CatalogueError, match=r"'acme/two': first .*:1\) and second .*:1\)"):
        catalogue.accelerator("acme/two")
    twice = Catalogue([put([part("acme/two"), part("acme/two")], "third")])
    with pytest.raises(CatalogueError, match=r"third .*:1\) and third .*:2\)"):
        twice.record("accelerator", "acme/two")


def test_a_higher_rank_takes_a_name_over(put: Put) -> None:
    mine = put([part("me/special", aliases=["One"])], "mine", rank=CONFIGURATION)
    assert Catalogue([put(PARTS), mine]).accelerators("One").ids == ("me/special",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parts.yaml", "- {id: me/a, memory_class: gddr, memory_gb: 8, bandwidth_gb_s: 100,"
         " visible_factor: 1, aliases: [Mine]}\n"),
        ("parts.yml", "id: me/a\nmemory_class: gddr\nmemory_gb: 8\nbandwidth_gb_s: 100\n"
         "visible_factor: 1\naliases: [Mine]\n---\nid: me/b\n"),
        ("parts.json", json.dumps([part("me/a", aliases=["Mine"])])),
    ],
)  # fmt: skip
def test_users_may_write_yaml_or_json(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    catalogue = Catalogue([Shelf("accelerator", file, "capcheck.toml", CONFIGURATION)])
    assert catalogue.accelerators("mine").ids == ("me/a",)
    assert catalogue.accelerator("me/a").vendor == "me"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yaml", "a: [\n"), ("a.yaml", "just text\n"), ("a.json", "[1]"), ("a.json", "{")],
)
def test_a_broken_file_names_its_owner(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError, match=f"mine: {name}"):
        Catalogue([Shelf("accelerator", tmp_path / name, "mine")]).ids("accelerator")


def test_a_broken_line_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": "me/a"}\n{"id": "me/b"\n["me/c"]\n', encoding="utf-8")
    catalogue = Catalogue([Shelf("accelerator", file, "mine")])
    with pytest.raises(CatalogueError, match=r"mine: a\.jsonl:2"):
        catalogue.record("accelerator", "me/b")
    with pytest.raises(CatalogueError, match=r"mine: a\.jsonl:3: not a record"):
        catalogue.record("accelerator", "me/c")
    with pytest.raises(CatalogueError, match=r"mine \(a\.jsonl:1\): me/a: memory_class"):
        catalogue.accelerator("me/a")


def test_a_users_slip_is_a_message_not_a_crash(put: Put) -> None:
    names = [
        {"names": ["lost"], "ids": ["acme/gone"]},
        {"names": ["bare"], "label": True},
        {"suffix_pattern": "-(X$", "notes": "bad"},
    ]
    sizeless = {"id": "me/a", "aliases": ["Mine"]}
    catalogue = Catalogue([put(names, kind="accelerator-name"), put([sizeless], "mine")])
    with pytest.raises(CatalogueError, match=r"a name stands for 'acme/gone'"):
        catalogue.accelerators("lost")
    assert catalogue.accelerators("bare").how == "label =bare"
    assert catalogue.accelerators("Mine").ids == ("me/a",)
    with pytest.raises(CatalogueError, match=r"acme_plugin \(.*:3\): suffix_pattern"):
        catalogue.accelerators("Mine 80GB")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acme/two", "acme/two"), ("Two", "acme/two"), ("two", "acme/two"), ("t 2", "acme/two"),
        ("Acme Two (rev. 3)", "acme/two"), ("ACME_T2", "acme/two"), ("Big Acme Two", "acme/two"),
        ("acme/Two", "acme/two"), ("Two 15GB", "acme/two"), ("Two (15 GB)", "acme/two"),
        ("Two 16GB", "acme/two"), ("Two 24GB", ""), ("Other Two", ""),
        ("Two (some remark)", "acme/two"),
        ("One", "acme/one-40gb acme/one-80gb"), ("One 80GB", "acme/one-80gb"),
        ("80GB One", "acme/one-80gb"), ("One-40G", "acme/one-40gb"), ("One 60GB", ""),
        ("One Large", "acme/one-80gb"), ("one-80gb", "acme/one-80gb"),
        ("Chip", "acme/chip@64gb acme/chip@128gb"), ("Chip 128GB", "acme/chip@128gb"),
        ("Chip (128 GB)", "acme/chip@128gb"), ("Chip (99 GB)", "acme/chip@64gb acme/chip@128gb"),
        ("acme/chip", "acme/chip@64gb acme/chip@128gb"), ("acme/chip@64gb", "acme/chip@64gb"),
        ("acme/chip@65gb", ""), ("Tw", ""), ("Twos", ""), ("", ""), ("--", ""), ("()", ""),
    ],
)  # fmt: skip
def test_names(catalogue: Catalogue, name: str, expected: str) -> None:
    assert ids(catalogue.accelerators(name)) == set(expected.split())


def test_how_it_was_known(catalogue: Catalogue) -> None:
    say = {name: catalogue.accelerators(name).how for name in ("acme/two", "Two", "One", "Chip")}
    assert say == {
        "acme/two": "exact id",
        "Two": "name of acme/two",
        "One": "name of several parts",
        "Chip": "name of acme/chip, sold with 2 memory sizes",
    }
    assert catalogue.accelerators("ml.x9.large").how == "instance type x9.large: 4 devices"


def test_label_values_count_under_their_key(catalogue: Catalogue) -> None:
    assert catalogue.accelerators("one", "cloud/name").ids == ("acme/one-80gb",)
    assert catalogue.accelerators("ONE", "cloud/name").ids == ("acme/one-80gb",)
    assert ids(catalogue.accelerators("one")) == {"acme/one-40gb", "acme/one-80gb"}
    assert catalogue.accelerators("acme-one").ids == ("acme/one-40gb",)  # spelled exactly so
    assert len(catalogue.accelerators("Acme One").ids) == 2  # the same letters, no label
    assert catalogue.accelerators("x9.large", "some/other").ids == ("acme/two",)


def test_a_name_of_the_vendor_only(catalogue: Catalogue) -> None:
    match = catalogue.accelerators("acme/any")
    assert (match.ids, match.how, match.notes) == ((), "label res=acme/any", ("any of Acme's",))


@pytest.mark.parametrize(
    ("name", "count"),
    [("x9.large", 4), ("8x Two", 8), ("8xTwo", 8), ("Two:8", 8), ("Two x8", 8), ("Two", None),
     ("2 × Acme Two", 2), ("2x x9.large", None)],
)  # fmt: skip
def test_counts(catalogue: Catalogue, name: str, count: int | None) -> None:
    match = catalogue.accelerators(name)
    assert (match.ids, match.count) == (("acme/two",), count)


@pytest.mark.parametrize(
    ("name", "found", "fraction"),
    [
        ("x9f", {"acme/two"}, 0.25), ("Two-SHARED", {"acme/two"}, None),
        ("One 80GB-CUT-20g", {"acme/one-80gb"}, 0.25), ("Two-CUT-5g", {"acme/two"}, 1 / 3),
        ("One-CUT-20g", {"acme/one-40gb", "acme/one-80gb"}, None),
    ],
)  # fmt: skip
def test_shares(catalogue: Catalogue, name: str, found: set[str], fraction: float | None) -> None:
    match = catalogue.accelerators(name)
    assert ids(match) == found
    assert match.shared
    assert match.fraction == (pytest.approx(fraction) if fraction else None)


def test_a_shared_device_says_why(catalogue: Catalogue) -> None:
    assert catalogue.accelerators("Two-SHARED").notes == ("SHARED: shared in time",)
    assert not catalogue.accelerators("Two").shared
    assert not catalogue.accelerators("Nobody-SHARED").shared


def test_unknown_names_suggest(catalogue: Catalogue) -> None:
    assert "One Large" in catalogue.accelerators("One Larger").near
    assert ids(Match((), "", near=catalogue.accelerators("One 60GB").near)) == set()
    assert set(catalogue.accelerators("One 60GB").near) == {"acme/one-40gb", "acme/one-80gb"}
    assert catalogue.accelerators("zzzzzzzz").near == ()


def test_too_many_alternatives_are_unknown(put: Put) -> None:
    parts = [part(f"acme/n{number}", shared_names=["N"]) for number in range(9)]
    match = Catalogue([put(parts)]).accelerators("N")
    assert (match.ids, match.how, len(match.near)) == ((), "name of 9 parts: say which", 3)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    if "(r)" not in text.lower() and "(tm)" not in text.lower():
        assert fold(fold(text)) == fold(text)
    assert fold(f" {text}_-") == fold(text)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert next(iter(readings(text))).text == text
    assert all(one.size_gb is None or one.size_gb >= 0 for one in readings(text))
    rest, count = without_count(text)
    assert (count is None) == (rest == text)

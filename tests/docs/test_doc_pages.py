"""The committed pages are what the generator makes, and what they say of the project holds."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docpages import shell

import capcheck
import docs
from capcheck import hookspecs
from capcheck.testing import plugins

PROJECT = Path(__file__).resolve().parents[2]
PAGES = docs.written_pages(PROJECT)
ALL_PAGES = sorted(
    [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("benchmarks/*.md")]
)
REBUILD = "run: python tools/docs.py"
MOST_LINES = 30  # of a difference

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def _name(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def _stale(made: str, kept: str) -> str:
    """The first lines that differ; "" when none do."""
    found = difflib.unified_diff(
        kept.splitlines(), made.splitlines(), "kept", "made", "", "", 1, ""
    )
    lines = list(found)[:MOST_LINES]
    return "\n".join([REBUILD, *lines]) if lines else ""


def _prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_says_and_prints_what_is_so_now(page: Path) -> None:
    stale = _stale(docs.built(PROJECT, page), (PROJECT / page).read_text(encoding="utf-8"))
    assert not stale, stale


def test_every_concern_has_its_page_as_generated() -> None:
    made = docs.rule_page_texts()
    kept = {path.relative_to(PROJECT): path for path in (PROJECT / docs.RULES).glob("*.md")}
    assert set(kept) == set(made), REBUILD
    for page, path in kept.items():
        stale = _stale(made[page], path.read_text(encoding="utf-8"))
        assert not stale, f"{page}: {stale}"


def _anchors(page: Path) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    found = set()
    for heading in _HEADING.findall(_prose(page.read_text(encoding="utf-8"))):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", ALL_PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(_prose(page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.is_file(), f"{target} is not there"
        assert there.is_relative_to(PROJECT)
        if anchor:
            assert anchor in _anchors(there), f"{target} has no such heading"


@pytest.mark.parametrize("page", [*PAGES, *docs.rule_page_texts()], ids=str)
def test_no_example_shows_a_fault_of_ours(page: Path) -> None:
    for block in shell.blocks((PROJECT / page).read_text(encoding="utf-8")):
        if block.language in ("console", "text"):
            assert "[capcheck/plugin-error]" not in block.text
            assert "internal error" not in block.text
            assert "command not found" not in block.text
            assert "No such file" not in block.text


def _field_names(schema: Any) -> Iterator[str]:
    """The name of every field that a schema declares, wherever it stands."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for key, value in schema.items():
            if key not in ("examples", "default", "enum", "const"):
                yield from _field_names(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _field_names(one)


@pytest.mark.parametrize(
    ("schema", "page"), [("deployment", "spec.md"), ("config", "configuration.md")]
)
def test_every_field_of_a_schema_is_on_its_page(schema: str, page: str) -> None:
    tree = json.loads((PROJECT / "schemas" / f"{schema}.schema.json").read_text(encoding="utf-8"))
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    names = list(_field_names(tree))
    assert len(names) > 10
    missing = [name for name in names if not re.search(rf"`(?:[\w.\[\]-]+\.)?{name}`", text)]
    assert missing == []


def test_every_hook_is_on_the_plugin_page() -> None:
    text = (PROJECT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert len(hookspecs.HOOKS) > 10
    for hook in hookspecs.HOOKS:
        assert f"### `{hook.__name__}`" in text


def test_every_format_has_a_section() -> None:
    text = (PROJECT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert plugins().formats()
    for one in plugins().formats():
        assert f"\n## {one.name}\n" in text


def test_the_changelog_has_this_release() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    assert releases[0] == "Unreleased"
    assert releases[1] == capcheck.__version__
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == capcheck.__version__


def test_examples_of_settings_are_valid(tmp_path: Path) -> None:
    from capcheck.config_file import read_table

    page = (PROJECT / "docs" / "configuration.md").read_text(encoding="utf-8")
    inline = re.findall(r"`([\w-]+ = [^`]+)`", page)
    assert len(inline) > 5
    for number, line in enumerate(inline):
        file = tmp_path / f"{number}.toml"
        inside = (
            f"[margins]\n{line}" if line.startswith(("safety", "activation", "device")) else line
        )
        file.write_text(inside, encoding="utf-8")
        assert read_table(file, ()), line

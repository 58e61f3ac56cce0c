"""Rebuilds the generated parts of the documentation, and replays its examples.

    python tools/docs.py            rewrite what is out of date
    python tools/docs.py --check    only name it; exit 1 when there is any
    python tools/docs.py README.md  only these pages

Generated are: the blocks between `<!-- generated: NAME -->` and `<!-- end -->`, the whole of
docs/rules/, and what commands print in `console` blocks. Everything comes from the installed
capcheck: schemas, the rules' own pages, hook docstrings, the command line's parser.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from docpages import commands, fields, hook_list, known, rule_pages, scorecard, shell
from docpages.blocks import filled

PROJECT = Path(__file__).resolve().parent.parent
RULES = Path("docs") / "rules"
PARTS: Mapping[str, Callable[[], str]] = {
    "fields": fields.deployment,
    "settings": fields.settings,
    "variables": fields.variables,
    "assumptions": fields.assumptions,
    "rules": rule_pages.overview,
    "hooks": hook_list.markdown,
    "names": hook_list.public_names,
    "modules": hook_list.public_modules,
    "commands": commands.markdown,
    "formats": known.formats,
    "reports": known.reports,
    "engines": known.engines,
    "counts": known.counts,
    "scorecard": scorecard.markdown,
    "latency-scorecard": scorecard.latency_markdown,
}


def written_pages(project: Path) -> list[Path]:
    """The pages that people write, relative to the project."""
    found = [project / "README.md", *sorted((project / "docs").glob("*.md"))]
    return [page.relative_to(project) for page in found if page.exists()]


def rule_page_texts() -> dict[Path, str]:
    """docs/rules: a page for each concern."""
    return {RULES / f"{name}.md": text for name, text in rule_pages.pages().items()}


def built(project: Path, page: Path) -> str:
    """A written page with its generated blocks and its examples made anew."""
    text = (project / page).read_text(encoding="utf-8")
    return shell.replayed(filled(text, PARTS), project)


def stale(project: Path, only: Iterable[Path] = ()) -> dict[Path, str | None]:
    """Every page whose text is not what it should be, with that text; None for one too many."""
    wanted = set(only)
    texts: dict[Path, str | None] = {}
    for page in written_pages(project):
        if not wanted or page in wanted:
            texts[page] = built(project, page)
    if not wanted:
        kept = rule_page_texts()
        extra = (one.relative_to(project) for one in (project / RULES).glob("*.md"))
        texts.update({page: None for page in extra if page not in kept})
        texts.update(kept)
    return {page: text for page, text in texts.items() if text != _text(project / page)}


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Rewrite or name what is out of date."""
    parser = argparse.ArgumentParser(description="Rebuilds the documentation's generated parts.")
    parser.add_argument("pages", nargs="*", type=Path, help="only these, relative to the project")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when stale")
    given = parser.parse_args(arguments)
    found = stale(PROJECT, given.pages)
    for page, text in found.items():
        print(page)
        if not given.check:
            _write(PROJECT / page, text)
    return 1 if given.check and found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

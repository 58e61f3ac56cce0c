"""Rebuilds the vLLM option tables of plugins/capcheck_vllm from the published sources.

    python tools/vllm_options.py                       every release since the oldest inspected
    python tools/vllm_options.py --keep /tmp/sources   keep the Python files for the next run
    python tools/vllm_options.py 0.11.0 newest         only these (for a look; use --out)

Reads syntax trees only; nothing that was downloaded is run. Writes options.jsonl,
environment.jsonl and subkeys.jsonl; the first line of each lists the inspected releases with the
dates of their archives. renamed.jsonl, what to write instead of other names, is kept by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from vllm_reader import history
from vllm_reader.environment import variables
from vllm_reader.registry import Reading, Release
from vllm_reader.sources import Tree, fetch, published
from vllm_reader.subkeys import Keys, keys_of

OLDEST = "0.5.1"  # the first release whose parser takes - for _
DATA = Path(__file__).resolve().parent.parent / "plugins" / "capcheck_vllm"


def order(version: str) -> tuple[int, ...]:
    """Sorts releases; a post-release follows its base."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def wanted(words: list[str]) -> list[str]:
    """The releases to read, oldest first."""
    known = sorted(published(), key=order)
    if not words:
        return [version for version in known if order(version) >= order(OLDEST)]
    chosen = [known[-1] if word == "newest" else word for word in words]
    return sorted(set(chosen), key=order)


class Tables:
    """What was read so far, by release."""

    def __init__(self) -> None:
        self.dates: dict[str, str] = {}
        self.options: dict[str, list[Reading]] = {}
        self.variables: dict[str, list[Reading]] = {}
        self.keys: dict[str, dict[str, Keys]] = {}

    def add(self, version: str, folder: Path) -> None:
        """Reads one release."""
        tree = Tree(folder)
        release = Release(tree)
        self.dates[version] = folder.joinpath("DATE").read_text("utf-8")[:10]
        self.options[version] = release.options()
        self.variables[version] = variables(tree)
        self.keys[version] = keys_of(release, self.options[version])

    def subkeys(self) -> list[history.Record]:
        """A record for each JSON option: its keys by release."""
        names = sorted({name for found in self.keys.values() for name in found})
        return [self._subkeys(name) for name in names]

    def _subkeys(self, option: str) -> history.Record:
        found = {version: keys[option] for version, keys in self.keys.items() if option in keys}
        if not any(keys.names for keys in found.values()):
            return {"name": option, "open": True}
        closed = {version: keys.names for version, keys in found.items()}
        stray = history.changes((version, keys.stray) for version, keys in found.items())
        return {"name": option, "stray": stray, "keys": history.spans(closed)}

    def write(self, folder: Path) -> None:
        """Writes the three tables."""
        folder.mkdir(parents=True, exist_ok=True)
        head = {"releases": list(self.dates.items())}
        tables: dict[str, Iterable[history.Record]] = {
            "options": history.options(self.options),
            "environment": history.options(self.variables),
            "subkeys": self.subkeys(),
        }
        for name, records in tables.items():
            lines = [history.write_line(record) for record in (head, *records)]
            folder.joinpath(f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
            print(f"{name}.jsonl: {len(lines) - 1} records, {len(self.dates)} releases")


def main() -> int:
    """Reads the releases and writes the tables; 1 if a release could not be had."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("versions", nargs="*", help="releases, or newest; default: all")
    parser.add_argument("--keep", type=Path, help="where to keep and look for Python files")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the tables")
    parser.add_argument(
        "--wheels", action="store_true", help="use (large) wheels of releases without sources"
    )
    words = parser.parse_args()
    tables, missing = Tables(), []
    with tempfile.TemporaryDirectory() as scratch:
        keep = words.keep or Path(scratch)
        for version in wanted(words.versions):
            folder = fetch(version, keep, words.wheels)
            if folder is None:
                missing.append(version)
            else:
                tables.add(version, folder)
    tables.write(words.out)
    if missing:
        print("no sources of " + ", ".join(missing) + " (try --wheels)", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

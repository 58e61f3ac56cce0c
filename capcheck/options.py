"""An engine's option table: which release knows which option, under which names.

    table = OptionTable(folder / "options.jsonl")      # read when first asked
    table.resolve("--max-num-s", (0, 26, 0)).verdict   # "ambiguous"
    table.default("gpu_memory_utilization", None)      # (0.9, 0.92): it depends on the release
    table.check_value("max_model_len", "32K", (0, 8, 3))

Beside the table may lie `renamed.jsonl` (names that are no option, or none any more, and what to
write instead) and `subkeys.jsonl` (keys inside JSON options).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from capcheck.option_names import Target, key_standing_of, near_names, standing_of
from capcheck.option_records import (
    Record,
    at_release,
    edge,
    long_names,
    option_from,
    present_in,
    read_records,
    version_of,
)
from capcheck.option_types import (
    Bounds,
    KeyStanding,
    Option,
    OptionType,
    Shape,
    Since,
    Standing,
    Subkeys,
)
from capcheck.versions import ReleaseName, Version, dotted, parse_release, parse_version

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Bounds",
    "KeyStanding",
    "Names",
    "Option",
    "OptionTable",
    "OptionType",
    "ReleaseName",
    "Shape",
    "Since",
    "Standing",
    "Subkeys",
    "Version",
    "dotted",
    "parse_release",
    "parse_version",
]

Names = Mapping[str, Option]


class OptionTable:
    """The options of all inspected releases of one engine."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._options: dict[str, Option] = {}
        self._strings: dict[Version | None, dict[str, Target]] = {}
        self._near: dict[tuple[str, Version | None], tuple[str, ...]] = {}
        self._standings: dict[tuple[str, Version | None, bool], Standing] = {}

    @cached_property
    def _read(self) -> tuple[Record, dict[str, Record]]:
        head, records = read_records(self._file)
        return head, {record["name"]: record for record in records}

    @cached_property
    def _renamed(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for record in read_records(self._file.with_name("renamed.jsonl"))[1]:
            found.setdefault(record["name"], []).append(record)
        return found

    @cached_property
    def _subkeys(self) -> dict[str, Record]:
        records = read_records(self._file.with_name("subkeys.jsonl"))[1]
        return {record["name"]: record for record in records}

    @cached_property
    def releases(self) -> tuple[Version, ...]:
        """The inspected releases, oldest first."""
        return tuple(sorted(version_of(text) for text, _ in self._read[0].get("releases", ())))

    @property
    def _oldest(self) -> Version:
        return self.releases[0] if self.releases else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every option of any release."""
        return tuple(self._read[1])

    @cached_property
    def shorts(self) -> Mapping[str, tuple[str, ...]]:
        """The options that each short name stands for in some release."""
        found: dict[str, dict[str, None]] = {}
        for name, record in self._read[1].items():
            for _, shape in record["shapes"]:
                for short in shape.get("shorts", ()):
                    found.setdefault(short, {})[name] = None
        return {short: tuple(names) for short, names in found.items()}

    def option(self, name: str) -> Option | None:
        """The option of that canonical name."""
        if name not in self._options and name in self._read[1]:
            words = self.instead(name, None)
            self._options[name] = option_from(self._read[1][name], words)
        return self._options.get(name)

    def has(self, name: str, version: Version | None) -> bool | None:
        """Whether a release has the option; None when that cannot be told."""
        record = self._read[1].get(name)
        return present_in(record, version, self._oldest) if record else False

    def shape(self, name: str, version: Version | None) -> Shape:
        """How a release reads the option's value; without a release, how the newest does."""
        option = self.option(name)
        return at_release(option.shapes, version) if option else Shape()

    def choices(self, name: str, version: Version | None) -> tuple[str, ...]:
        """The values that a release takes, where they are few; empty where they are not."""
        option = self.option(name)
        return (at_release(option.choices, version) or ()) if option else ()

    def default(self, name: str, version: Version | None) -> tuple[Any, ...]:
        """The option's default: several when the release is not known, none when it is computed.

        A release between two inspected ones has either's default. None is a default, too: the
        engine decides when it starts.
        """
        option = self.option(name)
        if option is None or self.has(name, version) is False:
            return ()
        values = [value for _, value in option.defaults]
        if version is not None:
            values = [at_release(option.defaults, near) for near in self._around(version)]
        distinct = {repr(value): value for value in values}
        if any(isinstance(value, dict) and "computed" in value for value in distinct.values()):
            return ()
        return tuple(distinct.values())

    def _around(self, version: Version) -> tuple[Version, ...]:
        """The release itself, if inspected or newer than all; else its neighbours."""
        older = [release for release in self.releases if release <= version]
        newer = [release for release in self.releases if release > version]
        if older and (older[-1] == version or not newer):
            return (older[-1],)
        return (*older[-1:], *newer[:1])

    def known(self, version: Version) -> tuple[str, ...]:
        """The names of the options that the release is known to have."""
        return tuple(name for name in self.names if self.has(name, version))

    def takes_value(self, name: str) -> bool | None:
        """Whether a value follows the name; None when releases differ, or it may or may not."""
        option = self.option(name)
        if option is None:
            return None
        kinds = {
            None if shape.optional_value else shape.type != "bool" for _, shape in option.shapes
        }
        return kinds.pop() if len(kinds) == 1 else None

    def instead(self, name: str, version: Version | None) -> str:
        """What to write in place of a name that the release does not have, in words.

        `name` may name a key, too: speculative_config.draft_model.
        """
        found = ""
        for record in self._renamed.get(name.lstrip("-").replace("-", "_"), ()):
            since, before = edge(record, "since"), edge(record, "before")
            if version is None or ((since or ()) <= version and (not before or version < before)):
                found = record["write"]
        return found

    def subkeys(self, name: str, version: Version | None) -> Subkeys | None:
        """The keys inside a JSON option; without a release, those of any release."""
        record = self._subkeys.get(name)
        if record is None or self.has(name, version) is False:
            return None
        if record.get("open"):
            return Subkeys((), True, "ignored")
        stray = [(version_of(text), kind) for text, kind in record["stray"]]
        names, gone, coming = [], [], []
        for key, span in record["keys"].items():
            first, last = edge(span, "before_first"), edge(span, "gone")
            if version is not None and first and version <= first:
                coming.append(key)
            elif version is not None and last and version >= last:
                gone.append(key)
            else:
                names.append(key)
        kind = at_release(stray, version)
        if version is None and len({kind for _, kind in stray}) > 1:
            kind = "unsure"
        return Subkeys(tuple(names), False, kind, tuple(gone), tuple(coming))

    def resolve(self, name: str, version: Version | None, *, prefixes: bool = True) -> Standing:
        """What a release makes of a written name: `-tp`, `--no-x`, `--max_num_s`, `max_num_seqs`.

        Prefixes are looked for among that release's own names only, as argparse does. A name that
        was an option of another release is removed (or not yet) even if it is a prefix of one
        now: `candidates` says which. Newer releases than the newest inspected have what that has.
        """
        key = (name, version, prefixes)
        if key not in self._standings:
            self._standings[key] = standing_of(self, name, version, prefixes)
        return self._standings[key]

    def resolve_key(self, name: str, key: str, version: Version | None) -> KeyStanding:
        """What a release makes of a key inside a JSON option: the first one of a.b.c."""
        return key_standing_of(self, name, key.partition(".")[0], version)

    def check_value(self, name: str, value: object, version: Version | None) -> str | None:
        """What the release expects in place of a value, in a sentence; None if it takes it.

        `value` is the text of an argument, True and False for a switch, or what YAML makes of a
        configuration file's value. Without a release, what some release takes is taken.
        """
        from capcheck.option_values import expectation

        option = self.option(name)
        if option is None:
            return None
        versions = [version] if version else [start for start, _ in _steps(option)]
        answers = [
            expectation(
                self.shape(name, one),
                self.choices(name, one),
                option,
                value,
                self.default(name, one),
            )
            for one in versions
        ]
        return None if None in answers else answers[-1]

    def near(self, name: str, version: Version | None) -> tuple[str, ...]:
        """The long names of a release that look like one that it does not know."""
        key = (name, version)
        if key not in self._near:
            self._near[key] = near_names(name, self.strings(version))
        return self._near[key]

    def strings(self, version: Version | None) -> Mapping[str, Target]:
        """Every long name that a release answers to, without the dashes."""
        if version not in self._strings:
            self._strings[version] = dict(self._long_names(version))
        return self._strings[version]

    def _long_names(self, version: Version | None) -> Iterator[tuple[str, Target]]:
        own: list[tuple[str, Target]] = []
        for name, record in self._read[1].items():
            present = present_in(record, version, self._oldest)
            if present is False:
                continue
            own.append((name, Target(name, False, present is True)))
            shapes = [shape for _, shape in record["shapes"]]
            for shape in [at_release(record["shapes"], version)] if version else shapes:
                for long, negated in long_names(name, shape):
                    yield long, Target(name, negated, present is True)
        yield from own  # an option's own name wins over another one's negation


def _steps(option: Option) -> list[tuple[Version, Any]]:
    """Where what an option takes changes, oldest first."""
    return sorted((*option.shapes, *option.choices), key=lambda step: step[0])

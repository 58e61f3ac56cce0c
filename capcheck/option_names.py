"""What a written option name stands for: shorts, prefixes, negations, near misses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from capcheck.option_types import KeyStanding, Option, Shape, Since, Standing
from capcheck.versions import Version

if TYPE_CHECKING:
    from capcheck.options import OptionTable


LIKENESS, MOST_NEAR_MISSES = 0.72, 3


class Target(NamedTuple):
    """What a long name stands for in one release."""

    name: str  # of the option
    negated: bool
    certain: bool  # False: the release lies between two inspected ones, of which one lacks it


def plain_name(written: str) -> str:
    """max_model_len for --max-model-len, --max_model_len and --max-model-len.sub."""
    return written.lstrip("-").partition(".")[0].replace("-", "_")


def standing_of(
    table: OptionTable, written: str, version: Version | None, prefixes: bool
) -> Standing:
    """See `OptionTable.resolve`."""
    if written.startswith("-") and not written.startswith("--"):
        return _short(table, written.partition("=")[0].partition(".")[0], version)
    name = plain_name(written)
    if table.has(name, version):
        return Standing("known", table.option(name), matched=name)
    strings = table.strings(version)
    starting = _starting(table, name, strings) if prefixes else ()
    if name in strings:
        return _exact(table, name, version)
    lost = _of_another_release(table, name, version, tuple(starting))
    if lost is not None:
        return lost
    if len(starting) == 1:
        return _exact(table, starting[0], version)
    instead = table.instead(name, version)
    if starting:
        return Standing("ambiguous", None, tuple(starting), instead=instead)
    return Standing(
        "unsure" if _beyond(table, version) else "unknown",
        None,
        table.near(name, version),
        instead=instead,
    )


def _beyond(table: OptionTable, version: Version | None) -> bool:
    """Whether the release may have options that no inspected one has."""
    releases = table.releases
    return bool(version and releases and not releases[0] <= version <= releases[-1])


def _starting(table: OptionTable, name: str, strings: Iterable[str]) -> list[str]:
    """The long names that a prefix stands for; words given by place have no name."""
    found = []
    for long in strings:
        if name and long.startswith(name):
            option = table.option(long)
            if option is None or not option.positional:
                found.append(long)
    return sorted(found)


def _exact(table: OptionTable, long: str, version: Version | None) -> Standing:
    target = table.strings(version)[long]
    option = table.option(target.name)
    standing = Standing("known", option, matched=long, negated=target.negated)
    if target.certain or option is None:
        return standing
    return standing._replace(
        verdict="unsure",
        since=_since(option),
        until=_until(option),
        instead=table.instead(option.name, version),
    )


def _of_another_release(
    table: OptionTable, name: str, version: Version | None, starting: tuple[str, ...]
) -> Standing | None:
    """The standing of a name that only earlier or later releases answer to."""
    target = table.strings(None).get(name)
    option = table.option(target.name) if target else None
    if version is None or target is None or option is None:
        return None
    if table.has(option.name, version) is False:
        since, until = _since(option), _until(option)
    else:  # the option is there, but not under that name
        since, until = _name_edges(table, option, lambda shape: name in names_in(option, shape))
    early = since is not None and version < since.first_with
    return Standing(
        "not yet" if early else "removed",
        option,
        starting,
        matched=name,
        negated=target.negated,
        instead=table.instead(name, version),
        since=since if early else None,
        until=None if early else until,
    )


def names_in(option: Option, shape: Shape) -> set[str]:
    """The long names that an option answers to where it has that shape."""
    longs = {option.name, *shape.aliases}
    negations = {f"no_{long}" for long in longs} if shape.negatable else set()
    return longs | negations | ({shape.inverse} if shape.inverse else set())


def _name_edges(
    table: OptionTable, option: Option, fits: Callable[[Shape], bool]
) -> tuple[Since | None, Since | None]:
    """When shapes that fit begin and end, while the option itself stays."""
    at = [index for index, (_, shape) in enumerate(option.shapes) if fits(shape)]
    starts = [start for start, _ in option.shapes]
    since = _edge_before(table, starts[at[0]]) if at and at[0] else _since(option)
    ends = at and at[-1] + 1 < len(starts)
    return since, _edge_before(table, starts[at[-1] + 1]) if ends else _until(option)


def _edge_before(table: OptionTable, start: Version) -> Since | None:
    older = [release for release in table.releases if release < start]
    return Since(older[-1], start) if older else None


def _since(option: Option) -> Since | None:
    if option.before_first is None or option.first is None:
        return None
    return Since(option.before_first, option.first)


def _until(option: Option) -> Since | None:
    """The edge behind which the option is gone: the last release with it, the first without."""
    if option.last is None or option.gone is None:
        return None
    return Since(option.last, option.gone)


def _short(table: OptionTable, written: str, version: Version | None) -> Standing:
    here: list[Option] = []
    elsewhere: list[Option] = []
    for name in table.shorts.get(written, ()):
        option = table.option(name)
        if option is None:
            continue
        present = version is None or table.has(name, version) is not False
        fits = version is None or written in table.shape(name, version).shorts
        (here if present and fits else elsewhere).append(option)
    if len(here) > 1:
        return Standing("ambiguous", None, tuple(option.name for option in here))
    if here:
        return _exact(table, here[0].name, version)
    if not elsewhere:
        return Standing("unsure" if _beyond(table, version) else "unknown", None)
    option = elsewhere[-1]
    since, until = _name_edges(table, option, lambda shape: written in shape.shorts)
    early = version is not None and since is not None and version < since.first_with
    standing = Standing("not yet" if early else "removed", option, matched=option.name)
    return standing._replace(since=since) if early else standing._replace(until=until)


def near_names(name: str, strings: Iterable[str]) -> tuple[str, ...]:
    """The names that look like one that is not known, the likest first."""
    from difflib import get_close_matches

    likely = [long for long in strings if long.startswith("no_") == name.startswith("no_")]
    return tuple(get_close_matches(name, likely, MOST_NEAR_MISSES, LIKENESS))


def key_standing_of(
    table: OptionTable, option: str, key: str, version: Version | None
) -> KeyStanding:
    """See `OptionTable.resolve_key`."""
    keys = table.subkeys(option, version)
    if keys is None:
        return KeyStanding("unsure")
    if keys.open or key in keys.names:
        return KeyStanding("known", keys.stray)
    verdict: Literal["removed", "not yet", "unsure", "unknown"] = "unknown"
    if key in keys.gone:
        verdict = "removed"
    elif key in keys.coming:
        verdict = "not yet"
    elif _beyond(table, version):
        verdict = "unsure"
    instead = table.instead(f"{option}.{key}", version)
    return KeyStanding(verdict, keys.stray, near_names(key, keys.names), instead)

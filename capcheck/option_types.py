"""What an option table says: options, their shape by release, and what a name stands for."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from capcheck.versions import Version

OptionType = Literal["int", "float", "bool", "text", "json", "list", "tokens", "choice"]


class Since(NamedTuple):
    """An edge known only to lie between two inspected releases."""

    last_without: Version
    first_with: Version


class Bounds(NamedTuple):
    """The numbers that an option takes."""

    minimum: float | None = None
    maximum: float | None = None
    above: bool = False  # the minimum itself is too little
    below: bool = False  # the maximum itself is too much

    def hold(self, number: float) -> bool:
        """Whether the number lies within."""
        low, high = self.minimum, self.maximum
        if low is not None and (number < low or (self.above and number == low)):
            return False
        return high is None or not (number > high or (self.below and number == high))


class Shape(NamedTuple):
    """How one release reads an option's value."""

    type: OptionType = "text"
    item: OptionType = "text"  # of each value of a list
    bounds: Bounds = Bounds()
    words: tuple[str, ...] = ()  # taken besides the type: auto
    folded: bool = False  # values are compared without case, _ as -
    open: bool = False  # values other than the choices are taken, too
    loose: bool = False  # JSON or plain text
    pairs: bool = False  # image=4,video=1, too, where the type is JSON; only, where it is text
    negatable: bool = False  # --no-x exists
    inverse: str = ""  # another name that says the opposite: disable_x for enable_x
    optional_value: bool = False  # may stand without a value
    repeated: bool = False  # a list given one value at a time
    shorts: tuple[str, ...] = ()  # -tp
    aliases: tuple[str, ...] = ()


class Option(NamedTuple):
    """One option over all releases. `None` bounds mean older or newer than what was inspected."""

    name: str  # canonical: snake case, e.g. max_model_len
    type: OptionType
    first: Version | None  # first inspected release that has it; None: the oldest one already did
    before_first: Version | None  # the inspected release before `first` (lacks it)
    gone: Version | None  # first inspected release without it again; None: the newest still has it
    last: Version | None  # the inspected release before `gone` (still has it)
    defaults: tuple[tuple[Version, Any], ...] = ()  # (from release, default), oldest first
    choices: tuple[tuple[Version, tuple[str, ...]], ...] = ()
    shorts: tuple[str, ...] = ()  # -tp
    aliases: tuple[str, ...] = ()  # other long names
    negatable: bool = False  # --no-x exists
    minimum: float | None = None
    maximum: float | None = None
    human: bool = False  # takes 32k
    replaced_by: str = ""  # what to write instead, in words
    group: Literal["engine", "frontend", "environment"] = "engine"
    shapes: tuple[tuple[Version, Shape], ...] = ()  # from release, oldest first; the rest sums up
    positional: bool = False  # given by its place, not by its name
    absent: tuple[Version, ...] = ()  # inspected releases between the edges that lack it


class Standing(NamedTuple):
    """What one release says of one option name."""

    verdict: Literal["known", "unknown", "removed", "not yet", "ambiguous", "unsure"]
    option: Option | None
    candidates: tuple[str, ...] = ()  # ambiguous: the options it could be; unknown: near misses
    matched: str = ""  # the long name that was meant, where the written one is a short or a prefix
    negated: bool = False  # --no-x, or the name that says the opposite
    instead: str = ""  # what to write, in words; empty: nothing is known
    since: Since | None = None  # not yet: the edge that the release lies before
    until: Since | None = None  # removed: last_without is the last that has it, first_with lacks it


class Subkeys(NamedTuple):
    """The keys inside one JSON option in one release."""

    names: tuple[str, ...]
    open: bool  # any key is taken
    stray: Literal["error", "ignored", "unsure"]  # what a key outside of `names` does
    gone: tuple[str, ...] = ()  # keys of earlier releases
    coming: tuple[str, ...] = ()  # keys of later releases


class KeyStanding(NamedTuple):
    """What one release says of a key inside a JSON option."""

    verdict: Literal["known", "unknown", "removed", "not yet", "unsure"]
    stray: Literal["error", "ignored", "unsure"] = "unsure"  # what becomes of an unknown key
    candidates: tuple[str, ...] = ()  # near misses
    instead: str = ""  # what to write, in words

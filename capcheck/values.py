"""Values that know whether they are known, and where they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

T = TypeVar("T")
U = TypeVar("U")

Path = tuple[str | int, ...]
OriginKind = Literal["written", "assumed", "default", "derived"]

MOST_ALTERNATIVES = 8
COMMAND_LINE = "<command line>"


class Place(NamedTuple):
    """A stretch of a file: 1-based code points, end exclusive, file relative to the root."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1
    path: Path = ()  # in that file's own tree
    exact: bool = True  # False inside folded scalars: the whole scalar is marked

    @property
    def start(self) -> str:
        """`file:line:column`, as editors take it."""
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Place(COMMAND_LINE)


class Origin(NamedTuple):
    """Who said a value: the user's text, an assumption, an engine's default, another value."""

    kind: OriginKind
    place: Place
    via: tuple[Place, ...] = ()  # spec engine.config -> vllm.yaml; args -> ConfigMap key
    word: str = ""  # the user's own name for it: --max-model-len
    why: str = ""  # "vLLM 0.20+ default", "--assume", "config.json max_position_embeddings"


class Unknown(Exception):
    """An input that a check needs is not known. The dispatcher turns it into a skip."""

    def __init__(self, value: Value[Any], name: str = "") -> None:
        super().__init__(name or value.origin.why or "not known")
        self.value = value
        self.name = name  # what it was asked for as

    @property
    def why(self) -> str:
        """Why the value is not known, in the words of whoever lost it; or what it may be."""
        if len(self.value.options) > 1:
            return f"one of {', '.join(str(option) for option in self.value.options)}"
        return self.value.origin.why or "not known"

    @property
    def reason(self) -> str:
        """What is not known, and why."""
        return f"{self.name}: {self.why}" if self.name else self.why


class Value(NamedTuple, Generic[T]):
    """One option is known, several are alternatives, none is unknown."""

    options: tuple[T, ...]
    origin: Origin

    @property
    def known(self) -> bool:
        """Whether there is exactly one option."""
        return len(self.options) == 1

    @property
    def unknown(self) -> bool:
        """Whether nobody can tell."""
        return not self.options

    @property
    def place(self) -> Place:
        """Where it comes from."""
        return self.origin.place

    def get(self, name: str = "") -> T:
        """The only option. Raises Unknown unless there is exactly one."""
        if len(self.options) != 1:
            raise Unknown(self, name)
        return self.options[0]

    def either(self, otherwise: U) -> T | U:
        """The only option, or `otherwise`: for reports, never for a verdict."""
        return self.options[0] if len(self.options) == 1 else otherwise

    def map(self, change: Callable[[T], U], why: str = "") -> Value[U]:
        """The same origin over changed options."""
        origin = self.origin._replace(why=why) if why else self.origin
        return Value(tuple(change(option) for option in self.options), origin)

    def only(self, option: T) -> Value[T]:
        """This value with one of its alternatives chosen."""
        return Value((option,), self.origin)

    def because(self, why: str) -> Value[T]:
        """The same options, with another reason."""
        return Value(self.options, self.origin._replace(why=why))


def written(option: T, place: Place, word: str = "") -> Value[T]:
    """A value that the user wrote at `place`, under the name `word`."""
    return Value((option,), Origin("written", place, word=word))


def default(option: T, place: Place, why: str) -> Value[T]:
    """A value that nobody wrote: `place` is the mapping where it would be written."""
    return Value((option,), Origin("default", place, why=why))


def derived(option: T, place: Place, why: str) -> Value[T]:
    """A value that follows from another one; `why` says from what."""
    return Value((option,), Origin("derived", place, why=why))


def unknown(place: Place, why: str, word: str = "") -> Value[T]:
    """A value that nobody can tell; `why` completes "skipped because ..."."""
    return Value((), Origin("written" if word else "derived", place, word=word, why=why))


def alternatives(options: Iterable[T], origin: Origin) -> Value[T]:
    """Several possibilities, at most eight; more are unknown."""
    distinct = tuple(dict.fromkeys(options))
    if len(distinct) > MOST_ALTERNATIVES:
        return Value((), origin._replace(why=f"{len(distinct)} possibilities"))
    return Value(distinct, origin)

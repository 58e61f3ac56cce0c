"""Rules of option names and values."""

from __future__ import annotations

from collections.abc import Callable

from capcheck import Case, Fail, Margin, OptionTable, Pass, Place, Rule, Skip, Terms, rule
from capcheck.findings import Answer, place_of
from capcheck.options import Option, Since, dotted
from capcheck.source import Scalar
from capcheck_options.spelling import advice, spelled
from capcheck_options.written import (
    Written,
    argument,
    release_of,
    release_words,
    unsure,
    written,
)

CHAT = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/l40s, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64}
"""
NO_TABLE = "no option table is known for this engine"
NO_ENGINE = "no engine is named"
MOST_NAMED = 20  # names that are no option, one by one; the others are counted


def _with(option: str, version: str = "0.11.0") -> str:
    return CHAT.replace("max_num_seqs: 64", option).replace("0.11.0", version)


def _each(case: Case, judge: Callable[[Written, OptionTable], tuple[Fail, ...]]) -> Answer:
    table = case.engine.options
    if table is None:
        return _no_table(case)
    options = list(written(case, table))
    if not options:
        return Skip("no options are given")
    found = [fail for one in options for fail in judge(one, table)]
    return tuple(found) if found else Pass()


def _suggestions(one: Written, table: OptionTable, case: Case) -> tuple[str, ...]:
    """What to write instead, in the user's own spelling."""
    if one.standing.instead:
        return (advice(one.standing.instead, one.word, table, release_of(case)),)
    return _meant(tuple(spelled(name, one.word) for name in one.standing.candidates))


def _meant(near: tuple[str, ...]) -> tuple[str, ...]:
    return (f"did you mean {' or '.join(near[:3])}?",) if near else ()


def _no_table(case: Case) -> Skip:
    return Skip(NO_ENGINE if case.engine.fallback else NO_TABLE)


@rule(
    "options/unknown",
    title="Every option is one that the engine has",
    why="An engine refuses to start when it is given an option that it does not know.",
    fix="Use the name that the engine knows.",
    fails=_with("max_num_sequences: 64"),
    passes=CHAT,
)
def unknown(case: Case, t: Terms) -> Answer:
    """Names that no release, or not this one, ever had; and names inside JSON options."""
    del t

    def judge(one: Written, table: OptionTable) -> tuple[Fail, ...]:
        if one.standing.verdict == "unknown":
            return (_unknown(one, table, case),)
        return _stray_keys(one, table, case)

    return _counted(_each(case, judge), case)


def _counted(answer: Answer, case: Case) -> Answer:
    """The first findings as they are, and one for all others: as certain as any of these."""
    if isinstance(answer, Margin | Fail | Pass | Skip):
        return answer
    first, others = list(answer)[:MOST_NAMED], list(answer)[MOST_NAMED:]
    if len(others) > 1:
        sure = next((one for one in others if not one.risk and not one.severity), others[0])
        message = f"and {len(others):,} more names that {release_words(case)} does not have"
        others = [sure._replace(message=message, arithmetic="", help=())]
    return (*first, *others)


def _unknown(one: Written, table: OptionTable, case: Case) -> Fail:
    """A name that is no option, or words of a command line that stand where options do."""
    release = release_words(case)
    if any(blank in one.word.strip() for blank in " \n"):
        message = f"{one.word.split()[0]} and what follows are one word to {release}"
        words = ("write each option and each value as a word of its own",)
        return Fail(one.key, message, help=words)
    if one.bare:
        message = f"{one.word} stands where {release} takes only options"
        model = () if case.model.known else (f"--model {one.word}, if it is the model",)
        return Fail(one.key, message, help=model)
    message, doubt = f"{one.word} is not an option of {release}", unsure(case, table)
    help = _suggestions(one, table, case)
    if doubt and not help:  # nothing it could be misspelt from: perhaps that build has it
        return Fail(one.key, f"{message}; {doubt}", risk=True)
    return Fail(one.key, message, help=help, risk=case.release.foreign)


def _stray_keys(one: Written, table: OptionTable, case: Case) -> tuple[Fail, ...]:
    """Keys that a JSON option does not have in this release."""
    option = one.standing.option
    if option is None or table.subkeys(option.name, release_of(case)) is None:
        return ()
    found = (_stray_key(option.name, key, place, table, case) for key, place in one.keys)
    return tuple(fail for fail in found if fail is not None)


def _stray_key(option: str, key: str, place: Place, table: OptionTable, case: Case) -> Fail | None:
    """A key that is none, or none of this release; some releases drop what they do not know."""
    standing = table.resolve_key(option, key, release_of(case))
    if standing.verdict in ("known", "unsure"):
        return None
    when = {"removed": "no longer", "not yet": "not yet"}.get(standing.verdict, "not")
    message = f"{option}.{key} is {when} a key of {release_words(case)}"
    help = (standing.instead,) if standing.instead else _meant(standing.candidates)
    if standing.stray == "ignored":
        return Fail(place, f"{message}: it is ignored", help=help, severity="warning")
    doubt = unsure(case, table)
    risk = standing.stray == "unsure" or (bool(doubt) and (not help or case.release.foreign))
    return Fail(place, f"{message}; {doubt}" if risk and doubt else message, help=help, risk=risk)


def _edge(since: Since | None) -> str:
    return dotted(since.first_with) if since is not None else "another release"


@rule(
    "options/removed",
    title="Every option belongs to this release",
    why="Options come and go: after an image bump the engine refuses those that are gone, before "
    "it those that are not there yet.",
    fix="Use what replaced the option, or the release that has it.",
    fails=_with("swap_space: 4", "0.18.1"),
    passes=CHAT,
)
def removed(case: Case, t: Terms) -> Answer:
    """Names of earlier or later releases."""
    del t

    def judge(one: Written, table: OptionTable) -> tuple[Fail, ...]:
        standing = one.standing
        if standing.verdict not in ("removed", "not yet"):
            return ()
        if standing.verdict == "removed":
            message = f"{one.word} is gone from {case.engine.name} {_edge(standing.until)} on"
        else:
            message = f"{one.word} comes with {case.engine.name} {_edge(standing.since)}"
        arithmetic = f"the deployment runs {case.engine.name} {case.release.text}"
        doubt = unsure(case, table)
        risk = bool(doubt) and (case.release.foreign or standing.verdict == "not yet")
        message = f"{message}; {doubt}" if risk else message
        return (Fail(one.key, message, arithmetic, _suggestions(one, table, case), risk),)

    return _each(case, judge)


@rule(
    "options/ambiguous",
    title="Shortened options stand for one option",
    why="Prefixes of option names are accepted while they are unique; a new option can make one "
    "ambiguous, and the engine refuses it.",
    fix="Write the whole name.",
    fails=CHAT.replace("max_num_seqs: 64", "max_num: 64"),
    passes=CHAT,
)
def ambiguous(case: Case, t: Terms) -> Answer:
    """Prefixes of several options of this release."""
    del t

    def judge(one: Written, table: OptionTable) -> tuple[Fail, ...]:
        del table
        if one.standing.verdict != "ambiguous":
            return ()
        names = ", ".join(spelled(name, one.word) for name in one.standing.candidates[:4])
        return (Fail(one.key, f"{one.word} is short for several options: {names}"),)

    return _each(case, judge)


@rule(
    "options/value",
    title="Every option has a value that the engine takes",
    why="A value of the wrong type, out of range or with literal quotes stops the engine.",
    fix="Write a value that the option takes.",
    fails=_with("tokenizer_mode: fast"),
    passes=CHAT,
)
def value(case: Case, t: Terms) -> Answer:
    """Types, ranges, choices, and quotes that became part of a value."""
    del t

    def judge(one: Written, table: OptionTable) -> tuple[Fail, ...]:
        option = one.standing.option
        if option is None or (one.value is not None and not one.value.known):
            return ()
        expected = _expected(one, option, table, case)
        if expected is None:
            return ()
        # Newer releases and other builds take more words than those that were looked at.
        words = table.choices(option.name, release_of(case))
        doubt = unsure(case, table) if words else ""
        message = f"{one.word}: expected {expected}" + (f"; {doubt}" if doubt else "")
        return (Fail(one.value or one.key, message, risk=bool(doubt)),)

    return _with_supports(case, _each(case, judge))


def _expected(one: Written, option: Option, table: OptionTable, case: Case) -> str | None:
    """What the release takes in place of the value; None when it takes it."""
    if one.value is not None:
        return table.check_value(option.name, argument(one.value), release_of(case))
    kinds = {shape.type for _, shape in option.shapes}
    return None if "json" in kinds else "one value, not a mapping"


def _with_supports(case: Case, answer: Answer) -> Answer:
    """The table's answer, and what the engine knows besides of the values it takes."""
    fails = list(answer) if not isinstance(answer, Margin | Fail | Pass | Skip) else []
    seen = {place_of(fail.at) for fail in fails}
    for one in case.supports("options/value"):
        if one.legal is False and place_of(one.at) not in seen:
            fails.append(Fail(one.at, one.message, one.arithmetic, one.help))
    return tuple(fails) if fails else answer


@rule(
    "options/version-unknown",
    title="The release is known where options depend on it",
    why="Without the release it cannot be told whether the engine knows an option that came or "
    "went, and its memory accounting is one of several.",
    fix="Pin the image or state engine.version.",
    fails=CHAT.replace('  version: "0.11.0"\n', "").replace("max_num_seqs: 64", "swap_space: 4"),
    passes=CHAT,
    severity="warning",
)
def version_unknown(case: Case, t: Terms) -> Answer:
    """Options that only some releases have, when the release is not known."""
    del t
    if case.release.known:
        return _beyond(case)
    table = case.engine.options
    if table is None:
        return _no_table(case)
    help = ("state engine.version, or --assume engine-version=...",)
    at = case.deployment.place_for("engine", "version")
    open = _open(case, table)
    stated = case.deployment.fields.get(("engine", "version"))
    if not open and case.release.foreign and stated and isinstance(stated.either(None), Scalar):
        return Fail(at, f"{case.release.why}: what it takes is not known", help=help)
    if not open:
        return Pass("every option is known to all releases")
    message = f"{_names(open)} cannot be told without the release: {case.release.why}"
    return Fail(open[0].key if len(open) == 1 else at, message, help=help)


def _open(case: Case, table: OptionTable) -> list[Written]:
    return [one for one in written(case, table) if one.standing.verdict == "unsure"]


def _names(options: list[Written]) -> str:
    return ", ".join(one.word for one in options[:4])


def _beyond(case: Case) -> Answer:
    table = case.engine.options
    if table is None:
        return _no_table(case)
    open = _open(case, table)
    if not open:
        return Pass("the release is known")
    return Fail(
        open[0].key, f"{_names(open)} cannot be told for {case.engine.name} {case.release.text}: "
        "the release lies between or beyond those that were looked at",
    )  # fmt: skip


ALL: tuple[Rule, ...] = (unknown, removed, ambiguous, value, version_unknown)

"""Rules of option names and values."""

from __future__ import annotations

from collections.abc import Callable

from capcheck import Case, Fail, OptionTable, Pass, Rule, Skip, Terms, rule
from capcheck.findings import Answer
from capcheck.options import Since, dotted
from capcheck.quantity import Severity
from capcheck_options.written import Written, argument, release_of, release_words, written

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


def _with(option: str, version: str = "0.11.0") -> str:
    return CHAT.replace("max_num_seqs: 64", option).replace("0.11.0", version)


def _each(case: Case, judge: Callable[[Written, OptionTable], tuple[Fail, ...]]) -> Answer:
    table = case.engine.options
    if table is None:
        return Skip(NO_TABLE)
    options = list(written(case, table))
    if not options:
        return Skip("no options are given")
    found = [fail for one in options for fail in judge(one, table)]
    return tuple(found) if found else Pass()


def _suggestions(one: Written) -> tuple[str, ...]:
    if one.standing.instead:
        return (one.standing.instead,)
    near = one.standing.candidates
    return (f"did you mean {' or '.join(near[:3])}?",) if near else ()


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
            message = f"{one.word} is not an option of {release_words(case)}"
            return (Fail(one.key, message, help=_suggestions(one)),)
        return _stray_keys(one, table, case)

    return _each(case, judge)


def _stray_keys(one: Written, table: OptionTable, case: Case) -> tuple[Fail, ...]:
    """Keys that a JSON option does not have in this release."""
    option = one.standing.option
    keys = table.subkeys(option.name, release_of(case)) if option is not None else None
    if keys is None or keys.open or option is None:
        return ()
    refused = keys.stray == "error"
    fails = []
    for key, place in one.keys:
        if key in keys.names:
            continue
        if key in (*keys.gone, *keys.coming):
            when = "no longer" if key in keys.gone else "not yet"
            message = f"{option.name}.{key} is {when} a key of {release_words(case)}"
        else:
            message = f"{option.name}.{key} is not a key of {release_words(case)}"
        # Some releases drop what they do not know: the engine starts, and the key does nothing.
        severity: Severity | None = None if refused else "warning"
        message += "" if refused else ": it is ignored"
        help = _key_help(key, table, keys.names, case)
        fails.append(Fail(place, message, help=help, severity=severity))
    return tuple(fails)


def _key_help(
    key: str, table: OptionTable, names: tuple[str, ...], case: Case
) -> tuple[str, ...]:
    from difflib import get_close_matches

    ending = [name for name in names if key.endswith(name) and len(name) > 5]
    near = ending or get_close_matches(key, names, 2)
    if near:
        return (f"did you mean {' or '.join(near)}?",)
    instead = table.instead(key, release_of(case))
    return (instead,) if instead else ()


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
        del table
        standing = one.standing
        if standing.verdict not in ("removed", "not yet"):
            return ()
        if standing.verdict == "removed":
            message = f"{one.word} is gone from {case.engine.name} {_edge(standing.until)} on"
        else:
            message = f"{one.word} comes with {case.engine.name} {_edge(standing.since)}"
        arithmetic = f"the deployment runs {case.engine.name} {case.release.text}"
        return (Fail(one.key, message, arithmetic, _suggestions(one)),)

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
        names = ", ".join(one.standing.candidates[:4])
        return (Fail(one.key, f"{one.word} is short for several options: {names}"),)

    return _each(case, judge)


@rule(
    "options/value",
    title="Every option has a value that the engine takes",
    why="A value of the wrong type, out of range or with literal quotes stops the engine.",
    fix="Write a value that the option takes.",
    fails=_with("gpu_memory_utilization: 1.2"),
    passes=CHAT,
)
def value(case: Case, t: Terms) -> Answer:
    """Types, ranges, choices, and quotes that became part of a value."""
    del t

    def judge(one: Written, table: OptionTable) -> tuple[Fail, ...]:
        option = one.standing.option
        if option is None or one.value is None or not one.value.known:
            return ()
        expected = table.check_value(option.name, argument(one.value), release_of(case))
        if expected is None:
            return ()
        return (Fail(one.value, f"{one.word}: expected {expected}"),)

    return _each(case, judge)


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
        return Skip(NO_TABLE)
    unsure = [one for one in written(case, table) if one.standing.verdict == "unsure"]
    if not unsure:
        return Pass("every option is known to all releases")
    names = ", ".join(one.word for one in unsure[:4])
    at = case.deployment.place_for("engine", "version")
    message = f"{names} cannot be told without the release: {case.release.why}"
    return Fail(unsure[0].key if len(unsure) == 1 else at, message,
                help=("state engine.version, or --assume engine-version=...",))  # fmt: skip


def _beyond(case: Case) -> Answer:
    table = case.engine.options
    if table is None:
        return Skip(NO_TABLE)
    unsure = [one for one in written(case, table) if one.standing.verdict == "unsure"]
    if not unsure:
        return Pass("the release is known")
    names = ", ".join(one.word for one in unsure[:4])
    return Fail(
        unsure[0].key, f"{names} cannot be told for {case.engine.name} {case.release.text}: "
        "the release lies between or beyond those that were looked at",
    )  # fmt: skip


ALL: tuple[Rule, ...] = (unknown, removed, ambiguous, value, version_unknown)

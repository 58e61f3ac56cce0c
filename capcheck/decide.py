"""What is reported of all findings: selection, severities, and suppressions in comments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from capcheck.comments import WORDS, Suppression, suppressions
from capcheck.config import Settings, UsageError
from capcheck.findings import Finding
from capcheck.selection import ALL, INPUT_CONCERNS, PLUGIN_ERROR

UNUSED = "capcheck/unused-ignore"
BARE = "capcheck/bare-ignore"


class Decided(NamedTuple):
    """Findings that remain, those that comments suppress, and those about the comments."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    extra: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is reported, by path, line, column, rule."""
        return tuple(sorted((*self.kept, *self.extra), key=order))


def order(finding: Finding) -> tuple[str, int, int, str, str, str]:
    """The order of reports; it depends on nothing but the finding."""
    place = finding.place
    where = place.file, place.line, place.column
    return *where, finding.rule, finding.deployment, finding.message


def _near(name: str, known: Iterable[str]) -> str:
    """Which id may have been meant, by the whole of it or by the name behind the concern."""
    from capcheck.schema_errors import did_you_mean
    from capcheck.schema_tree import closest

    known = list(known)
    found = closest(name, known)
    if not found:
        by_name = {one.partition("/")[2]: one for one in known if "/" in one}
        found = by_name.get(closest(name.rpartition("/")[2], by_name), "")
    return "".join(did_you_mean([found] if found else []))


def _selectors(settings: Settings) -> Iterable[tuple[str, str]]:
    """Every selector of the settings, with the key that it stands under."""
    for key in ("select", "extend-select", "ignore", "require"):
        for name in getattr(settings, key.replace("-", "_")):
            yield key, name
    for _, names in settings.per_file_ignores:
        yield from (("per-file-ignores", name) for name in names)
    yield from (("severity", name) for name in settings.severity)


def checked(settings: Settings, known: Mapping[str, str]) -> Settings:
    """The settings with every selector known and renamed rules under their present names.

    `known` gives the id of every id and alias. Raises UsageError for what names no rule.
    """
    concerns = {id.partition("/")[0] for id in known.values()}
    names = {**{one: one for one in concerns}, ALL: ALL, **known}
    faults = []
    for key, name in _selectors(settings):
        if name not in names:
            near = _near(name, names)
            who = settings.said.get(key, key)
            faults.append("; ".join(filter(None, (f"{who}: no rule is named {name!r}", near))))
    if faults:
        raise UsageError("\n".join(dict.fromkeys(faults)))

    def renamed(given: Iterable[str]) -> tuple[str, ...]:
        return tuple(names[one] for one in given)

    return settings._replace(
        select=renamed(settings.select),
        extend_select=renamed(settings.extend_select),
        ignore=renamed(settings.ignore),
        require=renamed(settings.require),
        per_file_ignores=tuple((glob, renamed(rules)) for glob, rules in settings.per_file_ignores),
        severity={names[one]: severity for one, severity in settings.severity.items()},
    )


def _graded(finding: Finding, settings: Settings) -> Finding:
    """The finding in the configured severity; what is at risk is a warning at most."""
    wanted = settings.severity_of(finding.rule)
    if finding.rule == PLUGIN_ERROR or wanted is None:
        return finding
    if wanted == "error" and finding.verdict != "fail":
        return finding
    return finding._replace(severity=wanted)


class _Comments:
    """All suppressions of a run, and which of their rules were of use."""

    def __init__(self, texts: Mapping[str, str], known: Mapping[str, str]) -> None:
        self.known = known
        self.by_file = {file: suppressions(text, file) for file, text in texts.items()}
        self.used: set[tuple[Suppression, str]] = set()

    def reason_for(self, finding: Finding) -> str:
        """Why a comment suppresses the finding; "" when none does."""
        if finding.rule == PLUGIN_ERROR:
            return ""
        for one in self.by_file.get(finding.place.file, ()):
            if not one.reason or one.word not in WORDS:
                continue
            if one.lines is not None and finding.place.line not in one.lines:
                continue
            for name in one.rules:
                if self.known.get(name) == finding.rule:
                    self.used.add((one, name))
                    return one.reason
        return ""

    def faults(
        self, settings: Settings, skipped: frozenset[str], doubtful: frozenset[str]
    ) -> Iterable[Finding]:
        """What is wrong with the comments themselves; in `doubtful` files nothing is unused."""
        for file, ones in self.by_file.items():
            for one in ones:
                if one.word not in WORDS:
                    help = f"did you mean {' or '.join(WORDS)}?"
                    yield _about(UNUSED, one, f"{one.word!r} suppresses nothing", help)
                elif not one.rules:
                    help = f"write {one.word}[RULE] and the reason"
                    yield _about(BARE, one, "a suppression names its rules", help)
                elif not one.reason:
                    help = "say why behind the bracket"
                    yield _about(BARE, one, "a suppression gives its reason", help)
                else:
                    ran = _ran(settings, skipped) if file not in doubtful else _never
                    yield from self._unused(one, ran)

    def _unused(self, one: Suppression, ran: Callable[[str, str], bool]) -> Iterable[Finding]:
        concerns = {id.partition("/")[0] for id in self.known}
        for name in one.rules:
            rule = self.known.get(name)
            if name in concerns or name == ALL:
                yield _about(BARE, one, f"{name} is no single rule: a suppression names each", "")
            elif rule is None:
                message = f"no rule is named {name!r}"
                yield _about(UNUSED, one, message, _near(name, self.known))
            elif rule == PLUGIN_ERROR:
                yield _about(UNUSED, one, f"{name} cannot be suppressed", "")
            elif (one, name) not in self.used and ran(rule, one.place.file):
                help = "remove it" if len(one.rules) == 1 else f"remove {name}"
                yield _about(UNUSED, one, f"nothing to suppress: {name} is not reported", help)


def _ran(settings: Settings, skipped: frozenset[str]) -> Callable[[str, str], bool]:
    """Whether a rule had an answer for a file, so that no finding means nothing was found."""
    return lambda rule, file: rule not in skipped and settings.selects(rule, file)


def _never(rule: str, file: str) -> bool:
    """Where the input itself is at fault, nobody knows what rules would say."""
    del rule, file
    return False


def _doubtful(findings: Iterable[Finding], texts: Iterable[str]) -> frozenset[str]:
    """The files in which missing findings prove nothing: all of them when a plugin failed."""
    files = set()
    for one in findings:
        if one.rule == PLUGIN_ERROR:
            return frozenset(texts)
        if one.rule.partition("/")[0] in INPUT_CONCERNS and one.severity == "error":
            files.add(one.place.file)
    return frozenset(files)


def _about(rule: str, one: Suppression, message: str, help: str) -> Finding:
    """A finding about a comment: a warning, since what it should suppress is reported anyway."""
    return Finding(rule, "fail", "warning", message, one.place, help=(help,) if help else ())


def decide(
    findings: Iterable[Finding],
    texts: Mapping[str, str],
    settings: Settings,
    known: Mapping[str, str],
    *,
    skipped: Iterable[str] = (),
) -> Decided:
    """Sort findings into reported and suppressed ones.

    `texts` are the files that were read, `known` gives the id of every rule id and alias, and
    `skipped` are rules that had no answer somewhere: their suppressions may be of use again.
    """
    settings = checked(settings, known)
    findings = tuple(dict.fromkeys(findings))
    comments = _Comments(texts, known)
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    for finding in findings:
        if not settings.selects(finding.rule, finding.place.file):
            continue
        finding = _graded(finding, settings)
        reason = comments.reason_for(finding)
        if reason:
            suppressed.append(finding._replace(suppressed=reason))
        else:
            kept.append(finding)
    doubtful = _doubtful(findings, texts)
    extra = [
        _graded(one, settings)
        for one in comments.faults(settings, frozenset(skipped), doubtful)
        if settings.selects(one.rule, one.place.file)
    ]
    return Decided(
        tuple(sorted(kept, key=order)), tuple(sorted(suppressed, key=order)), tuple(extra)
    )

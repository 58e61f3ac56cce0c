"""A page for each concern, with all its rules; and the table of all rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from capcheck import Look, Place, Rule
from capcheck.config import Settings
from capcheck.notices import NOTICES, Notice
from capcheck.report import Report
from capcheck.session import Session
from capcheck.source import line_of
from docpages.blocks import table
from docpages.known import plugins

EXAMPLE = "example.yaml"


def printed(rule: Rule, text: str) -> str:
    """What the text report prints of one rule on a deployment's text."""
    settings = Settings(select=(rule.id,), ignore=("spec", "capcheck"))
    session = Session(plugins(), settings, Path("/nonexistent"))
    report: Report = session.run((), (EXAMPLE, text))

    def line(place: Place) -> str | None:
        return line_of(session.intake.texts[place.file], place.line) if place.file else None

    return plugins().reports()["text"].write(report, Look(line=line)).strip()


def _example(rule: Rule, title: str, text: str) -> list[str]:
    shown = text.strip()
    lines = [f"**{title}**", "", "```yaml", shown, "```", ""]
    found = printed(rule, shown + "\n")
    return [*lines, "```text", found, "```", ""] if found else lines


def rule_section(rule: Rule) -> str:
    """Title, severity, why, what helps, and both examples with what they print."""
    lines = [f"## {rule.id}", "", f"{rule.title}.", ""]
    aliases = f" Formerly {', '.join(f'`{one}`' for one in rule.aliases)}." if rule.aliases else ""
    lines += [f"Severity: {rule.severity}. Since {rule.since}.{aliases}", ""]
    lines += [rule.why.strip(), "", f"**What helps.** {rule.fix.strip()}", ""]
    lines += _example(rule, "Fails", rule.fails)
    lines += _example(rule, "Passes", rule.passes)
    return "\n".join(lines)


def notice_section(notice: Notice) -> str:
    """The same without examples: the core reports it itself."""
    title = notice.title[:1].upper() + notice.title[1:]
    lines = [f"## {notice.id}", "", f"{title}.", ""]
    lines += [f"Severity: {notice.severity}. Since {notice.since}.", ""]
    return "\n".join([*lines, notice.why, "", f"**What helps.** {notice.fix}", ""])


def own_rules() -> dict[str, Rule]:
    """Rules by id, without their former names."""
    return {id: rule for id, rule in sorted(plugins().rules().items()) if id == rule.id}


def pages() -> Mapping[str, str]:
    """The text of each concern's page, by concern."""
    sections: dict[str, list[str]] = {}
    for rule in own_rules().values():
        sections.setdefault(rule.concern, []).append(rule_section(rule))
    for notice in sorted(NOTICES.values()):
        sections.setdefault(notice.concern, []).append(notice_section(notice))
    return {
        concern: f"# {concern}\n\nEvery rule is in [the list](../rules.md).\n\n" + "\n".join(found)
        for concern, found in sections.items()
    }


def _row(one: Rule | Notice) -> tuple[str, str, str]:
    anchor = one.id.replace("/", "")
    title = one.title[:1].upper() + one.title[1:]
    return f"[`{one.id}`](rules/{one.concern}.md#{anchor})", one.severity, title


def overview() -> str:
    """A table of all rules with links to their pages."""
    everything: Iterable[Rule | Notice] = (*own_rules().values(), *NOTICES.values())
    rows = [_row(one) for one in sorted(everything, key=lambda one: one.id)]
    return table(("rule", "severity", "what it looks at"), list(rows))

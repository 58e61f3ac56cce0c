"""The rules of all plugins: each id once, each concern with one owner, each page whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capcheck.findings import Rule
from capcheck.guard import Guard
from capcheck.notices import NOTICES

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*/[a-z][a-z0-9]*(-[a-z0-9]+)*")
_OURS = "capcheck"


class Rulebook:
    """Takes rules plugin by plugin. What cannot be taken is reported and left out."""

    def __init__(self, guard: Guard) -> None:
        self.rules: dict[str, Rule] = {}  # by id and by alias
        self._guard = guard
        self._concerns: dict[str, str] = dict.fromkeys(
            (one.concern for one in NOTICES.values()), _OURS
        )

    def add(self, plugin: str, rule: Rule) -> None:
        """One plugin's rule, under its id and its former ids."""
        faults = list(self._faults(plugin, rule))
        for message in faults:
            self._guard.fault(plugin, f"capcheck_rules: {message}")
        if faults:
            return
        rule.plugin = plugin
        self._concerns[rule.concern] = plugin
        self.rules.update(dict.fromkeys((rule.id, *rule.aliases), rule))

    def _faults(self, plugin: str, rule: Rule) -> Iterator[str]:
        for word in (rule.id, *rule.aliases):
            if not _ID.fullmatch(word):
                yield f"{word!r} is no rule id: concern/rule-name in lower case"
            elif word in self.rules:
                yield f"{word!r} is already {self.rules[word].plugin}'s"
        owner = self._concerns.get(rule.concern, plugin)
        if owner != plugin:
            yield f"{rule.id!r}: the concern {rule.concern!r} is {owner}'s"
        for name in ("title", "why", "fix", "fails", "passes"):
            if not str(getattr(rule, name)).strip():
                yield f"{rule.id!r} has no {name}"

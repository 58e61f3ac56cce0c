"""Plugins: found by entry point or by name, loaded, isolated, behind one typed face."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from capcheck import hookspecs
from capcheck.guard import RAISED, Guard, describe
from capcheck.plugin_files import UnusablePlugin, load_named, misspelt_hooks

if TYPE_CHECKING:
    from types import ModuleType

    from capcheck.case import Case, Estimate, Result
    from capcheck.catalogue import Shelf
    from capcheck.engine import Engine, Platform
    from capcheck.findings import Rule
    from capcheck.fleet import Fleet, FleetResult
    from capcheck.formats import Format
    from capcheck.models import ModelSource
    from capcheck.packing import PackingSource
    from capcheck.report import ReportFormat
    from capcheck.schema import Extension

__all__ = ["Plugins", "UnusablePlugin"]

GROUP = "capcheck"


class Plugins:
    """All loaded plugins. Every hook call is isolated plugin by plugin.

    `extra` are module names or paths of .py files, `without` names of installed plugins to leave
    out. Raises UnusablePlugin for an extra one that cannot be had.
    """

    def __init__(self, *, extra: Iterable[str] = (), without: Iterable[str] = ()) -> None:
        self.guard = Guard()
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self.unused_blocks: list[str] = []  # names in `without` that no plugin has
        for name, module in self._installed(set(without)):
            self._register(module, name)
        installed = {name for name, _ in self._manager.list_name_plugin()}
        for name in extra:
            module = load_named(name)
            self._register(module, module.__name__)
        for plugin, loaded in self._manager.list_name_plugin():
            for message in misspelt_hooks(loaded):
                self.guard.fault(plugin, message)
        # By name, what is added to a run behind what is installed: it claims nobody's ids.
        everyone = self._manager.list_name_plugin()
        self._plugins = sorted(everyone, key=lambda pair: (pair[0] not in installed, pair[0]))
        self._callers: dict[str, list[tuple[str, Callable[..., Any]]]] = {}

    def _installed(self, blocked: set[str]) -> Iterator[tuple[str, ModuleType]]:
        from importlib.metadata import entry_points

        entries = sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value))
        known = {word for one in entries for word in (one.name, one.value)}
        self.unused_blocks = sorted(blocked - known)
        for entry in dict.fromkeys(entries):
            if entry.name in blocked or entry.value in blocked:
                continue
            try:
                yield entry.value, entry.load()
            except RAISED as error:
                self.guard.fault(entry.value, f"cannot be loaded: {describe(error)}")

    def _register(self, module: ModuleType, name: str) -> None:
        if self._manager.is_registered(module):
            return
        try:
            self._manager.register(module, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            self.guard.fault(name, " ".join(str(error).split()))
            if self._manager.is_registered(module):  # all of its hooks or none
                self._manager.unregister(module)

    @property
    def names(self) -> list[str]:
        """The loaded plugins."""
        return [name for name, _ in self._plugins]

    def call(self, hook: str, **arguments: Any) -> Iterator[tuple[str, list[Any]]]:
        """(plugin, what it returned as a list), plugin by plugin; errors are collected."""
        if hook not in self._callers:
            everyone = [plugin for _, plugin in self._plugins]
            self._callers[hook] = [
                (
                    name,
                    self._manager.subset_hook_caller(
                        hook, [other for other in everyone if other is not plugin]
                    ),
                )
                for name, plugin in self._plugins
                if hasattr(plugin, hook)
            ]
        for name, caller in self._callers[hook]:
            try:
                found = [item for part in caller(**arguments) for item in _listed(part)]
            except RAISED as error:
                self.guard.fault(name, f"{hook}: {describe(error)}")
                continue
            yield name, self._sound(name, hook, found)

    def _sound(self, plugin: str, hook: str, found: list[Any]) -> list[Any]:
        """Without what cannot be what the hook is for."""
        wanted = hookspecs.GIVES.get(hook)
        if wanted is None:
            return found
        sound = []
        for item in found:
            if all(hasattr(item, name) for name in wanted):
                sound.append(item)
            else:
                self.guard.fault(plugin, f"{hook}: gave {type(item).__name__}, {_expected(hook)}")
        return sound

    def collect(self, hook: str) -> list[Any]:
        """Everything that all plugins return for a hook without arguments."""
        items = []
        for name, found in self.call(hook):
            for item in found:
                self.guard.own(item, name)
                items.append(item)
        return items

    def unique(self, hook: str, key: Callable[[Any], Sequence[str]]) -> dict[str, Any]:
        """As `collect`, by each of its keys; one that is claimed twice is an error naming both."""
        owners: dict[str, str] = {}
        items: dict[str, Any] = {}
        for name, found in self.call(hook):
            for item in found:
                self.guard.own(item, name)
                for word in dict.fromkeys(key(item)):
                    if word in items:
                        self.guard.fault(name, f"{hook}: {word!r} is already {owners[word]}'s")
                        continue
                    owners[word], items[word] = name, item
        return items

    def rules(self) -> dict[str, Rule]:
        """Rules by id and alias. A concern belongs to one plugin."""
        from capcheck.rulebook import Rulebook

        book = Rulebook(self.guard)
        for name, found in self.call("capcheck_rules"):
            for one in found:
                self.guard.own(one, name)
                book.add(name, one)
        return book.rules

    def check(self, case: Case) -> Iterator[tuple[str, list[Result]]]:
        """Each plugin's results on one case."""
        return self.call("capcheck_check", case=case)

    def check_fleet(self, fleet: Fleet) -> Iterator[tuple[str, list[FleetResult]]]:
        """Each plugin's results on all deployments."""
        return self.call("capcheck_check_fleet", fleet=fleet)

    def estimates(self) -> Mapping[str, Estimate]:
        """Estimates by name."""
        return self.unique("capcheck_estimates", lambda one: (one.name,))

    def engines(self) -> tuple[Engine, ...]:
        """Engines, each once."""

        def keys(one: Engine) -> tuple[str, ...]:
            fallback = ("the fallback for deployments without an engine",) if one.fallback else ()
            return (one.name, *one.names, *fallback)

        found = self.unique("capcheck_engines", keys)
        return tuple({id(one): one for one in found.values()}.values())

    def platforms(self) -> tuple[Platform, ...]:
        """Platforms, one for each engine and vendor."""
        found = self.unique("capcheck_platforms", lambda one: (f"{one.engine} on {one.vendor}",))
        return tuple(found.values())

    def models(self) -> tuple[ModelSource, ...]:
        """Sources of models, in the order of their plugins."""
        return tuple(self.collect("capcheck_families"))

    def packings(self) -> tuple[PackingSource, ...]:
        """Sources of quantization methods, in the order of their plugins."""
        return tuple(self.collect("capcheck_quantizations"))

    def shelves(self) -> tuple[Shelf, ...]:
        """Files of records."""
        return tuple(self.collect("capcheck_catalogues"))

    def term_files(self) -> tuple[tuple[Path, str], ...]:
        """Files of fitted constants, each with its plugin."""
        return tuple((path, name) for name, found in self.call("capcheck_terms") for path in found)

    def formats(self) -> tuple[Format, ...]:
        """Readers of deployment files, the highest rank first."""
        found = self.unique("capcheck_formats", lambda one: (one.name,))
        return tuple(sorted(found.values(), key=lambda one: (-one.rank, one.name)))

    def reports(self) -> Mapping[str, ReportFormat]:
        """Writers of reports by name."""
        return self.unique("capcheck_reports", lambda one: (one.name,))

    def extensions(self) -> Mapping[str, Extension]:
        """Plugins' parts of the deployment schema, by key."""
        return self.unique("capcheck_spec_extensions", lambda one: (one.key,))


def _listed(part: Any) -> Iterable[Any]:
    """What a hook returned, item by item. Raises TypeError for what is no list."""
    if isinstance(part, (str, bytes)) or not isinstance(part, Iterable):
        raise TypeError(f"gave {type(part).__name__}, not a list")
    return part


def _expected(hook: str) -> str:
    names = hookspecs.GIVES[hook]
    return f"which lacks {' and '.join(names)}"

"""Plugins: found by entry point or by name, loaded, isolated, behind one typed face."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pluggy

from capcheck import hookspecs

if TYPE_CHECKING:
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

T = TypeVar("T")
GROUP = "capcheck"


class PluginError(NamedTuple):
    """A fault of a plugin: reported, the run exits 2."""

    plugin: str
    message: str


class UnusablePlugin(Exception):
    """A plugin that was asked for by name cannot be had."""


def _describe(error: BaseException) -> str:
    """One line: what was raised and where in the plugin."""
    trace = error.__traceback__
    where = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" at {Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def load_named(name: str) -> ModuleType:
    """A plugin by module name or by path of a .py file. Raises UnusablePlugin."""
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        if name.endswith(".py"):
            path = Path(name)
            if not path.is_file():
                raise UnusablePlugin(f"--plugin {name}: there is no such file")
            spec = spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise UnusablePlugin(f"--plugin {name}: not a Python module")
            module = module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            return module
        return import_module(name)
    except UnusablePlugin:
        raise
    except Exception as error:
        raise UnusablePlugin(f"--plugin {name}: {_describe(error)}") from error


class Plugins:
    """All loaded plugins. Every hook call is isolated plugin by plugin."""

    def __init__(self, *, extra: Iterable[str] = (), without: Iterable[str] = ()) -> None:
        self.errors: list[PluginError] = []
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        blocked = set(without)
        for name, module in self._installed(blocked):
            self._register(module, name)
        for name in extra:
            module = load_named(name)
            self._register(module, module.__name__)
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            self.errors.append(self._pending(error))
        names = sorted(name for name, plugin in self._manager.list_name_plugin() if plugin)
        self._plugins = [(name, self._manager.get_plugin(name)) for name in names]
        self._callers: dict[str, list[tuple[str, Callable[..., Any]]]] = {}

    def _installed(self, blocked: set[str]) -> Iterator[tuple[str, ModuleType]]:
        from importlib.metadata import entry_points

        for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
            if entry.name in blocked or entry.value in blocked:
                continue
            try:
                yield entry.value, entry.load()
            except Exception as error:
                self.errors.append(PluginError(entry.name, f"cannot be loaded: {_describe(error)}"))

    def _register(self, module: ModuleType, name: str) -> None:
        try:
            if self._manager.get_plugin(name) is None:
                self._manager.register(module, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            self.errors.append(PluginError(name, " ".join(str(error).split())))

    def _pending(self, error: pluggy.PluginValidationError) -> PluginError:
        from difflib import get_close_matches

        text = " ".join(str(error).split())
        known = [hook.__name__ for hook in hookspecs.HOOKS]
        wrong = next((word.strip("'\"") for word in text.split() if "capcheck_" in word), "")
        near = get_close_matches(wrong, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return PluginError(getattr(error.plugin, "__name__", "?"), f"unknown hook {wrong}{hint}")

    @property
    def names(self) -> list[str]:
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
                found = [item for part in caller(**arguments) for item in part]
            except Exception as error:
                self.errors.append(PluginError(name, f"{hook}: {_describe(error)}"))
                continue
            yield name, found

    def collect(self, hook: str) -> list[Any]:
        """Everything that all plugins return for a hook without arguments."""
        return [item for _, found in self.call(hook) for item in found]

    def unique(self, hook: str, key: Callable[[Any], Sequence[str]]) -> dict[str, Any]:
        """As `collect`, by key; two plugins that claim one key are an error naming both."""
        owners: dict[str, str] = {}
        items: dict[str, Any] = {}
        for name, found in self.call(hook):
            for item in found:
                for word in key(item):
                    if word in items:
                        self.errors.append(
                            PluginError(name, f"{hook}: {word!r} is already {owners[word]}'s")
                        )
                        continue
                    owners[word], items[word] = name, item
        return items

    def rules(self) -> dict[str, Rule]:
        """Rules by id and alias. A concern belongs to the plugin that claims it first."""
        rules: dict[str, Rule] = {}
        for name, found in self.call("capcheck_rules"):
            for one in found:
                for word in (one.id, *one.aliases):
                    if word in rules:
                        other = rules[word].plugin
                        message = f"capcheck_rules: {word!r} is already {other}'s"
                        self.errors.append(PluginError(name, message))
                        break
                else:
                    one.plugin = name
                    rules.update(dict.fromkeys((one.id, *one.aliases), one))
        return rules

    def check(self, case: Case) -> Iterator[tuple[str, list[Result]]]:
        return self.call("capcheck_check", case=case)

    def check_fleet(self, fleet: Fleet) -> Iterator[tuple[str, list[FleetResult]]]:
        return self.call("capcheck_check_fleet", fleet=fleet)

    def estimates(self) -> Mapping[str, Estimate]:
        return self.unique("capcheck_estimates", lambda one: (one.name,))

    def engines(self) -> tuple[Engine, ...]:
        found = self.unique("capcheck_engines", lambda one: (one.name,))
        return tuple(found.values())

    def platforms(self) -> tuple[Platform, ...]:
        return tuple(self.collect("capcheck_platforms"))

    def models(self) -> tuple[ModelSource, ...]:
        return tuple(self.collect("capcheck_families"))

    def packings(self) -> tuple[PackingSource, ...]:
        return tuple(self.collect("capcheck_quantizations"))

    def shelves(self) -> tuple[Shelf, ...]:
        return tuple(self.collect("capcheck_catalogues"))

    def term_files(self) -> tuple[tuple[Path, str], ...]:
        return tuple(
            (path, name) for name, found in self.call("capcheck_terms") for path in found
        )

    def formats(self) -> tuple[Format, ...]:
        found = self.unique("capcheck_formats", lambda one: (one.name,))
        return tuple(sorted(found.values(), key=lambda one: (-one.rank, one.name)))

    def reports(self) -> Mapping[str, ReportFormat]:
        return self.unique("capcheck_reports", lambda one: (one.name,))

    def extensions(self) -> Mapping[str, Extension]:
        return self.unique("capcheck_spec_extensions", lambda one: (one.key,))

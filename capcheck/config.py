"""Configuration: files, environment and command line, merged into the settings of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from capcheck import selection
from capcheck.quantity import Severity

PREFIX = "CAPCHECK_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
OWN_FILE, PROJECT_FILE = "capcheck.toml", "pyproject.toml"
TABLE = ("tool", "capcheck")
OWN_MODELS = "capcheck-models.yaml"  # beside the configuration; read unless it names others
LISTS = ("select", "extend-select", "ignore", "require", "plugins", "no-plugins", "exclude")
_OPTIONS = {"plugins": "--plugin", "no-plugins": "--no-plugin"}
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


class UsageError(Exception):
    """What the user asked for cannot be done: one or more lines for people; the run exits 2."""


class ConfigError(UsageError):
    """The configuration cannot be used."""


class Config(NamedTuple):
    """One configuration file, validated. `trusted`: the invoker named it, so it may load code."""

    file: Path
    values: Mapping[str, Any]
    trusted: bool = False


ShelfArguments = tuple[str, Path, str, int]


class Settings(NamedTuple):
    """Everything that a run needs to know, from all sources."""

    select: tuple[str, ...] = (selection.ALL,)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: Mapping[str, Severity] = {}
    require: tuple[str, ...] = ()
    strict: bool = False
    assume: Mapping[str, str] = {}
    plugins: tuple[str, ...] = ()
    no_plugins: tuple[str, ...] = ()
    shelves: tuple[ShelfArguments, ...] = ()
    format: str = "text"
    exclude: tuple[str, ...] = ()
    # Constants of the generic memory accounting, which applies when no engine is named.
    safety_margin: float = 1.15
    activation_share: float = 0.25
    device_gib: float = 80.0
    said: Mapping[str, str] = {}  # key -> who said it, for messages

    def selects(self, rule: str, file: str = "") -> bool:
        """Whether a rule is to be reported, in `file` when one is given."""
        if not selection.selected(rule, (*self.select, *self.extend_select), self.ignore):
            return False
        ignored = (
            one
            for glob, rules in self.per_file_ignores
            if file and selection.matches(glob, file)
            for one in rules
        )
        return selection.selected(rule, (selection.ALL,), ignored) if file else True

    def requires(self, rule: str) -> bool:
        """Whether a skip of the rule fails a strict run."""
        return selection.heaviest(self.require, rule) >= 0

    def severity_of(self, rule: str) -> Severity | None:
        """The severity that the configuration gives the rule; None when it says nothing."""
        return selection.closest_entry(self.severity, rule)


_DEFAULTS = Settings()


def load(start: Path) -> Config | None:
    """The configuration at the root of `start`; None when there is none. Raises ConfigError."""
    from capcheck.files import root_of

    root = root_of(start)
    if (root / OWN_FILE).is_file():
        return read_config(root / OWN_FILE)
    if (root / PROJECT_FILE).is_file():
        return read_config(root / PROJECT_FILE)
    return None


def read_config(file: Path, *, trusted: bool = False) -> Config | None:
    """One file; None for a pyproject.toml without our table. Raises ConfigError."""
    from capcheck.config_file import read_table

    values = read_table(file, () if file.name != PROJECT_FILE else TABLE)
    return None if values is None else Config(file, values, trusted)


class _Layer(NamedTuple):
    """One source's values, and how each is called in messages."""

    values: Mapping[str, Any]
    said: Mapping[str, str]


def _of_config(config: Config) -> _Layer:
    values = {**config.values, "margins": dict(config.values.get("margins", {}))}
    _check_plugins(config)
    return _Layer(values, {key: f"{config.file.name}: {key}" for key in values})


def _check_plugins(config: Config) -> None:
    """Code of the checked tree runs only when the invoker names it. Raises ConfigError."""
    if config.trusted:
        return
    root = config.file.resolve().parent
    for name in config.values.get("plugins", ()):
        if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
            why = "is a file: only the command line can load one, with --plugin"
        elif _lies_in(name, root):
            why = "lies in the checked tree: only the command line can load it, with --plugin"
        else:
            continue
        raise ConfigError(f"{config.file}: plugins: {name!r} {why}")


def _lies_in(name: str, root: Path) -> bool:
    """Whether importing a module by name would run a file below `root`."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else [])]
    return any(Path(place).resolve().is_relative_to(root) for place in places)


def _of_environment(environment: Mapping[str, str]) -> _Layer:
    values: dict[str, Any] = {}
    for key in (*LISTS, "format", "strict"):
        name = PREFIX + key.upper().replace("-", "_")
        text = environment.get(name)
        if text is None:
            continue
        if key in LISTS:
            values[key] = [part.strip() for part in text.split(",") if part.strip()]
        elif key == "format":
            values |= {key: text} if text else {}
        elif text.lower() in _YES | _NO:
            values[key] = text.lower() in _YES
        else:
            raise UsageError(f"{name} is {text!r}: expected true or false")
    said = {key: PREFIX + key.upper().replace("-", "_") for key in values}
    return _Layer(values, said)


def parse_assumption(text: str) -> tuple[str, str]:
    """`accelerator=nvidia/l4` as name and value. Raises UsageError."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise UsageError(f"--assume {text}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _assumptions(layers: Iterable[_Layer], known: Iterable[str]) -> dict[str, str]:
    """Assumptions by name; later layers win. Raises UsageError for names that nothing has."""
    known = list(known)
    found: dict[str, str] = {}
    for layer in layers:
        for name, value in dict(layer.values.get("assume", {})).items():
            if name not in known:
                raise _not_assumable(name, known, layer.said.get("assume", "assume"))
            found.pop(name, None)
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _not_assumable(name: str, known: list[str], who: str) -> UsageError:
    from capcheck.schema_errors import did_you_mean
    from capcheck.schema_tree import closest

    near = did_you_mean(filter(None, [closest(name, known)]))
    help = near or (f"known are {', '.join(known)}",)
    return UsageError(f"{who}: {name!r} cannot be assumed; {help[0]}")


def _shelves(config: Config | None) -> tuple[tuple[str, Path, str, int], ...]:
    """Files of the user's own records. Raises ConfigError for one that leads out of the tree."""
    from capcheck.shelf import CONFIGURATION

    if config is None:
        return ()
    folder = config.file.resolve().parent
    found = []
    for kind, names in config.values.get("catalogues", {}).items():
        for name in [names] if isinstance(names, str) else names:
            path = (folder / name).resolve()
            if not config.trusted and not path.is_relative_to(folder):
                why = f"{name!r} leads out of {folder}"
                raise ConfigError(f"{config.file}: catalogues.{kind}: {why}")
            found.append((str(kind), path, str(config.file.name), CONFIGURATION))
    return tuple(found)


def _margins(layers: Iterable[_Layer]) -> dict[str, float]:
    """The constants that were given, under the configuration's keys."""
    found: dict[str, float] = {}
    for layer in layers:
        found |= dict(layer.values.get("margins", {}))
    return found


def _plugin_names(config: Config | None, names: Iterable[str]) -> tuple[str, ...]:
    """Names as the loader takes them; files that a trusted configuration names are beside it."""
    folder = config.file.resolve().parent if config is not None else Path()
    ours = config.values.get("plugins", ()) if config is not None else ()
    return tuple(str(folder / one) if one.endswith(".py") and one in ours else one for one in names)


def _layers(
    config: Config | None, environment: Mapping[str, str], options: Mapping[str, Any]
) -> list[_Layer]:
    """The sources, the weakest first."""
    given = {key: value for key, value in options.items() if value is not None}
    said = {key: _OPTIONS.get(key, f"--{key}") for key in given}
    layers = [_of_config(config)] if config is not None else []
    return [*layers, _of_environment(environment), _Layer(given, said)]


def settings(
    config: Config | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    assumable: Iterable[str] = (),
) -> Settings:
    """All sources merged: `options` (command line) over environment over configuration.

    `options` has the keys of the configuration; a key that was not given is absent or None.
    `assumable` are the names that may be assumed. Lists replace each other, of tables only
    assumptions and margins merge. Raises UsageError.
    """
    layers = _layers(config, environment or {}, options or {})
    values: dict[str, Any] = {}
    for layer in layers:
        values |= layer.values
    margins = _margins(layers)
    ignores = values.get("per-file-ignores", {})
    return Settings(
        select=tuple(values.get("select", _DEFAULTS.select)),
        extend_select=tuple(values.get("extend-select", ())),
        ignore=tuple(values.get("ignore", ())),
        per_file_ignores=tuple((glob, tuple(rules)) for glob, rules in ignores.items()),
        severity=dict(values.get("severity", {})),
        require=tuple(values.get("require", ())),
        strict=bool(values.get("strict", False)),
        assume=_assumptions(layers, assumable),
        plugins=_plugin_names(config, values.get("plugins", ())),
        no_plugins=tuple(values.get("no-plugins", ())),
        shelves=_shelves(config),
        format=str(values.get("format", _DEFAULTS.format)),
        exclude=tuple(values.get("exclude", ())),
        safety_margin=float(margins.get("safety-margin", _DEFAULTS.safety_margin)),
        activation_share=float(margins.get("activation-share", _DEFAULTS.activation_share)),
        device_gib=float(margins.get("device-gib", _DEFAULTS.device_gib)),
        said={key: who for layer in layers for key, who in layer.said.items()},
    )

"""What holds between the parts: who imports whom, whole pages, true examples, names explained."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

import capcheck
from capcheck import hookspecs
from capcheck.config import Settings
from capcheck.findings import Rule
from capcheck.notices import NOTICES
from capcheck.plugins import GROUP, Plugins
from capcheck.testing import Bench, example_faults

MACHINERY = Path(capcheck.__file__).parent
PLUGINS = sorted(
    {entry.value for entry in entry_points(group=GROUP) if entry.value.startswith("capcheck_")}
)
PUBLIC = frozenset(capcheck.PUBLIC_MODULES)
# A rule that warns of what makes another one fail cannot fail alone.
TOGETHER = {"kv-cache/context-unset": {"kv-cache/one-request"}}


def files_of(package: str) -> list[Path]:
    module = import_module(package)
    return sorted(Path(path) for root in module.__path__ for path in Path(root).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every module that a file imports, with the names it takes; own relative ones left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((one.name, ()) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module, tuple(one.name for one in node.names)


# imports


@pytest.mark.parametrize(
    "path", sorted(MACHINERY.rglob("*.py")), ids=lambda path: path.relative_to(MACHINERY).as_posix()
)
def test_the_machinery_knows_no_plugin_and_no_physics(path: Path) -> None:
    in_physics = "physics" in path.relative_to(MACHINERY).parts
    for module, names in imports(path):
        assert not module.startswith("capcheck_"), module
        assert in_physics or not module.startswith("capcheck.physics"), module
        assert module != "capcheck" or "physics" not in names


@pytest.mark.parametrize(
    "path", sorted((MACHINERY / "physics").rglob("*.py")), ids=lambda path: path.name
)
def test_physics_is_pure(path: Path) -> None:
    """It reads no file and knows of the rest only how models are built and packed."""
    allowed = {
        "capcheck.architecture", "capcheck.packing", "capcheck.quantity", "capcheck.quantization",
    }  # fmt: skip
    for module, _ in imports(path):
        if module.split(".")[0].startswith("capcheck"):
            assert module in allowed or module.startswith("capcheck.physics"), module
        assert module not in ("os", "io", "pathlib", "time", "random", "json"), module


@pytest.mark.parametrize("package", PLUGINS)
def test_plugins_use_the_public_api_and_themselves(package: str) -> None:
    for path in files_of(package):
        for module, names in imports(path):
            if module == "capcheck":
                private = set(names) - set(capcheck.__all__) - PUBLIC
                assert not private, f"{path.name}: {private}"
            elif module.startswith("capcheck."):
                assert module.split(".")[1] in PUBLIC, f"{path.name}: {module}"
            elif module.startswith("capcheck_"):
                assert module.split(".")[0] == package, f"{path.name}: {module}"


# the public API


@pytest.mark.parametrize("name", [name for name in capcheck.__all__ if name[0].isalpha()])
def test_public_names_are_there_and_explained(name: str) -> None:
    thing = getattr(capcheck, name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    text = inspect.getdoc(thing) or ""
    assert text, name
    assert not text.startswith(f"{name}("), "a NamedTuple's own words are no explanation"


def public_things(module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, thing in vars(module).items():
        own = getattr(thing, "__module__", "") == module.__name__
        if (
            own
            and not name.startswith("_")
            and (inspect.isclass(thing) or inspect.isfunction(thing))
        ):
            yield name, thing


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_modules_are_explained(name: str) -> None:
    module = import_module(f"capcheck.{name}")
    assert module.__doc__
    for thing_name, thing in public_things(module):
        text = inspect.getdoc(thing) or ""
        assert text, f"{name}.{thing_name}"
        assert not text.startswith(f"{thing_name}("), f"{name}.{thing_name}"


def test_every_hook_is_explained() -> None:
    assert {hook.__name__ for hook in hookspecs.HOOKS} == set(hookspecs.GIVES)
    for hook in hookspecs.HOOKS:
        assert len(inspect.getdoc(hook) or "") > 40, hook.__name__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    name = "Nothing"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(capcheck, name)


# pages and examples


@lru_cache(maxsize=1)
def bench() -> Bench:
    return Bench()


def rules() -> list[Rule]:
    found = Plugins().rules()
    return [rule for id, rule in sorted(found.items()) if id == rule.id]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_a_rule_has_a_whole_page(rule: Rule) -> None:
    assert rule.title
    assert rule.title[0].isupper()
    assert not rule.title.endswith(".")
    assert "\n" not in rule.title
    for text in (rule.why, rule.fix):
        assert text.endswith(".")
        assert text == " ".join(text.split())
    assert rule.since
    assert rule.plugin in PLUGINS


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_a_rule_finds_its_failing_example_alone_and_nothing_in_its_passing_one(rule: Rule) -> None:
    faults = example_faults(rules=[rule.id], bench=bench())
    allowed = {
        f"{rule.id}: `fails` is also reported by {other}" for other in TOGETHER.get(rule.id, ())
    }
    assert set(faults) - allowed == set()


@pytest.mark.parametrize("id", sorted(NOTICES))
def test_the_cores_own_pages_are_whole(id: str) -> None:
    notice = NOTICES[id]
    assert notice.id == id
    assert notice.concern in ("spec", "capcheck")
    assert notice.title
    assert notice.why.endswith(".")
    assert notice.fix.endswith(".")


def test_what_is_wrong_with_examples_is_said() -> None:
    text = """
from capcheck import Fail, Pass, hookimpl, rule
SPEC = "apiVersion: capcheck/v1\\nkind: Deployment\\nname: d\\n"
def page(id, check, fails=SPEC + "replicas: 2\\n", passes=SPEC):
    return rule(id, title="T", why="W.", fix="F.", fails=fails, passes=passes)(check)
def two(case, t):
    found = case.deployment.fields.get(("replicas",))
    return Fail(found, "two") if found else Pass()
def also(case, t): return two(case, t)
def always(case, t): return Fail(case.deployment.place, "always")
def never(case, t): return Pass()
R = [page("a/good", two, fails=SPEC + "replicas: 3\\n"), page("b/never", never)]
R += [page("b/always", always), page("b/odd", never, fails="a: 1\\n")]
@hookimpl
def capcheck_rules(): return R
@hookimpl
def capcheck_check(case): return case.run(*R)
"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wrong_examples.py"
        path.write_text(text, encoding="utf-8")
        faults = example_faults(str(path))
    assert "a/good: `fails` is also reported by b/always" in faults
    assert "b/never: `fails` is not reported" in faults
    assert "b/always: `passes` is reported" in faults
    assert "b/odd: `fails` holds 0 deployments" in faults


def test_selecting_one_rule_runs_it_alone() -> None:
    """What `--select RULE` promises: every rule can be judged without the others."""
    for rule in rules()[:3]:
        alone = Bench(select=(rule.id,))
        (outcome,) = alone.outcomes(rule.passes)
        assert set(outcome.judged) == {rule.id}
    assert Settings().select == ("ALL",)


def test_no_module_hides_an_exported_name() -> None:
    modules = {file.stem for file in Path(str(capcheck.__file__)).parent.glob("*.py")}
    assert not modules & set(capcheck.__all__)

"""Plugins: loaded, isolated, named when they are at fault."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from capcheck.config import Settings
from capcheck.guard import Guard, PluginError
from capcheck.plugins import GROUP, Plugins, UnusablePlugin
from capcheck.session import Session

INSTALLED = tuple(sorted(entry.value for entry in entry_points(group=GROUP)))
SPEC_FORMAT = "capcheck_spec"
HEAD = "from capcheck import *\nfrom capcheck import hookimpl, rule, Pass, Fail, Skip, Margin\n"
RULE = (
    "def page(id, check, **more):\n"
    "    return rule(id, title='T', why='W.', fix='F.', fails='f', passes='p', **more)(check)\n"
)
ONE_RULE = RULE + (
    "ONE = page('acme/one', lambda case, t: Fail(case.deployment.place, 'found'))\n"
    "@hookimpl\ndef capcheck_rules(): return [ONE]\n"
    "@hookimpl\ndef capcheck_check(case): return case.run(ONE)\n"
)
DEPLOYMENT = "apiVersion: capcheck/v1\nkind: Deployment\nname: d\n"

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test loads by name, the next one may load anew."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("acme", "zeta", "json_")):
            del sys.modules[name]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a plugin file whose name nothing else has."""

    def write(text: str, name: str = "") -> Path:
        folder = tmp_path / "plugins"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name or f'acme_{abs(hash(str(tmp_path))) % 10**9}'}.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return path

    return write


def loaded(*extra: Path | str, keep: tuple[str, ...] = ()) -> Plugins:
    """Only these plugins, and those of `keep`."""
    without = [name for name in INSTALLED if name not in keep]
    return Plugins(extra=[str(one) for one in extra], without=without)


def faults(plugins: Plugins) -> list[str]:
    return [error.message for error in plugins.guard.errors]


def run(folder: Path, *extra: Path, **options: Any) -> Any:
    spec = folder / "d.yaml"
    spec.write_text(DEPLOYMENT, encoding="utf-8")
    session = Session(loaded(*extra, keep=(SPEC_FORMAT,)), Settings(**options), folder)
    return session.run([spec])


def messages(report: Any) -> list[str]:
    return [one.message for one in report.findings if one.rule == "capcheck/plugin-error"]


# loading


def test_every_installed_plugin_loads() -> None:
    plugins = Plugins()
    assert plugins.guard.errors == []
    assert set(plugins.names) == set(INSTALLED)
    assert plugins.names == sorted(plugins.names)


def test_leaving_plugins_out_by_either_name() -> None:
    entry = next(iter(entry_points(group=GROUP)))
    for name in (entry.name, entry.value):
        plugins = Plugins(without=[name])
        assert entry.value not in plugins.names
        assert plugins.unused_blocks == []
    assert Plugins(without=["acme"]).unused_blocks == ["acme"]


def test_a_file_is_a_plugin(make: Make, tmp_path: Path) -> None:
    path = make(ONE_RULE, "acme_file")
    plugins = loaded(path)
    assert plugins.names == ["acme_file"]
    assert plugins.rules()["acme/one"].plugin == "acme_file"
    report = run(tmp_path, path)
    assert [one.message for one in report.findings] == ["found"]
    assert messages(report) == []


def test_a_module_by_name(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(ONE_RULE, "acme_module")
    monkeypatch.syspath_prepend(str(path.parent))
    assert loaded("acme_module").names == ["acme_module"]
    assert loaded("acme_module", "acme_module").names == ["acme_module"]


def test_a_file_never_stands_for_a_module_of_its_name(make: Make) -> None:
    json = sys.modules["json"]
    plugins = loaded(make(ONE_RULE, "json"))
    assert sys.modules["json"] is json
    assert plugins.names == ["json_2"]
    assert plugins.rules()["acme/one"].plugin == "json_2"


def test_two_files_of_one_name_are_two_plugins(make: Make, tmp_path: Path) -> None:
    first = make(ONE_RULE, "acme_twin")
    second = tmp_path / "acme_twin.py"
    second.write_text(first.read_text().replace("acme/one", "acme-two/one"))
    plugins = loaded(first, second)
    assert len(plugins.names) == 2
    assert set(plugins.rules()) == {"acme/one", "acme-two/one"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module", r"ModuleNotFoundError: No module named 'no_such_module'"),
        ("nowhere/acme.py", "there is no such file"),
        ("", "ValueError|Empty module name"),
    ],
)
def test_what_cannot_be_had_is_said(name: str, message: str) -> None:
    with pytest.raises(UnusablePlugin, match=message):
        Plugins(extra=[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0\n", r"ZeroDivisionError: division by zero at \w+\.py:3"),
        ("def f(:\n", "SyntaxError"),
        ("import no_such_thing\n", "No module named 'no_such_thing'"),
        ("raise SystemExit(0)\n", "SystemExit: 0"),
    ],
)
def test_a_named_plugin_that_cannot_be_loaded_ends_the_run(
    make: Make, text: str, message: str
) -> None:
    path = make(text)
    with pytest.raises(UnusablePlugin, match=message) as wrong:
        loaded(path)
    assert str(path) in str(wrong.value)
    assert path.stem not in sys.modules


def test_an_installed_plugin_that_cannot_be_loaded_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Entry:
        def __init__(self, name: str) -> None:
            self.name = self.value = name

        def load(self) -> Any:
            if self.name == "bad":
                raise ImportError("half installed")
            from capcheck_spec import spec_format

            return spec_format

    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [Entry("bad"), Entry("good")]
    )
    plugins = Plugins()
    assert plugins.names == ["good"]
    (error,) = plugins.guard.errors
    assert error.plugin == "bad"
    assert error.message.startswith("cannot be loaded: ImportError: half installed at test_plugins")


# hooks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@hookimpl\ndef capcheck_chek(case): return []\n",
         "there is no hook capcheck_chek; did you mean capcheck_check?"),
        ("@hookimpl\ndef capcheck_zzzzzzzz(): return []\n", "there is no hook capcheck_zzzzzzzz"),
        ("def capcheck_rules(): return []\n",
         "capcheck_rules is not marked: put @hookimpl above it"),
        ("@hookimpl\ndef capcheck_check(spec): return []\n", r"Argument\(s\) {'spec'}"),
    ],
)  # fmt: skip
def test_hooks_that_would_never_be_called(make: Make, text: str, message: str) -> None:
    import re

    (fault,) = faults(loaded(make(text)))
    assert re.search(message, fault)


def test_a_plugin_with_a_wrong_hook_has_all_of_its_hooks_or_none(make: Make) -> None:
    plugins = loaded(make(ONE_RULE + "@hookimpl\ndef capcheck_engines(x): return []\n"))
    assert plugins.rules() == {}
    assert len(plugins.guard.errors) == 1


def test_hooks_may_take_fewer_arguments(make: Make, tmp_path: Path) -> None:
    text = "@hookimpl\ndef capcheck_check(): return []\n"
    assert messages(run(tmp_path, make(text))) == []


RAISING = [
    ("capcheck_rules()", "raise RuntimeError('boom')"),
    ("capcheck_rules()", "yield from ()\n    raise RuntimeError('boom')"),
    ("capcheck_check(case)", "raise RuntimeError('boom')"),
    ("capcheck_check(case)", "yield from ()\n    raise RuntimeError('boom')"),
    ("capcheck_check_fleet(fleet)", "raise RuntimeError('boom')"),
    ("capcheck_estimates()", "raise RuntimeError('boom')"),
    ("capcheck_engines()", "raise RuntimeError('boom')"),
    ("capcheck_platforms()", "raise RuntimeError('boom')"),
    ("capcheck_families()", "raise RuntimeError('boom')"),
    ("capcheck_quantizations()", "raise RuntimeError('boom')"),
    ("capcheck_catalogues()", "raise RuntimeError('boom')"),
    ("capcheck_terms()", "raise RuntimeError('boom')"),
    ("capcheck_formats()", "raise RuntimeError('boom')"),
    ("capcheck_spec_extensions()", "raise RuntimeError('boom')"),
    ("capcheck_check(case)", "raise SystemExit(0)"),
    ("capcheck_check(case)", "return 3"),
    ("capcheck_check(case)", "return ['x']"),
    ("capcheck_check(case)", "return None"),
]


@pytest.mark.parametrize(("hook", "body"), RAISING)
def test_a_hook_that_fails_costs_only_its_plugin(
    make: Make, tmp_path: Path, hook: str, body: str
) -> None:
    bad = make(f"@hookimpl\ndef {hook}:\n    {body}\n", "acme_bad")
    good = make(ONE_RULE, "zeta_good")
    report = run(tmp_path, bad, good)
    assert "found" in [one.message for one in report.findings]
    if body == "return None":  # pluggy: no answer at all
        assert messages(report) == []
        return
    (message,) = messages(report)
    assert message.startswith(f"plugin acme_bad: {hook.partition('(')[0]}: ")
    assert report.summary.plugin_errors == 1


def test_a_plugin_that_asks_for_input_it_lacks(make: Make, tmp_path: Path) -> None:
    """Rules answer for themselves; a hook of its own may not lose everything to one value."""
    text = RULE + (
        "from capcheck import Unknown\n"
        "A = page('acme/a', lambda case, t: case.model.get('model') and Pass())\n"
        "B = page('acme/b', lambda case, t: Pass())\n"
        "@hookimpl\ndef capcheck_rules(): return [A, B]\n"
        "@hookimpl\ndef capcheck_check(case): return case.run(A, B)\n"
    )
    report = run(tmp_path, make(text))
    checks = {one.rule: one.verdict for one in report.deployments[0].checks}
    assert checks == {"acme/a": "skip", "acme/b": "pass"}


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("[]", "acme/one gave no answer for d"),
        ("case.run(ONE, ONE)", "acme/one is answered twice"),
        ("case.run(ONE, OTHER)", "answers for acme/other, which is no rule of its own"),
        ("[(ONE, 1)]", "capcheck_check: gave tuple"),
    ],
)
def test_every_rule_has_one_answer(make: Make, tmp_path: Path, check: str, message: str) -> None:
    text = ONE_RULE.replace("return case.run(ONE)", f"return {check}")
    text += "OTHER = page('acme/other', lambda case, t: Pass())\n"
    assert any(message in one for one in messages(run(tmp_path, make(text))))


def test_a_rule_that_raises_is_named_and_the_others_answer(make: Make, tmp_path: Path) -> None:
    text = RULE + (
        "A = page('acme/a', lambda case, t: 1 / 0)\n"
        "B = page('acme/b', lambda case, t: Fail(case.deployment.place, 'b'))\n"
        "@hookimpl\ndef capcheck_rules(): return [A, B]\n"
        "@hookimpl\ndef capcheck_check(case): return case.run(A, B)\n"
    )
    report = run(tmp_path, make(text, "acme_raises"))
    (message,) = messages(report)
    assert message.startswith("plugin acme_raises: acme/a: ZeroDivisionError: division by zero at")
    assert [one.rule for one in report.findings] == ["capcheck/plugin-error", "acme/b"]


# ids


def test_two_plugins_with_one_id_are_an_error_naming_both(make: Make) -> None:
    plugins = loaded(make(ONE_RULE, "acme_first"), make(ONE_RULE, "acme_second"))
    assert plugins.rules()["acme/one"].plugin == "acme_first"
    assert plugins.guard.errors[0] == PluginError(
        "acme_second", "capcheck_rules: 'acme/one' is already acme_first's"
    )


def test_a_concern_belongs_to_one_plugin(make: Make) -> None:
    other = ONE_RULE.replace("acme/one", "acme/two")
    plugins = loaded(make(ONE_RULE, "acme_first"), make(other, "acme_second"))
    assert set(plugins.rules()) == {"acme/one"}
    assert faults(plugins) == ["capcheck_rules: 'acme/two': the concern 'acme' is acme_first's"]


def test_what_is_added_never_takes_from_what_is_installed(make: Make) -> None:
    """`acme` comes before `capcheck_weights` in the alphabet, but is only added to the run."""
    path = make(ONE_RULE.replace("acme/one", "weights/fit"), "acme_thief")
    plugins = Plugins(extra=[str(path)])
    assert plugins.rules()["weights/fit"].plugin == "capcheck_weights"
    assert {error.plugin for error in plugins.guard.errors} == {"acme_thief"}


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("spec/mine", "the concern 'spec' is capcheck's"),
        ("capcheck/mine", "the concern 'capcheck' is capcheck's"),
        ("Acme/One", "is no rule id"),
        ("acme", "is no rule id"),
        ("acme/one/two", "is no rule id"),
        ("acme/ein\u202etext", "is no rule id"),
    ],
)
def test_rule_ids(make: Make, id: str, message: str) -> None:
    plugins = loaded(make(ONE_RULE.replace("acme/one", id)))
    assert plugins.rules() == {}
    assert any(message in fault for fault in faults(plugins))


@pytest.mark.parametrize("part", ["title", "why", "fix", "fails", "passes"])
def test_a_rule_has_a_whole_page(make: Make, part: str) -> None:
    text = ONE_RULE.replace("rule(id, ", f"rule(id, **{{'{part}': ' '}}, ")
    for name in ("title='T'", "why='W.'", "fix='F.'", "fails='f'", "passes='p'"):
        if name.startswith(part):
            text = text.replace(f"{name}, ", "")
    plugins = loaded(make(text))
    assert plugins.rules() == {}
    assert faults(plugins) == [f"capcheck_rules: 'acme/one' has no {part}"]


def test_former_names_lead_to_the_rule(make: Make) -> None:
    text = ONE_RULE.replace("'acme/one', ", "'acme/one', ", 1).replace(
        "'found'))", "'found'), aliases=('acme/old',))"
    )
    rules = loaded(make(text)).rules()
    assert rules["acme/old"] is rules["acme/one"]


def test_things_of_one_name(make: Make) -> None:
    text = (
        "class E(Engine):\n    name = 'acme'\n    names = ('acme-server',)\n"
        "class F(Engine):\n    name = 'acme-server'\n    fallback = True\n"
        "class G(Engine):\n    name = 'other'\n    fallback = True\n"
        "class P(Platform):\n    engine, vendor = 'acme', 'acme'\n"
        "@hookimpl\ndef capcheck_engines(): return [E(), F(), G()]\n"
        "@hookimpl\ndef capcheck_platforms(): return [P(), P()]\n"
        "@hookimpl\ndef capcheck_estimates():\n"
        "    return [Estimate('kv_cache_bytes', 'B', lambda c, t: 1.0)]\n"
    )
    plugins = loaded(make("from capcheck import Engine, Platform, Estimate\n" + text, "acme_e"))
    assert {engine.name for engine in plugins.engines()} == {"acme", "acme-server", "other"}
    assert len(plugins.platforms()) == 1
    said = " ".join(faults(plugins))
    assert "'acme-server' is already acme_e's" in said
    assert "'the fallback for deployments without an engine' is already acme_e's" in said
    assert "'acme on acme' is already acme_e's" in said
    Session(plugins, Settings(), Path("/nonexistent"))
    assert ("acme_e", "the estimate 'kv_cache_bytes' is the core's") in plugins.guard.errors


def test_a_bad_part_of_the_schema_is_its_plugins_fault(make: Make, tmp_path: Path) -> None:
    text = (
        "from capcheck import Extension\n"
        "@hookimpl\ndef capcheck_spec_extensions():\n"
        "    return [Extension('x-acme', {'type': 'nonsense'}), Extension('acme', {}),\n"
        "            Extension('x-good', {'type': 'object'})]\n"
    )
    found = messages(run(tmp_path, make(text, "acme_schema")))
    assert len(found) == 2
    assert all(one.startswith("plugin acme_schema: ") for one in found)


def test_broken_terms_are_named_once(make: Make, tmp_path: Path) -> None:
    terms = tmp_path / "terms.jsonl"
    terms.write_text('{"name": "acme.x"}\n', encoding="utf-8")
    text = ONE_RULE.replace("Fail(case.deployment.place, 'found')", "t.read('acme.x') and Pass()")
    text += "from pathlib import Path\n"
    text += f"@hookimpl\ndef capcheck_terms(): return [Path({str(terms)!r})]\n"
    found = messages(run(tmp_path, make(text, "acme_terms")))
    assert found[0].startswith("plugin acme_terms: acme/one: TermError: no plugin ships the term")
    assert found[1].startswith("plugin acme_terms: terms: terms.jsonl:1: acme_terms: a term lacks")
    assert len(found) == 2


# formats, engines and estimates that fail while they are used


FORMAT = (
    "from capcheck import Format\n"
    "class F(Format):\n    name = 'acme'\n    rank = 200\n"
    "    def claims(self, document): {claims}\n    def read(self, desk): {read}\n"
    "    def near_miss(self, document): {near}\n"
    "@hookimpl\ndef capcheck_formats(): return [F()]\n"
)


@pytest.mark.parametrize(
    ("claims", "read", "near", "message"),
    [
        ("1 / 0", "return ()", "return None", "claiming d.yaml: ZeroDivisionError"),
        ("return True", "1 / 0", "return None", "reading d.yaml: ZeroDivisionError"),
        ("return True", "return [3]", "return None", "gave what is no whole Draft"),
    ],
)
def test_a_format_that_fails(
    make: Make, tmp_path: Path, claims: str, read: str, near: str, message: str
) -> None:
    text = FORMAT.format(claims=claims, read=read, near=near)
    report = run(tmp_path, make(text, "acme_format"), make(ONE_RULE))
    assert any(message in one and "acme_format" in one for one in messages(report))
    if claims == "1 / 0":  # the next format claims it
        assert report.summary.deployments == 1


def test_a_format_that_reports_a_rule_that_nobody_has(make: Make, tmp_path: Path) -> None:
    read = (
        "from capcheck import Draft; p = desk.document.root.place; "
        "return [Draft('x', 'acme', p, {}, problems=(('acme/none', 'odd', p),))]"
    )
    text = FORMAT.format(claims="return True", read=read, near="return None")
    report = run(tmp_path, make(text, "acme_odd"), make(ONE_RULE))
    assert messages(report) == ["plugin a format: reports 'acme/none', which is no rule: odd"]


ENGINE = (
    "from capcheck import Engine, Release, blank_plan, unknown\n"
    "class E(Engine):\n    name = 'acme'\n"
    "    def releases(self, text, why): return (Release('1', (1,)),)\n"
    "    def plan(self, site): return blank_plan(unknown(site.deployment.place, 'no plan'))\n"
    "    def ledger(self, case, t): return case.plan.memory.get()\n"
    "    def kv(self, case): return case.plan.memory.get()\n"
    "@hookimpl\ndef capcheck_engines(): return [E()]\n"
)


@pytest.mark.parametrize(
    "method",
    ["releases(self, text, why)", "plan(self, site)", "facts(self, case)",
     "model_name(self, deployment)", "options(self)"],
)  # fmt: skip
def test_an_engine_that_fails_leaves_everything_unknown(
    make: Make, tmp_path: Path, method: str
) -> None:
    prefix = "    @property\n" if method.startswith("options") else ""
    text = ENGINE.replace("@hookimpl", f"{prefix}    def {method}: 1 / 0\n@hookimpl")
    (tmp_path / "d.yaml").write_text(DEPLOYMENT + "engine: {name: acme}\n", encoding="utf-8")
    plugins = loaded(make(text, "acme_engine"), make(ONE_RULE), keep=(SPEC_FORMAT,))
    report = Session(plugins, Settings(), tmp_path).run([tmp_path / "d.yaml"])
    found = messages(report)
    assert found
    assert all(one.startswith("plugin acme_engine: ") for one in found)
    assert "ZeroDivisionError" in found[0]
    assert "found" in [one.message for one in report.findings]


def test_an_estimate_that_fails_costs_only_itself(make: Make, tmp_path: Path) -> None:
    text = ONE_RULE + (
        "from capcheck import estimate\n"
        "@estimate('acme_bad', unit='1')\ndef bad(case, t): return 1 / 0\n"
        "@estimate('acme_text', unit='1')\ndef text(case, t): return 'many'\n"
        "@estimate('acme_good', unit='1', basis='b')\ndef good(case, t): return 7\n"
        "@hookimpl\ndef capcheck_estimates(): return [bad, text, good]\n"
    )
    report = run(tmp_path, make(text, "acme_estimates"))
    assert report.deployments[0].estimates["acme_good"].band.mid == 7
    found = messages(report)
    assert [one.split(": ")[:2] for one in found] == [
        ["plugin acme_estimates", "the estimate 'acme_bad'"],
        ["plugin acme_estimates", "the estimate 'acme_text'"],
    ]


# fleets


FLEET = RULE + (
    "from capcheck import FleetResult\n"
    "ALL = page('acme/all', lambda case, t: Pass(), scope='fleet')\n"
    "@hookimpl\ndef capcheck_rules(): return [ALL]\n"
    "@hookimpl\ndef capcheck_check_fleet(fleet):\n    return [{answer} for case in fleet.cases]\n"
)


def fleet(make: Make, folder: Path, answer: str) -> Any:
    spec = folder / "d.yaml"
    spec.write_text(f"{DEPLOYMENT}---\n{DEPLOYMENT}", encoding="utf-8")
    plugins = loaded(make(FLEET.format(answer=answer)), keep=(SPEC_FORMAT,))
    return Session(plugins, Settings(), folder).run([spec])


def test_a_rule_over_all_deployments(make: Make, tmp_path: Path) -> None:
    answer = "FleetResult(ALL, case, Fail(case.deployment.place, str(len(fleet.cases))))"
    report = fleet(make, tmp_path, answer)
    assert messages(report) == []
    assert [(one.rule, one.message, one.place.line) for one in report.findings] == [
        ("acme/all", "2", 1), ("acme/all", "2", 5),
    ]  # fmt: skip
    assert [[one.verdict for one in d.checks] for d in report.deployments] == [["fail"]] * 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("FleetResult(ALL, case, 'odd')", "answered str 'odd'"),
        ("FleetResult(ALL, None, Pass())", "answers for a case of its own"),
        ("FleetResult(None, case, Pass())", "which is no rule of its own"),
    ],
)
def test_fleets_are_isolated_too(make: Make, tmp_path: Path, answer: str, message: str) -> None:
    assert any(message in one for one in messages(fleet(make, tmp_path, answer)))


def test_a_fleet_rule_answers_for_every_deployment(make: Make, tmp_path: Path) -> None:
    answer = "FleetResult(ALL, fleet.cases[0], Pass())"
    assert "acme/all gave no answer for d" in " ".join(messages(fleet(make, tmp_path, answer)))


# the guard


def test_the_guard_reports_each_fault_once() -> None:
    guard = Guard()
    thing = object()
    guard.own(thing, "acme")
    for _ in range(2):
        assert guard.call(thing, "thinking", lambda: 1 / 0, -1) == -1
    assert guard.call(thing, "thinking", lambda: 3, -1) == 3
    (error,) = guard.errors
    assert error.plugin == "acme"
    assert error.message.startswith("thinking: ZeroDivisionError: division by zero at test_plugins")


def test_what_nobody_brought_is_named_by_its_module() -> None:
    assert Guard().owner(object()) == "builtins"


def test_interrupts_are_the_users() -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guard().call(object(), "x", interrupt, 0)

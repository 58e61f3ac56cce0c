"""One run: files read and joined, cases made, verdicts decided, everything counted."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from core_fakes import rules_of, write_tree

from capcheck.config import Settings, UsageError
from capcheck.plugins import GROUP, Plugins
from capcheck.report import Report
from capcheck.session import Session

INSTALLED = tuple(entry.value for entry in entry_points(group=GROUP))
HEAD = "apiVersion: capcheck/v1\nkind: Deployment\n"
GOOD = HEAD + (
    "name: good\nmodel: {id: acme/tiny}\nhardware: {accelerator: acme/card, count: 1}\n"
    "engine: {name: fake, version: '1.0', args: {length: 8192}}\n"
)
BAD = GOOD.replace("8192", "65536").replace("good", "bad")

Run = Callable[..., Report]


class Bench:
    """Runs trees of files; keeps the session for a look inside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session: Session | None = None

    def __call__(
        self, files: dict[str, str], *paths: str, stdin: str | None = None, **options: Any
    ) -> Report:
        write_tree(self.folder, files)
        without = [name for name in INSTALLED if name != "capcheck_spec"]
        plugins = Plugins(extra=["fake_plugin"], without=without)
        self.session = Session(plugins, Settings(**options), self.folder)
        chosen = [self.folder / path for path in paths or (".",)]
        report = self.session.run(
            chosen if stdin is None else [], ("-", stdin) if stdin is not None else None
        )
        faults = [one.message for one in report.findings if one.rule == "capcheck/plugin-error"]
        assert faults == []
        return report


@pytest.fixture
def run(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def said(report: Report) -> list[tuple[str, str, int]]:
    return [(one.rule, one.place.file, one.place.line) for one in report.findings]


def verdicts(report: Report, name: str = "good") -> dict[str, str]:
    (found,) = [one for one in report.deployments if one.name == name]
    return {one.rule: one.verdict for one in found.checks}


# one deployment


def test_a_good_deployment(run: Bench) -> None:
    report = run({"good.yaml": GOOD})
    assert report.findings == ()
    assert set(verdicts(report).values()) == {"pass"}
    (one,) = report.deployments
    assert one.resolved == {
        "model": "acme/tiny", "architecture": "acme/tiny", "accelerator": "acme/card",
        "devices": 1, "engine": "fake", "engine_version": "1.0", "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1, "data_parallel_size": 1, "max_model_len": 8192,
        "max_num_seqs": 8, "max_num_batched_tokens": None, "kv_cache_dtype": "bf16",
    }  # fmt: skip
    assert one.unknown == {"max_num_batched_tokens": "fake engines do not tell"}
    weights = one.estimates["weights_bytes"]
    assert weights.band.mid == 8 * 2**30
    assert weights.band.high == pytest.approx(8.08 * 2**30)
    assert report.shown_files == (("good.yaml", "capcheck/v1"),)


def test_a_bad_deployment_with_what_helps(run: Bench) -> None:
    report = run({"bad.yaml": BAD})
    (one,) = report.findings
    assert (one.rule, one.severity, one.verdict) == ("fake/one-request", "error", "fail")
    assert (one.place.line, one.place.column, one.note) == (6, 53, "length")
    assert one.help == (
        "length: 12288 passes", "kv: fp8 with length: 24576 passes (needs an evaluation)",
        "tensor: 4 with count: 4 passes",
    )  # fmt: skip
    assert report.summary.errors == 1


def test_several_documents_are_several_deployments(run: Bench) -> None:
    report = run({"all.yaml": f"{GOOD}---\n{BAD}---\n{GOOD.replace('good', 'third')}"})
    assert [(one.name, one.place.line) for one in report.deployments] == [
        ("good", 1), ("bad", 8), ("third", 15),
    ]  # fmt: skip
    assert said(report) == [("fake/one-request", "all.yaml", 13)]


def test_the_order_of_findings_is_that_of_files(run: Bench) -> None:
    files = {f"{name}.yaml": BAD for name in "cab"}
    first = run(files)
    assert [one.place.file for one in first.findings] == ["a.yaml", "b.yaml", "c.yaml"]
    assert first == run(files, "b.yaml", "c.yaml", "a.yaml")._replace(deployments=first.deployments)


def test_counts(run: Bench) -> None:
    report = run({
        "good.yaml": GOOD, "bad.yaml": BAD, "note.yaml": "a: 1\n",
        "odd.yaml": GOOD.replace("length: 8192", "lenght: 1").replace("good", "odd"),
        "quiet.yaml": BAD.replace("}}", "}} # capcheck: ignore[fake/one-request] it is meant"),
        "lost.yaml": GOOD.replace("accelerator: acme/card, ", "").replace("good", "lost"),
    })  # fmt: skip
    summary = report.summary
    assert (summary.files, summary.deployments, summary.unclaimed) == (5, 5, 1)
    assert (summary.checks, summary.passed) == (15, 11)
    assert (summary.errors, summary.warnings, summary.skipped, summary.suppressed) == (1, 1, 1, 1)
    assert summary.skip_reasons == (("no accelerator is named", 1),)
    assert summary.plugin_errors == 0
    assert report.suppressed[0].suppressed == "it is meant"


# selection


def test_what_is_not_selected_is_not_checked(run: Bench) -> None:
    report = run({"bad.yaml": BAD}, select=("fake/devices",))
    assert list(verdicts(report, "bad")) == ["fake/devices"]
    assert report.findings == ()


@pytest.mark.parametrize(
    "options", [{"select": ()}, {"select": ("fake/devices",), "ignore": ("fake/devices",)},
                {"ignore": ("fake",), "select": ("fake",)}],
)  # fmt: skip
def test_a_run_without_rules_is_no_run(run: Bench, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no rule is selected"):
        run({"bad.yaml": BAD}, **options)


# what is not known


def test_an_unknown_model_with_a_suggestion(run: Bench) -> None:
    report = run({"good.yaml": GOOD.replace("acme/tiny", "acme/tinny")})
    (one,) = report.findings
    assert (one.rule, one.severity, one.place.line) == ("spec/unknown-model", "warning", 4)
    assert one.help == ("did you mean acme/tiny?",)
    (deployment,) = report.deployments
    assert deployment.resolved["model"] == "acme/tinny"
    assert deployment.resolved["architecture"] is None
    assert deployment.unknown["model"] == "model 'acme/tinny' is not in the catalogue"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("acme/card", "acme/crd", "spec/unknown-accelerator"),
        ("name: fake", "name: fak", "spec/unknown-engine"),
    ],
)
def test_other_unknown_names(run: Bench, old: str, new: str, rule: str) -> None:
    report = run({"good.yaml": GOOD.replace(old, new)})
    assert rules_of(report.findings) == [rule]
    assert verdicts(report)["fake/one-request"] == "skip"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [("acme/tiny", "'${MODEL}'", "the model"), ("acme/card", "$GPU", "the accelerator")],
)
def test_variables_where_nearly_everything_hangs_on_them(
    run: Bench, old: str, new: str, where: str
) -> None:
    report = run({"good.yaml": GOOD.replace(old, new)})
    (one,) = report.findings
    assert (one.rule, one.severity) == ("spec/unresolved", "warning")
    assert one.message.startswith(f"{where} is not known: ")


def test_other_variables_only_skip_what_needs_them(run: Bench) -> None:
    report = run({"good.yaml": GOOD.replace("length: 8192", "length: '${LENGTH}'")})
    assert report.findings == ()
    assert verdicts(report)["fake/one-request"] == "skip"
    assert report.summary.skip_reasons == (("${LENGTH} is not resolved", 1),)


def test_no_engine_and_no_fallback_skips_with_that_reason(run: Bench) -> None:
    report = run({"good.yaml": GOOD[: GOOD.index("engine")]})
    assert report.findings == ()
    assert report.summary.skip_reasons[0][0] == "no engine is named"
    assert report.deployments[0].resolved["engine"] is None


# alternatives


@pytest.mark.parametrize(
    ("length", "verdict", "reason"),
    [
        (4096, "pass", None),
        (8192, "at risk", "passes on acme/card-32gb; fails on acme/card-16gb"),
        (32768, "fail", None),
    ],
)
def test_a_name_of_several_parts_is_judged_on_each(
    run: Bench, length: int, verdict: str, reason: str | None
) -> None:
    text = GOOD.replace("acme/card", "Card of two sizes").replace("8192", str(length))
    report = run({"good.yaml": text})
    (check,) = [one for one in report.deployments[0].checks if one.rule == "fake/one-request"]
    assert (check.verdict, check.reason) == (verdict, reason)
    assert report.deployments[0].unknown["accelerator"] == "one of acme/card-16gb, acme/card-32gb"
    if verdict == "at risk":
        assert report.findings[0].severity == "warning"
        assert report.findings[0].message == f"it does not fit ({reason})"


def test_a_list_of_parts_with_one_that_nobody_knows(run: Bench) -> None:
    text = GOOD.replace("acme/card", "[acme/card, acme/none]").replace("8192", "4096")
    report = run({"good.yaml": text})
    assert rules_of(report.findings) == ["spec/unknown-accelerator"]
    (check,) = [one for one in report.deployments[0].checks if one.rule == "fake/one-request"]
    assert check.verdict == "pass"
    assert check.reason is not None
    assert check.reason.startswith("not judged on acme/none: ")


def test_too_many_parts_are_unknown(run: Bench) -> None:
    names = ", ".join(f"acme/n{number}" for number in range(9))
    report = run({"good.yaml": GOOD.replace("acme/card", f"[{names}]")})
    assert verdicts(report)["fake/one-request"] == "skip"


def test_an_unknown_release_is_judged_under_each(run: Bench) -> None:
    report = run({"good.yaml": GOOD.replace("version: '1.0', ", "")})
    assert verdicts(report)["fake/one-request"] == "pass"
    assert report.deployments[0].resolved["engine_version"] is None
    reason = "the engine's version is not given"
    assert report.deployments[0].unknown["engine_version"] == reason
    assert run.session is not None
    assert [case.label for case in run.session.outcomes[0].resolved.cases] == [
        "with fake 1", "with fake 2",
    ]  # fmt: skip


# assumptions


def test_assumptions_fill_what_is_missing_and_are_counted(run: Bench) -> None:
    text = GOOD.replace("accelerator: acme/card, ", "").replace("8192", "65536")
    report = run({"good.yaml": text}, assume={"accelerator": "acme/card", "model": "acme/small"})
    (one,) = report.findings
    assert one.note == "length (assumed hardware.accelerator: --assume accelerator=acme/card)"
    assert report.summary.assumed == 1
    assert report.deployments[0].resolved["model"] == "acme/tiny"


def test_a_finding_about_an_assumption_stands_at_the_header(run: Bench) -> None:
    text = GOOD.replace(", count: 1", "").replace("length: 8192", "tensor: 4")
    report = run({"good.yaml": text}, assume={"count": "2"})
    (one,) = report.findings
    assert (one.rule, one.place.file, one.place.line) == ("fake/devices", "good.yaml", 1)


# links


SPEC = HEAD + (
    "name: chat\nmodel: {id: acme/tiny}\nhardware: {accelerator: acme/card, count: 1}\n"
    "engine:\n  name: fake\n  version: '1.0'\n  config: conf/fake.yaml\n"
)
CONFIG = "fake: true\nlength: 65536\nsequences: 4\n"


def test_an_engines_own_file_is_a_layer_below(run: Bench) -> None:
    report = run({"specs/chat.yaml": SPEC, "specs/conf/fake.yaml": CONFIG})
    (one,) = report.findings
    assert (one.rule, one.place.file, one.place.line) == (
        "fake/one-request", "specs/conf/fake.yaml", 2,
    )  # fmt: skip
    assert [(place.file, place.line) for place in one.via] == [("specs/chat.yaml", 9)]
    assert one.deployment == "chat"
    assert [one.name for one in report.deployments] == ["chat"]
    assert dict(report.shown_files)["specs/conf/fake.yaml"] == (
        "fake-config, included by another file"
    )


def test_what_the_spec_says_wins(run: Bench) -> None:
    files = {"chat.yaml": SPEC + "  args: {length: 1024}\n", "conf/fake.yaml": CONFIG}
    report = run(files)
    assert report.findings == ()
    assert report.deployments[0].resolved["max_model_len"] == 1024
    assert report.deployments[0].resolved["max_num_seqs"] == 4


@pytest.mark.parametrize(
    "paths", [("chat.yaml", "conf/fake.yaml"), ("conf/fake.yaml", "chat.yaml")]
)
def test_naming_the_included_file_as_well_changes_nothing(
    run: Bench, paths: tuple[str, str]
) -> None:
    files = {"chat.yaml": SPEC, "conf/fake.yaml": CONFIG}
    assert run(files, *paths).findings == run(files).findings
    report = run(files, *paths)
    assert [one.name for one in report.deployments] == ["chat"]
    assert report.summary.unclaimed == 0


def test_an_engines_file_alone_is_a_deployment_of_its_own(run: Bench) -> None:
    report = run({"fake.yaml": CONFIG}, "fake.yaml")
    assert [one.format for one in report.deployments] == ["fake-config"]


def base(text: str, name: str = "base") -> str:
    return text.replace("name: good", f"name: {name}").replace("name: bad", f"name: {name}")


def test_a_deployment_that_others_build_on_is_checked_itself(run: Bench) -> None:
    """A pull request must not hide a deployment by adding another one that builds on it."""
    files = {
        "base.yaml": base(BAD),
        "new.yaml": HEAD + "name: new\nfrom: base.yaml\nengine: {args: {length: 1024}}\n",
    }
    report = run(files)
    assert {one.name for one in report.deployments} == {"base", "new"}
    assert [(one.deployment, one.place.file) for one in report.findings] == [("base", "base.yaml")]


def test_what_a_deployment_takes_from_its_base_is_said_once(run: Bench) -> None:
    files = {"base.yaml": base(BAD), "new.yaml": HEAD + "name: new\nfrom: base.yaml\n"}
    report = run(files)
    assert [(one.deployment, one.place.file) for one in report.findings] == [("new", "base.yaml")]
    assert [(place.file, place.line) for place in report.findings[0].via] == [("new.yaml", 4)]
    assert report.summary.errors == 1
    assert verdicts(report, "base")["fake/one-request"] == "fail"


def test_one_object_of_several(run: Bench) -> None:
    files = {
        "base.yaml": f"{base(GOOD, 'one')}---\n{base(BAD, 'two')}",
        "new.yaml": HEAD + "name: new\nfrom: base.yaml#Deployment/one\n",
    }
    report = run(files, "new.yaml")
    assert report.findings == ()
    assert report.deployments[0].resolved["max_model_len"] == 8192


@pytest.mark.parametrize(
    ("target", "message", "help"),
    [
        ("base.yaml", "holds 2 deployments", "name one behind a #: one, two"),
        ("base.yaml#three", "holds no deployment named three", "it holds one, two"),
        ("none.yaml", "no such file", ""),
        ("note.yaml", "holds no deployment", ""),
        ("../../etc/passwd", "leads out of the checked tree", "capcheck.toml"),
        ("/etc/passwd", "leads out of the checked tree", "capcheck.toml"),
        ("new.yaml", "includes itself", ""),
        ("loop.yaml", "includes itself", ""),
        ("sub", "neither a regular file nor a folder", ""),
        ("x" * 5000, "", ""),
    ],
)
def test_links_that_lead_nowhere(run: Bench, target: str, message: str, help: str) -> None:
    files = {
        "base.yaml": f"{base(GOOD, 'one')}---\n{base(GOOD, 'two')}",
        "new.yaml": HEAD + f"name: new\nfrom: '{target}'\n",
        "loop.yaml": HEAD + "name: loop\nfrom: new.yaml\n",
        "note.yaml": "a: 1\n", "sub/x.txt": "",
    }  # fmt: skip
    report = run(files, "new.yaml")
    (one,) = [one for one in report.findings if one.rule == "spec/link"]
    assert message in one.message
    assert help in " ".join(one.help)
    if target != "loop.yaml":
        assert (one.place.file, one.place.line) == ("new.yaml", 4)


def test_a_long_chain_of_files_ends(run: Bench) -> None:
    files = {
        f"f{number}.yaml": HEAD + f"name: n{number}\nfrom: f{number + 1}.yaml\n"
        for number in range(20)
    }
    report = run({**files, "f20.yaml": base(GOOD)}, "f0.yaml")
    assert ["more than 8 files behind each other" in one.message for one in report.findings
            if one.rule == "spec/link"] == [True]  # fmt: skip


def test_a_link_out_of_the_tree_is_not_read(run: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.yaml").write_text(base(BAD))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link.yaml").symlink_to("../outside/secret.yaml")
    bench = Bench(tmp_path / "tree")
    report = bench({"good.yaml": GOOD})
    assert [(one.rule, one.message) for one in report.findings] == [
        ("spec/unreadable", "this link leads out of the checked tree")
    ]
    assert [one.name for one in report.deployments] == ["good"]
    assert bench.session is not None
    assert list(bench.session.intake.texts) == ["good.yaml"]


# a model's own configuration


@pytest.mark.parametrize("target", ["config.json", "models/tiny", "models/tiny/config.json"])
def test_a_models_own_configuration(run: Bench, target: str) -> None:
    config = '{"model_type": "tiny", "_name_or_path": "my/tiny"}'
    files = {
        "good.yaml": GOOD.replace("id: acme/tiny", f"config: {target}"),
        "config.json": config, "models/tiny/config.json": config,
    }  # fmt: skip
    report = run(files, "good.yaml")
    assert report.findings == ()
    assert report.deployments[0].resolved["model"] == "my/tiny"


def test_a_models_configuration_is_not_unclaimed(run: Bench) -> None:
    files = {
        "good.yaml": GOOD.replace("id: acme/tiny", "config: config.json"),
        "config.json": '{"model_type": "tiny"}',
    }
    report = run(files, "good.yaml", "config.json")
    assert report.findings == ()
    assert (
        dict(report.shown_files)["config.json"] == "model configuration, included by another file"
    )


@pytest.mark.parametrize(
    ("text", "rule", "message"),
    [
        ('{"model_type": "huge"}', "spec/model-config", "model_type is 'huge'"),
        ("{nonsense", "spec/link", "not JSON"),
        ("[1]", "spec/link", "expected a JSON object"),
        ("[" * 100_000, "spec/link", "not JSON"),
    ],
)
def test_configurations_that_cannot_be_used(run: Bench, text: str, rule: str, message: str) -> None:
    files = {"good.yaml": GOOD.replace("id: acme/tiny", "config: c.json"), "c.json": text}
    report = run(files, "good.yaml")
    (one,) = report.findings
    assert (one.rule, one.place.line) == (rule, 4)
    assert message in one.message
    assert verdicts(report)["fake/devices"] == "pass"


def test_the_nearest_configuration_of_a_model_counts(run: Bench) -> None:
    files = {
        "base.yaml": base(GOOD).replace("id: acme/tiny", "config: c.json"),
        "c.json": '{"model_type": "tiny", "_name_or_path": "low"}',
        "sub/c.json": '{"model_type": "tiny", "_name_or_path": "high"}',
        "sub/own.yaml": HEAD + "name: own\nfrom: ../base.yaml\nmodel: {config: c.json}\n",
        "sub/other.yaml": HEAD + "name: other\nfrom: ../base.yaml\nmodel: {id: acme/small}\n",
        "sub/same.yaml": HEAD + "name: same\nfrom: ../base.yaml\n",
    }
    report = run(files)
    models = {one.name: one.resolved["model"] for one in report.deployments}
    assert models == {"base": "low", "own": "high", "other": "acme/small", "same": "low"}


# files that are not ours


def test_a_walked_file_in_no_format_is_counted_and_a_named_one_is_an_error(run: Bench) -> None:
    files = {"good.yaml": GOOD, "note.yaml": "a: 1\n", "empty.yaml": ""}
    assert run(files).findings == ()
    assert run(files).summary.unclaimed == 2
    report = run(files, "note.yaml", "empty.yaml")
    assert [(one.rule, one.message) for one in report.findings] == [
        ("capcheck/unclaimed", "the file is empty"),
        ("capcheck/unclaimed", "no format reads this file as a deployment"),
    ]  # fmt: skip


def test_what_is_only_wrong_in_a_deployment_is_no_matter_elsewhere(run: Bench) -> None:
    files = {"good.yaml": GOOD, "note.yaml": "a: 1\na: 2\n", "chart.yaml": "a: {{ .Values.a }}\n"}
    report = run(files)
    assert "spec/duplicate-key" not in rules_of(report.findings)
    named = run(files, "note.yaml")
    assert rules_of(named.findings) == ["spec/duplicate-key"]
    report = run({"twice.yaml": GOOD + "name: again\n"}, "twice.yaml")
    assert rules_of(report.findings) == ["spec/duplicate-key"]


@pytest.mark.parametrize("header", ["capchek/v1", "capcheck/v2", "Capcheck/v1"])
def test_a_near_miss_of_our_header_is_an_error_even_when_walked(run: Bench, header: str) -> None:
    report = run({"near.yaml": GOOD.replace("capcheck/v1", header)})
    (one,) = report.findings
    assert (one.rule, one.severity, one.place.line) == ("capcheck/header", "error", 1)


def test_standard_input(run: Bench) -> None:
    report = run({}, stdin=BAD)
    assert said(report) == [("fake/one-request", "-", 6)]


def test_runs_forget_each_other(run: Bench, tmp_path: Path) -> None:
    first = run({"bad.yaml": BAD, "note.yaml": "a: [\n"})
    assert run.session is not None
    again = run.session.run([tmp_path])
    assert again == first


# contradictions


def test_two_spellings_in_one_layer(run: Bench) -> None:
    report = run({"good.yaml": GOOD.replace("length: 8192", "max-x: 1, max_x: 2")})
    assert "spec/conflict" in rules_of(report.findings)


def test_schema_faults_do_not_stop_the_rest(run: Bench) -> None:
    text = BAD.replace("count: 1", "count: some, colour: red")
    report = run({"bad.yaml": text})
    assert set(rules_of(report.findings)) == {
        "spec/schema", "spec/unknown-key", "fake/one-request",
    }  # fmt: skip


def test_a_fault_of_ours_costs_one_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"bad.yaml": BAD, "good.yaml": GOOD})
    without = [name for name in INSTALLED if name != "capcheck_spec"]
    session = Session(Plugins(extra=["fake_plugin"], without=without), Settings(), tmp_path)
    check = session.check

    def broken(resolved: Any) -> Any:
        return check(resolved) if resolved.deployment.name == "bad" else 1 / 0

    monkeypatch.setattr(session, "check", broken)
    report = session.run([tmp_path])
    assert rules_of(report.findings) == ["capcheck/plugin-error", "fake/one-request"]
    assert report.findings[0].message.startswith("plugin capcheck: good: ZeroDivisionError")
    assert report.summary.plugin_errors == 1


def test_the_templates_of_a_chart_are_one_warning(run: Bench) -> None:
    chart = {f"chart/{name}.yaml": "name: {{ .Values.name }}\n" for name in "abc"}
    report = run({**chart, "good.yaml": GOOD}, ".")
    (one,) = report.findings
    assert (one.rule, one.place.file) == ("spec/template", "chart/a.yaml")
    assert one.message == "this file and 2 more are templates that nobody rendered"
    assert report.summary.unclaimed == 2
    assert len(run(chart, *chart).findings) == 3  # each is asked for by name

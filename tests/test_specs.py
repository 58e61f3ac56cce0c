"""Deployments as people have them: failing samples, each with what is to be found, and good ones.

A sample is a file below `tests/specs/<concern>` named after its rule (`<rule>.yaml` or
`<rule>-<variant>.yaml`) with a list of findings beside it (`<name>.expected.json`): these and no
others, sorted by file, line, column and rule. Texts in `message`, `arithmetic` and `help` are
contained in what is said. A finding of another rule says in `unavoidable` why it comes too.
Files in `parts` are linked from samples. Adding a case is adding two files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capcheck.config import Settings
from capcheck.findings import Finding
from capcheck.notices import NOTICES
from capcheck.report import Report
from capcheck.session import Session
from capcheck.testing import check, plugins

PROJECT = Path(__file__).parent.parent
SAMPLES = Path(__file__).parent / "specs"
EXAMPLES = PROJECT / "specs"
ENDING = ".expected.json"
EXPECTATIONS = sorted(SAMPLES.rglob(f"*{ENDING}"))
PARTS = "parts"
# Rules that no file can show by itself: each has a test of its own below.
NOT_OF_A_FILE = {"capcheck/plugin-error", "spec/unreadable"}


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def sample_of(expectation: Path) -> Path:
    name = expectation.name.removesuffix(ENDING)
    (sample,) = (
        path
        for path in expectation.parent.iterdir()
        if path.stem == name and not path.name.endswith(ENDING)
    )
    return sample


def expected_in(expectation: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(expectation.read_text(encoding="utf-8"))
    return found


def report_on(path: Path, root: Path) -> Report:
    return Session(plugins(), Settings(), root).run([path])


def plain(finding: Finding, sample: Path) -> dict[str, Any]:
    """What an expectation says of a finding, texts in full."""
    said: dict[str, Any] = {
        "rule": finding.rule,
        "verdict": finding.verdict,
        "severity": finding.severity,
        "line": finding.place.line,
        "column": finding.place.column,
    }
    if finding.place.file != sample.relative_to(SAMPLES).as_posix():
        said["file"] = finding.place.file
    return said


def missing_texts(expected: dict[str, Any], finding: Finding) -> list[str]:
    """Texts that the finding should hold and does not."""
    texts = {
        "message": finding.message,
        "arithmetic": finding.arithmetic,
        "help": "\n".join(finding.help),
    }
    return [
        f"{part} has no {text!r}: {whole}"
        for part, whole in texts.items()
        for text in expected.get(part, ())
        if text not in whole
    ]


def known_rules() -> set[str]:
    return {rule.id for rule in plugins().rules().values()} | set(NOTICES)


@pytest.mark.parametrize(
    "expectation", EXPECTATIONS, ids=lambda path: path.relative_to(SAMPLES).as_posix()
)
def test_a_sample_is_found_as_expected(expectation: Path) -> None:
    sample = sample_of(expectation)
    expected = expected_in(expectation)
    found = report_on(sample, SAMPLES).findings
    texts = ("message", "arithmetic", "help", "unavoidable")
    wanted = [{key: one[key] for key in one if key not in texts} for one in expected]
    assert [plain(one, sample) for one in found] == wanted
    assert not [text for one, two in zip(expected, found, strict=True)
                for text in missing_texts(one, two)]  # fmt: skip


@pytest.mark.parametrize(
    "expectation", EXPECTATIONS, ids=lambda path: path.relative_to(SAMPLES).as_posix()
)
def test_a_sample_shows_the_rule_it_is_named_after(expectation: Path) -> None:
    shown = {one["rule"] for one in expected_in(expectation) if "unavoidable" not in one}
    (rule,) = shown
    concern, _, name = rule.partition("/")
    stem = expectation.name.removesuffix(ENDING)
    assert expectation.parent.name == concern
    assert stem == name or stem.startswith(f"{name}-")


def test_every_sample_has_an_expectation() -> None:
    named = {sample_of(one) for one in EXPECTATIONS}
    left = [
        path
        for path in files_in(SAMPLES)
        if path not in named and PARTS not in path.parts and not path.name.endswith(ENDING)
    ]
    assert not left


def test_every_rule_has_a_sample() -> None:
    shown = {
        one["rule"]
        for path in EXPECTATIONS
        for one in expected_in(path)
        if "unavoidable" not in one
    }
    assert shown | NOT_OF_A_FILE == known_rules()


def test_a_path_that_is_missing_is_reported() -> None:
    (finding,) = report_on(SAMPLES / "nowhere.yaml", SAMPLES).findings
    assert (finding.rule, finding.severity, finding.place.file) == (
        "spec/unreadable", "error", "nowhere.yaml",
    )  # fmt: skip


FAILING_PLUGIN = """
from capcheck import hookimpl, rule

SPEC = "apiVersion: capcheck/v1"

@rule("acme/broken", title="t", why="w", fix="f", fails=SPEC, passes=SPEC)
def broken(case, t):
    raise LookupError("no such table")

@hookimpl
def capcheck_rules():
    return (broken,)

@hookimpl
def capcheck_check(case):
    return case.run(broken)
"""


def test_a_plugin_that_raises_is_reported_and_loses_nobody_elses_findings(tmp_path: Path) -> None:
    plugin = tmp_path / "acme_broken.py"
    plugin.write_text(FAILING_PLUGIN, encoding="utf-8")
    text = (SAMPLES / "weights" / "fit.yaml").read_text(encoding="utf-8")
    found = check(text, plugin=str(plugin))
    assert sorted(one.rule for one in found) == ["capcheck/plugin-error", "weights/fit"]
    (error,) = (one for one in found if one.rule == "capcheck/plugin-error")
    assert "acme" in error.message
    assert "no such table" in error.message


# the examples

# Why a rule of a good deployment may be skipped; anything else is looked at first.
SENSIBLE_SKIPS = (
    "no engine is named",
    "no objectives are declared",
    "no tpot objective is declared",
    "no ttft objective is declared",
    "no class of traffic is declared",
    "no prompt_tokens are declared",
    "traffic: neither concurrency nor request_rate is declared",
    "nothing is said of what the server runs in",
    "memory is not given as a share of the total",
    "llama.cpp decides nothing here",
)


@pytest.fixture(scope="module")
def examples() -> Report:
    return report_on(EXAMPLES, PROJECT)


def test_the_examples_have_no_finding(examples: Report) -> None:
    assert [f"{one.place.file}:{one.place.line} {one.message}" for one in examples.findings] == []


def test_the_examples_are_read_as_what_they_are(examples: Report) -> None:
    assert len(examples.deployments) >= 14
    assert not examples.summary.unclaimed
    assert {one.format for one in examples.deployments} == {"capcheck/v1", "kubernetes"}
    for one in examples.deployments:
        known = ("model", "accelerator", "devices", "tensor_parallel_size", "max_model_len")
        lost = [name for name in known if one.resolved[name] is None]
        # A pool of two kinds of device has no one accelerator.
        assert lost in ([], ["accelerator"]), one.name
        assert all(one.unknown[name].startswith("one of ") for name in lost), one.name


def test_the_examples_skip_only_what_they_do_not_say(examples: Report) -> None:
    strange = {
        f"{deployment.name} {checked.rule}: {checked.reason}"
        for deployment in examples.deployments
        for checked in deployment.checks
        if checked.verdict == "skip" and not (checked.reason or "").startswith(SENSIBLE_SKIPS)
    }
    assert not strange


def test_the_examples_cover_vendors_and_sizes(examples: Report) -> None:
    parts = [one.resolved["accelerator"] for one in examples.deployments]
    vendors = {part.partition("/")[0] for part in parts if part is not None}
    assert vendors == {"nvidia", "amd", "intel", "google", "aws", "apple"}
    weights = [one.estimates["generic_weights_bytes"].band.mid for one in examples.deployments]
    assert min(weights) < 4e9
    assert max(weights) > 6e11


@pytest.mark.parametrize(
    "path",
    [path for path in files_in(EXAMPLES) if path.suffix == ".yaml"],
    ids=lambda path: path.relative_to(EXAMPLES).as_posix(),
)
def test_an_example_says_what_it_is(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    if any(line == "apiVersion: capcheck/v1" for line in lines):
        depth = len(path.relative_to(PROJECT).parts) - 1
        schema = "/".join([".."] * depth + ["schemas", "deployment.schema.json"])
        assert lines[0] == f"# yaml-language-server: $schema={schema}"
        assert (path.parent / schema).is_file()
        lines = lines[1:]
    header = [line for line in lines[:4] if line.startswith("# ") and len(line) > 20]
    assert header

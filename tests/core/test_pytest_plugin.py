"""`pytest --capcheck`: items, outcomes, and nothing at all without the option."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

HEAD = "apiVersion: capcheck/v1\nkind: Deployment\n"
GOOD = HEAD + (
    "name: good\nmodel: {id: meta-llama/Llama-3.1-8B-Instruct}\n"
    "hardware: {accelerator: nvidia/l40s, count: 1}\n"
    "engine: {name: vllm, version: 0.11.0, args: {max_model_len: 8192, max_num_seqs: 64}}\n"
)
BAD = GOOD.replace("8192", "131072").replace("l40s", "rtx-4090").replace("good", "bad")
WARNS = GOOD.replace("max_num_seqs: 64", "gpu_memory_utilization: 0.97").replace("good", "warns")


def make(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        pytester.makefile(".yaml", **{name: text})


def test_nothing_happens_without_the_option(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_nothing_of_capcheck_is_imported_without_the_option(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD)
    script = (
        "import pytest, sys\npytest.main(['-q', '-p', 'no:cacheprovider'])\n"
        "print(sorted(name for name in sys.modules if name.startswith('capcheck')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=pytester.path,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "['capcheck', 'capcheck.pytest_plugin']"


def test_an_item_for_each_deployment_and_rule(pytester: pytest.Pytester) -> None:
    make(pytester, two=f"{GOOD}---\n{BAD}")
    result = pytester.runpytest_subprocess("--capcheck", "--collect-only", "-q")
    lines = [line for line in result.outlines if "::" in line]
    assert "two.yaml::good::weights/fit" in lines
    assert "two.yaml::bad::kv-cache/one-request" in lines
    assert len(lines) == len(set(lines))
    names = [line.split("::")[1] for line in lines]
    assert names.count("good") == names.count("bad")


def test_errors_fail_with_the_finding_and_nothing_else(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD)
    result = pytester.runpytest_subprocess("--capcheck", "-k", "one-request", "--no-header")
    result.assert_outcomes(failed=1, deselected=len(rules(pytester)) - 1)
    result.stdout.fnmatch_lines([
        "bad.yaml:6:*: error: one request of 131,072 tokens does not fit*one-request[]]",
        "   = arithmetic: 131,072 tokens x *",
        "   = help: max_model_len: *",
        "FAILED bad.yaml::bad::kv-cache/one-request*",
    ])  # fmt: skip
    assert "Traceback" not in result.stdout.str()
    assert "runtest" not in result.stdout.str()


def rules(pytester: pytest.Pytester) -> list[str]:
    result = pytester.runpytest_subprocess("--capcheck", "--collect-only", "-q")
    return [line for line in result.outlines if "::" in line]


def test_skips_give_their_reason(pytester: pytest.Pytester) -> None:
    make(pytester, good=GOOD)
    result = pytester.runpytest_subprocess("--capcheck", "-rs", "-k", "decode/tpot")
    result.stdout.fnmatch_lines(["SKIPPED*no tpot objective is declared"])
    assert result.ret == 0


def test_warnings_pass_and_are_shown(pytester: pytest.Pytester) -> None:
    make(pytester, warns=WARNS)
    result = pytester.runpytest_subprocess("--capcheck", "-k", "utilization")
    result.assert_outcomes(passed=1, warnings=1, deselected=len(rules(pytester)) - 1)
    result.stdout.fnmatch_lines(["*CapcheckWarning: warns.yaml:6:*[[]options/utilization[]]"])


def test_a_strict_configuration_fails_on_warnings(pytester: pytest.Pytester) -> None:
    make(pytester, warns=WARNS)
    pytester.makefile(".toml", capcheck="strict = true\n")
    result = pytester.runpytest_subprocess("--capcheck", "-k", "utilization")
    result.assert_outcomes(failed=1, deselected=len(rules(pytester)) - 1)


def test_suppressed_findings_pass(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD.replace("}}", "}} # capcheck: ignore[kv-cache/one-request] it is meant"))
    result = pytester.runpytest_subprocess("--capcheck", "-k", "one-request")
    result.assert_outcomes(passed=1, deselected=len(rules(pytester)) - 1)


def test_what_is_wrong_with_a_file_is_an_item(pytester: pytest.Pytester) -> None:
    make(pytester, broken="a: [\n", near=GOOD.replace("capcheck/v1", "capchek/v1"), note="a: 1\n")
    result = pytester.runpytest_subprocess("--capcheck", "-q")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([
        "FAILED broken.yaml::spec/yaml*", "FAILED near.yaml::capcheck/header*",
    ])  # fmt: skip


def test_two_deployments_of_one_name_keep_their_own_findings(pytester: pytest.Pytester) -> None:
    make(pytester, twice=f"{GOOD}---\n{BAD.replace('name: bad', 'name: good')}")
    result = pytester.runpytest_subprocess("--capcheck", "-k", "one-request")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] >= 1
    assert outcomes["failed"] + outcomes.get("passed", 0) == 2


def test_assumptions(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD.replace("accelerator: nvidia/rtx-4090, ", ""))
    words = ["--capcheck", "-k", "one-request"]
    assert pytester.runpytest_subprocess(*words).ret == 0
    result = pytester.runpytest_subprocess(
        *words, "--capcheck-assume", "accelerator=nvidia/rtx-4090"
    )
    assert result.ret == 1
    wrong = pytester.runpytest_subprocess("--capcheck", "--capcheck-assume", "colour=red")
    wrong.stdout.fnmatch_lines(["*'colour' cannot be assumed*"])
    assert wrong.ret == 2
    assert "Traceback" not in wrong.stdout.str()


def test_a_broken_configuration_is_said(pytester: pytest.Pytester) -> None:
    make(pytester, good=GOOD)
    pytester.makefile(".toml", capcheck="selekt = []\n")
    result = pytester.runpytest_subprocess("--capcheck")
    result.stdout.fnmatch_lines(["*did you mean select?*"])
    assert result.ret == 2


def test_other_tests_go_on(pytester: pytest.Pytester) -> None:
    make(pytester, bad=BAD)
    pytester.makepyfile("def test_one(): assert 1\n")
    result = pytester.runpytest_subprocess("--capcheck")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["passed"] > 5

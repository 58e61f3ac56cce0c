"""A vendor's plugin from the public API alone: as one file, and installed as a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capcheck.report import Report
from capcheck.testing import check, example_faults, run

HERE = Path(__file__).parent
ACME = str(HERE / "acme.py")
SPEC = """\
apiVersion: capcheck/v1
kind: Deployment
name: acme-70b
model: {id: meta-llama/Llama-3.1-70B-Instruct}
hardware: {accelerator: ACME-A1, count: 2}
engine:
  name: acme_serve
  version: "2.1"
  args: {shards: 2, context: 8192}
x-acme: {nics: 1}
"""


def report(text: str, **options: Any) -> Report:
    return run({"spec.yaml": text}, plugin=ACME, **options)


def verdicts(text: str) -> dict[str, str]:
    (one,) = report(text).deployments
    return {check.rule: check.verdict for check in one.checks}


def test_a_deployment_on_it_passes() -> None:
    made = report(SPEC)
    assert made.findings == ()
    (one,) = made.deployments
    assert one.resolved["accelerator"] == "acme/a1-96gb"
    assert one.resolved["engine"] == "acme-serve"
    assert one.resolved["engine_version"] == "2.1"
    assert one.resolved["max_model_len"] == 8192
    assert one.resolved["tensor_parallel_size"] == 2
    found = verdicts(SPEC)
    for rule in ("weights/fit", "kv-cache/one-request", "sharding/devices", "acme/nics"):
        assert found[rule] == "pass"


def test_its_ledger_and_its_terms_make_the_estimates() -> None:
    (one,) = report(SPEC).deployments
    weights, scratch = one.estimates["weights_bytes"], one.estimates["activation_bytes"]
    parameters = 70_553_706_496
    assert weights.band.mid == pytest.approx(parameters * 2 / 2 * 1.02)
    assert weights.band.low == pytest.approx(parameters * 2 / 2 * 1.0)
    assert scratch.band == (0.4e9, 0.5e9, 0.7e9)
    assert one.estimates["kv_bytes_per_token"].band.mid == 80 * 8 * 128 * 2 * 2 / 2
    (old,) = report(SPEC.replace("2.1", "1.4")).deployments
    assert old.estimates["activation_bytes"].band == (1.0e9, 1.5e9, 2.5e9)


def test_our_rules_judge_by_its_accounting() -> None:
    (finding,) = check(SPEC.replace("shards: 2, context: 8192", "context: 8192").replace(
        "count: 2", "count: 1"), plugin=ACME)  # fmt: skip
    assert finding.rule == "weights/fit"
    assert "parameters" in finding.arithmetic
    assert "0.92 of the device" in finding.arithmetic
    assert "shards: 2 with count: 2 passes" in finding.help
    (finding,) = check(SPEC.replace("8192", "262144"), plugin=ACME)
    assert (finding.rule, finding.place.line, finding.place.column) == (
        "kv-cache/one-request", 9, 30,
    )  # fmt: skip
    assert any(help.startswith("context: ") for help in finding.help)
    assert "cache_dtype: fp8" in " ".join(finding.help)


def test_a_release_that_nobody_tells_is_judged_under_both_eras() -> None:
    text = SPEC.replace('  version: "2.1"\n', "").replace("8192", "90000")
    (one,) = report(text).deployments
    assert one.resolved["engine_version"] is None
    assert {"weights/fit", "kv-cache/one-request"} <= {check.rule for check in one.checks}


def test_its_rule_and_its_part_of_the_spec() -> None:
    (finding,) = check(
        SPEC.replace("count: 2", "count: 4").replace("shards: 2", "shards: 4"), plugin=ACME
    )
    assert (finding.rule, finding.place.line, finding.message) == (
        "acme/nics", 10, "1 network cards for 4 accelerators",
    )  # fmt: skip
    (finding,) = check(SPEC.replace("nics: 1", "nisc: 1"), plugin=ACME)
    assert finding.rule == "spec/unknown-key"
    assert finding.help == ("did you mean nics?",)


def test_its_examples_are_its_first_test() -> None:
    assert example_faults(ACME) == []


def test_a_model_named_by_its_own_option() -> None:
    text = SPEC.replace("model: {id: meta-llama/Llama-3.1-70B-Instruct}\n", "").replace(
        "shards: 2,", "shards: 2, model: meta-llama/Llama-3.1-70B-Instruct,"
    )
    (one,) = report(text).deployments
    assert one.resolved["model"] == "meta-llama/Llama-3.1-70B-Instruct"


def test_types_of_the_public_api_suffice(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), ACME],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


# from outside


def capcheck(*words: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, *_checkout())))}
    return subprocess.run(
        [sys.executable, "-m", "capcheck.cli", *words], capture_output=True, text=True, cwd=cwd,
        env=env, check=False,
    )  # fmt: skip


def _checkout() -> list[str]:
    found = os.environ.get("PYTHONPATH", "")
    return found.split(os.pathsep) if found else []


def test_the_file_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    done = capcheck("spec.yaml", "--plugin", ACME, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    listed = capcheck("list", "accelerators", "acme", "--plugin", ACME, cwd=tmp_path)
    assert listed.stdout.startswith("acme/a1-96gb")
    assert "acme-serve" in capcheck("list", "engines", "--plugin", ACME, cwd=tmp_path).stdout
    page = capcheck("explain", "acme/nics", "--plugin", ACME, cwd=tmp_path)
    assert page.stdout.startswith("acme/nics: Two accelerators share")
    without = capcheck("spec.yaml", cwd=tmp_path)
    assert without.returncode == 0
    assert "[spec/unknown-engine]" in without.stdout
    assert "[spec/unknown-accelerator]" in without.stdout


def test_installed_as_a_package(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
         "--no-index", "--target", str(target), str(HERE)],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "spec.yaml").write_text(SPEC.replace("8192", "262144"), encoding="utf-8")
    done = capcheck("spec.yaml", "--format", "json", cwd=tmp_path, path=str(target))
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert [one["rule"] for one in found["findings"]] == ["kv-cache/one-request"]
    assert found["deployments"][0]["resolved"]["accelerator"] == "acme/a1-96gb"
    left_out = capcheck("spec.yaml", "--no-plugin", "acme", cwd=tmp_path, path=str(target))
    assert "[spec/unknown-engine]" in left_out.stdout

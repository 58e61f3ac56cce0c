"""Bad input: one clear located finding each, never a crash, and the other files are checked."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from core_fakes import write_tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capcheck.config import Settings
from capcheck.plugins import Plugins
from capcheck.report import Report
from capcheck.session import Session

HEAD = "apiVersion: capcheck/v1\nkind: Deployment\n"
GOOD = HEAD + (
    "name: good\nmodel: {id: meta-llama/Llama-3.1-8B-Instruct}\n"
    "hardware: {accelerator: nvidia/l40s, count: 1}\n"
    "engine: {name: vllm, version: 0.11.0, args: {max_model_len: 8192, max_num_seqs: 64}}\n"
    "workload: {prompt_tokens: {p50: 500, p95: 2000}, output_tokens: 200, concurrency: 8}\n"
    "objectives: {ttft: {p50: 2s, p99: 8s}, tpot: {p50: 60ms, p99: 120ms}}\n"
)


@lru_cache(maxsize=1)
def plugins() -> Plugins:
    return Plugins()


def check(folder: Path, *paths: Path) -> Report:
    """A run in which no plugin may fail, whatever the input is."""
    loaded = plugins()
    report = Session(loaded, Settings(), folder).run(paths or [folder])
    faults, loaded.guard.errors[:] = list(loaded.guard.errors), []
    assert faults == []
    return report


def found(report: Report, file: str) -> list[tuple[str, int, int]]:
    return [
        (one.rule, one.place.line, one.place.column)
        for one in report.findings
        if one.place.file == file
    ]


# one file at fault among others


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"a: [1, 2\n", ("spec/yaml", 1, 4)),
        (b"a: 1\n\tb: 2\n", ("spec/yaml", 2, 1)),
        (b'{"a": 1,}', None),
        (b"a: *nowhere\n", ("spec/alias", 1, 4)),
        (b"a: &x [*x]\n", ("spec/alias", 1, 8)),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ("spec/encoding", 1, 1)),
        (b"a: 1\nb: \xff\xfe\n", ("spec/encoding", 2, 4)),
        (b"a: \xc3(\n", ("spec/encoding", 1, 4)),
        (b"a: " + b"[" * 500 + b"\n", None),
        (b"[" * 100_000, None),
        (b"a: {" * 5000, None),
        (b"%YAML 9.9\n---\na: 1\n", None),
        (b"!!python/object/apply:os.system ['echo']\n", None),
        (b"a: !!binary nonsense\n", None),
        (b"? [1, 2]\n: 3\n", None),
        (b"- a\n- b\n", None),
        (b"just text\n", None),
        (b"a: \x00\n", ("spec/encoding", 1, 4)),
        (b"", None),
        (b"\xef\xbb\xbf", None),
        (b"\r\r\r", None),
        (b"---\n---\n---\n", None),
    ],
)
def test_a_file_that_is_no_deployment_costs_nobody_else(
    tmp_path: Path, content: bytes, finding: tuple[str, int, int] | None
) -> None:
    write_tree(tmp_path, {"good.yaml": GOOD})
    (tmp_path / "odd.yaml").write_bytes(content)
    report = check(tmp_path)
    assert [one.name for one in report.deployments] == ["good"]
    assert len(found(report, "odd.yaml")) <= 1
    if finding is not None:
        assert found(report, "odd.yaml") == [finding]
    named = check(tmp_path, tmp_path / "odd.yaml", tmp_path / "good.yaml")
    assert len(found(named, "odd.yaml")) == 1  # what was named is never passed over in silence
    assert [one.name for one in named.deployments] == ["good"]


@pytest.mark.parametrize("name", ["config.json", "list.json"])
def test_json_that_is_no_json(tmp_path: Path, name: str) -> None:
    write_tree(tmp_path, {name: '{"a": 1,\n"b": }', "good.yaml": GOOD})
    report = check(tmp_path)
    assert [one.rule for one in report.findings] == ["spec/json"]
    assert report.summary.deployments == 1


def test_one_bad_document_of_several(tmp_path: Path) -> None:
    write_tree(tmp_path, {"all.yaml": f"{GOOD}---\na: [\n---\n{GOOD.replace('good', 'third')}"})
    report = check(tmp_path)
    assert [one.name for one in report.deployments] == ["good", "third"]
    assert [one.rule for one in report.findings] == ["spec/yaml"]


def test_an_alias_bomb(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    bomb = HEAD + "name: bomb\nx-a:\n" + "".join(f"  {line}\n" for line in lines)
    write_tree(tmp_path, {"bomb.yaml": bomb, "good.yaml": GOOD})
    report = check(tmp_path)
    assert "good" in [one.name for one in report.deployments]
    assert {rule for rule, _, _ in found(report, "bomb.yaml")} <= {"spec/alias", "spec/too-large"}
    assert found(report, "bomb.yaml")


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    long = GOOD.replace("name: good", f"name: {'x' * 10_000_000}")
    write_tree(tmp_path, {"long.yaml": long, "good.yaml": GOOD})
    report = check(tmp_path)
    assert report.summary.deployments == 2
    write_tree(tmp_path, {"long.yaml": "# " + "x" * 21_000_000})
    assert [one.rule for one in check(tmp_path).findings] == ["spec/too-large"]


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    write_tree(tmp_path, {"good.yaml": GOOD, "folder.yaml/inner.yaml": GOOD})
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "dangling.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    report = check(tmp_path)
    assert report.summary.deployments == 2
    assert {one.place.file for one in report.findings} == {
        "pipe.yaml", "dangling.yaml", "loop.yaml",
    }  # fmt: skip
    assert {one.rule for one in report.findings} == {"spec/unreadable"}
    named = check(tmp_path, *(tmp_path / name for name in (
        "pipe.yaml", "dangling.yaml", "loop.yaml", "none.yaml", "folder.yaml", "good.yaml",
    )))  # fmt: skip
    assert named.summary.deployments == 2
    assert [one.rule for one in named.findings] == ["spec/unreadable"] * 4


def test_a_folder_without_deployments(tmp_path: Path) -> None:
    write_tree(tmp_path, {"sub/note.yaml": "a: 1\n"})
    report = check(tmp_path)
    assert (report.findings, report.deployments) == ((), ())
    assert report.summary.unclaimed == 1


# headers


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("capcheck/v1", "capchek/v1"), ("capcheck/v1", "capcheck/v2"),
        ("capcheck/v1", "CapCheck/v1"), ("kind: Deployment", "kind: Deploymnt"),
        ("kind: Deployment\n", ""), ("apiVersion", "apiversion"), ("apiVersion", "apVersion"),
    ],
)  # fmt: skip
def test_headers_that_are_nearly_ours(tmp_path: Path, old: str, new: str) -> None:
    write_tree(tmp_path, {"near.yaml": GOOD.replace(old, new, 1)})
    report = check(tmp_path)
    (one,) = report.findings
    assert (one.rule, one.severity) == ("capcheck/header", "error")
    assert one.place.line in (1, 2)


# values of the wrong kind


NONSENSE = (
    "null", "''", "[]", "{}", "[1, [2]]", "{a: {b: c}}", "true", "-1", "0", "1e400", ".nan",
    ".inf", "2026-11-30", "99999999999999999999999999999999999999", "!custom x", "~", "0.1",
    "'{{ x }}'", "$X", "\"\\u202e\\0\"", "a" * 5000,
)  # fmt: skip
PATHS = (
    "name", "from", "model", "model.id", "model.config", "model.weights", "replicas",
    "model.weights.precision", "hardware", "hardware.accelerator", "hardware.count",
    "hardware.nodes", "engine", "engine.name", "engine.version", "engine.config", "engine.args",
    "engine.args.max_model_len", "engine.args.tensor_parallel_size", "engine.args.max_num_seqs",
    "engine.args.gpu_memory_utilization", "engine.args.kv_cache_dtype", "engine.args.dtype",
    "engine.args.quantization", "engine.args.speculative_config", "engine.args.block_size",
    "engine.args.max_num_batched_tokens", "engine.args.pipeline_parallel_size",
    "engine.args.data_parallel_size", "engine.args.model", "engine.env", "engine.env.VLLM_USE_V1",
    "workload", "workload.class", "workload.prompt_tokens", "workload.prompt_tokens.p50",
    "workload.output_tokens", "workload.concurrency", "workload.request_rate", "workload.start",
    "workload.prefix_hit_rate", "workload.acceptance_rate", "objectives", "objectives.ttft",
    "objectives.ttft.p99", "objectives.tpot.p50", "evaluation", "evaluation.tasks", "fallback",
    "runtime", "runtime.shm", "x-acme",
)  # fmt: skip


def with_value(path: str, value: str) -> str:
    """The good spec with one field set to a text of YAML; with traffic where that matters."""
    loaded = path.startswith(("workload", "objectives"))
    tree = yaml.safe_load(GOOD if loaded else GOOD[: GOOD.index("workload")])
    at = tree
    steps = path.split(".")
    for step in steps[:-1]:
        if not isinstance(at.get(step), dict):
            at[step] = {}
        at = at[step]
    at[steps[-1]] = "@@"
    return yaml.safe_dump(tree, width=10_000).replace("'@@'", value)


@pytest.mark.parametrize("path", PATHS)
def test_wrong_values_anywhere(tmp_path: Path, path: str) -> None:
    for number, value in enumerate(NONSENSE):
        write_tree(tmp_path, {f"n{number}.yaml": with_value(path, value)})
    report = check(tmp_path)
    readable = {one.place.file for one in report.deployments}
    for number, value in enumerate(NONSENSE):
        name = f"n{number}.yaml"
        assert name in readable or found(report, name), value


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (GOOD + "hardwear: {}\n", ["spec/unknown-key"]),
        (GOOD.replace("count: 1", "cuont: 1"), ["spec/unknown-key"]),
        (GOOD + "name: again\n", ["spec/duplicate-key"]),
        (GOOD.replace("count: 1", "count: 1, count: 2"),
         ["sharding/devices", "spec/duplicate-key"]),
        (GOOD.replace("count: 1", "count: one"), ["spec/schema"]),
        (GOOD.replace("version: 0.11.0", "version: [1]"), ["spec/schema"]),
        (GOOD.replace("p95: 2000", "p95: 20"), ["spec/schema"]),
    ],
)  # fmt: skip
def test_each_fault_is_one_finding(tmp_path: Path, text: str, rules: list[str]) -> None:
    write_tree(tmp_path, {"one.yaml": text})
    report = check(tmp_path)
    assert sorted(one.rule for one in report.findings) == rules
    assert report.summary.deployments == 1
    assert all(one.place.line >= 1 for one in report.findings)


# anything at all


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(), st.text(max_size=20),
    st.sampled_from([
        "nvidia/l40s", "H100", "p5.48xlarge", "vllm", "0.11.0", "fp8", "awq-int4", "32k", "1s",
        "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "$X", "{{ y }}", "4/s", "30%",
        "burst", "batch", "auto", "{\"method\": \"ngram\"}",
    ]),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
CHANGES = st.lists(st.tuples(st.sampled_from(PATHS), TREES), min_size=1, max_size=6)


def changed(changes: list[tuple[str, Any]]) -> str:
    tree = yaml.safe_load(GOOD)
    for path, value in changes:
        at = tree
        steps = path.split(".")
        for step in steps[:-1]:
            if not isinstance(at.get(step), dict):
                at[step] = {}
            at = at[step]
        at[steps[-1]] = value
    return yaml.safe_dump(tree, allow_unicode=True)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CHANGES)
def test_no_spec_whatever_makes_a_run_fail(tmp_path: Path, changes: list[tuple[str, Any]]) -> None:
    write_tree(tmp_path, {"any.yaml": changed(changes)})
    report = check(tmp_path)
    assert report.findings or report.deployments
    assert all(one.place.file in ("any.yaml", "") for one in report.findings)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300), st.integers(0, len(GOOD)))
def test_no_bytes_whatever_make_a_run_fail(tmp_path: Path, junk: bytes, at: int) -> None:
    text = GOOD.encode()
    (tmp_path / "any.yaml").write_bytes(text[:at] + junk + text[at:])
    check(tmp_path)

"""The shipped report formats: what they print, letter by letter."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from capcheck import Band, Look, Place, Report, ReportFormat, schemas_home
from capcheck.findings import Finding
from capcheck.printable import printable, width
from capcheck.report import (
    Checked,
    DeploymentReport,
    Estimated,
    Summary,
    counted,
    no_line,
    summary_line,
)
from capcheck.source import line_of
from capcheck_reports import capcheck_reports
from capcheck_reports.snippet import TAB, WIDEST, snippet

FORMATS: dict[str, ReportFormat] = {one.name: one for one in capcheck_reports()}

VLLM = """\
# engine's own file
model: meta-llama/Llama-3.1-8B-Instruct
gpu-memory-utilization: 0.9
max-num-seqs: 1024
dtype: bfloat16
max-model-len: 32k
"""
CHAT = "apiVersion: capcheck/v1\nkind: Deployment\nname: chat-8b\nengine:\n\tname: vllm # 日本語\n"
TEXTS = {"specs/vllm.yaml": VLLM, "specs/chat-8b.yaml": CHAT}

ONE_REQUEST = Finding(
    rule="kv-cache/one-request",
    verdict="fail",
    severity="error",
    message="one request of 32,000 tokens does not fit the KV cache",
    place=Place("specs/vllm.yaml", 6, 16, 6, 19, ("max-model-len",)),
    deployment="chat-8b",
    arithmetic="32,000 tokens x 128 KiB = 3.9 GiB; 1.4 GiB left (1.1 … 1.8)",
    help=("max-num-seqs: 256 passes", "max-model-len: 8192 passes"),
    note="max_model_len",
    via=(Place("specs/chat-8b.yaml", 14, 11, 14, 22),),
)
TAIL = Finding(
    rule="workload/tail-objective",
    verdict="at risk",
    severity="warning",
    message="the objective is only a mean",
    place=Place("specs/chat-8b.yaml", 5, 8, 5, 12, ("engine", "name")),
    deployment="chat-8b",
)
ASSUMED = Finding(
    rule="weights/fit",
    verdict="fail",
    severity="error",
    message="the weights do not fit",
    place=Place("<command line>"),
    note="accelerator (--assume)",
    help=("count: 2 passes",),
)
FAULT = Finding(
    "capcheck/plugin-error", "fail", "error", "plugin acme: raised", Place("", 0, 0, 0, 0)
)
HUSHED = TAIL._replace(rule="sharding/over-sharded", suppressed="spare capacity is wanted")

DEPLOYMENT = DeploymentReport(
    name="chat-8b",
    place=Place("specs/chat-8b.yaml", 1, 1, 1, 11),
    format="capcheck/v1",
    resolved={"model": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": None, "devices": 1},
    unknown={"accelerator": "no node selector names one"},
    estimates={
        "weights_bytes": Estimated(Band(1.6e10, 16060522496.0, 1.61e10), "B", "per device"),
        "tpot_seconds": Estimated(Band(0.1 + 0.2, 0.4, 0.5), "s"),
        "max_concurrency": Estimated(Band(1.0, 2.0, float("inf")), "requests"),
    },
    checks=(
        Checked("kv-cache/one-request", "fail"),
        Checked("weights/fit", "pass"),
        Checked("workload/tail-objective", "at risk"),
        Checked("decode/tpot", "skip", "without traffic"),
    ),
    binding="memory",
)
SUMMARY = Summary(
    files=3, deployments=4, checks=118, passed=112, errors=1, warnings=2, skipped=3, suppressed=0,
    skip_reasons=(("without traffic", 2), ("accelerator unknown", 1)),
)  # fmt: skip


def always(text: str) -> Callable[[Any], str]:
    """A look's function that says the same of everything."""

    def answer(what: Any) -> str:
        del what
        return text

    return answer


def report_of(*findings: Finding, **changes: Any) -> Report:
    report = Report("0.1.0", Path("/root"), SUMMARY, (DEPLOYMENT,), findings)
    return report._replace(**changes)


def line(place: Place) -> str | None:
    text = TEXTS.get(place.file)
    return None if text is None else line_of(text, place.line)


def written(format: str, report: Report, **look: Any) -> str:
    return FORMATS[format].write(report, Look(**{"line": line, **look}))


# text


def test_text_of_one_finding() -> None:
    assert written("text", report_of(ONE_REQUEST)) == (
        "specs/vllm.yaml:6:16: error: one request of 32,000 tokens does not fit the KV cache"
        " [kv-cache/one-request]\n"
        "    6 | max-model-len: 32k\n"
        "      |                ^^^ max_model_len (included from specs/chat-8b.yaml:14)\n"
        "   = arithmetic: 32,000 tokens x 128 KiB = 3.9 GiB; 1.4 GiB left (1.1 … 1.8)\n"
        "   = help: max-num-seqs: 256 passes · max-model-len: 8192 passes\n"
    )


def test_text_parts_findings_by_blank_lines_and_expands_tabs() -> None:
    assert written("text", report_of(TAIL, ASSUMED, FAULT)) == (
        "specs/chat-8b.yaml:5:8: warning: the objective is only a mean"
        " [workload/tail-objective]\n"
        "    5 |     name: vllm # 日本語\n"
        "      |           ^^^^\n"
        "\n"
        "<command line>:1:1: error: the weights do not fit [weights/fit]\n"
        "   = note: accelerator (--assume)\n"
        "   = help: count: 2 passes\n"
        "\n"
        "capcheck: error: plugin acme: raised [capcheck/plugin-error]\n"
    )


def test_text_of_long_line_numbers_stays_aligned() -> None:
    far = TAIL._replace(place=Place("a.yaml", 123456, 2, 123456, 3))
    assert written("text", report_of(far), line=always("xyz")).splitlines()[1:] == [
        "123456 | xyz",
        "       |  ^",
    ]


def test_text_marks_to_the_end_of_the_first_line_of_several() -> None:
    long = TAIL._replace(place=Place("a.yaml", 1, 4, 3, 2))
    assert written("text", report_of(long), line=always("a: |  ")).splitlines()[1:] == [
        "    1 | a: |",
        "      |    ^",
    ]


def test_text_says_nothing_when_there_is_nothing() -> None:
    assert written("text", report_of()) == ""
    assert written("concise", report_of()) == ""


def test_text_with_what_passed() -> None:
    report = report_of(suppressed=(HUSHED,))
    assert written("text", report, show_passed=True) == (
        "specs/chat-8b.yaml:1:1: chat-8b (capcheck/v1)\n"
        "    fail    kv-cache/one-request\n"
        "    pass    weights/fit\n"
        "    at risk workload/tail-objective\n"
        "    skipped decode/tpot: without traffic\n"
        "\n"
        "specs/chat-8b.yaml:5:8: warning: the objective is only a mean [sharding/over-sharded]\n"
        "   = suppressed: spare capacity is wanted\n"
    )
    assert written("text", report) == ""
    assert written("text", report, show_passed=True, quiet=True) == ""


@pytest.mark.parametrize("format", ["text", "concise"])
def test_quiet_shows_errors_only(format: str) -> None:
    both = written(format, report_of(ONE_REQUEST, TAIL))
    assert "tail-objective" in both
    assert written(format, report_of(ONE_REQUEST, TAIL), quiet=True) == written(
        format, report_of(ONE_REQUEST)
    )


@pytest.mark.parametrize("format", ["text", "concise"])
def test_colours_add_nothing_but_colours(format: str) -> None:
    report = report_of(ONE_REQUEST, TAIL, ASSUMED, FAULT, suppressed=(HUSHED,))
    plain = written(format, report, show_passed=True)
    colored = written(format, report, show_passed=True, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31merror\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_paths_are_shown_as_the_reader_stands() -> None:
    shown = written(
        "concise", report_of(ONE_REQUEST, ASSUMED), shown_path=lambda file: f"../{file}"
    )
    assert shown.splitlines()[0].startswith("../specs/vllm.yaml:6:16: ")
    assert shown.splitlines()[1].startswith("<command line>:1:1: ")


# concise


def test_concise() -> None:
    assert written("concise", report_of(ONE_REQUEST, TAIL, FAULT)) == (
        "specs/vllm.yaml:6:16: error: one request of 32,000 tokens does not fit the KV cache"
        " [kv-cache/one-request]\n"
        "specs/chat-8b.yaml:5:8: warning: the objective is only a mean [workload/tail-objective]\n"
        "capcheck: error: plugin acme: raised [capcheck/plugin-error]\n"
    )


# json

SCHEMA = schemas_home.read_schema("report")


def loaded(report: Report, **look: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written("json", report, **look))
    assert list(Draft7Validator(SCHEMA).iter_errors(found)) == []
    return found


def test_json_is_the_contract() -> None:
    assert loaded(report_of(ONE_REQUEST)) == {
        "capcheck": "0.1.0",
        "report": 1,
        "summary": {
            "files": 3,
            "deployments": 4,
            "checks": 118,
            "passed": 112,
            "errors": 1,
            "warnings": 2,
            "skipped": 3,
            "suppressed": 0,
            "assumed": 0,
            "unclaimed": 0,
            "plugin_errors": 0,
        },
        "deployments": [
            {
                "name": "chat-8b",
                "path": "specs/chat-8b.yaml",
                "line": 1,
                "format": "capcheck/v1",
                "resolved": {
                    "model": "meta-llama/Llama-3.1-8B-Instruct",
                    "accelerator": None,
                    "devices": 1,
                },
                "unknown": {"accelerator": "no node selector names one"},
                "estimates": {
                    "weights_bytes": {
                        "low": 1.6e10,
                        "mid": 16060522496.0,
                        "high": 1.61e10,
                        "unit": "B",
                        "basis": "per device",
                    },
                    "tpot_seconds": {
                        "low": 0.3,
                        "mid": 0.4,
                        "high": 0.5,
                        "unit": "s",
                        "basis": "",
                    },
                },
                "checks": [
                    {"rule": "kv-cache/one-request", "verdict": "fail", "reason": None},
                    {"rule": "weights/fit", "verdict": "pass", "reason": None},
                    {"rule": "workload/tail-objective", "verdict": "at risk", "reason": None},
                    {"rule": "decode/tpot", "verdict": "skip", "reason": "without traffic"},
                ],
                "binding": "memory",
            }
        ],
        "findings": [
            {
                "rule": "kv-cache/one-request",
                "verdict": "fail",
                "severity": "error",
                "message": "one request of 32,000 tokens does not fit the KV cache",
                "arithmetic": "32,000 tokens x 128 KiB = 3.9 GiB; 1.4 GiB left (1.1 … 1.8)",
                "help": ["max-num-seqs: 256 passes", "max-model-len: 8192 passes"],
                "deployment": "chat-8b",
                "path": "specs/vllm.yaml",
                "line": 6,
                "column": 16,
                "end_line": 6,
                "end_column": 19,
                "spec_path": ["max-model-len"],
                "included_from": [{"path": "specs/chat-8b.yaml", "line": 14, "column": 11}],
            }
        ],
        "suppressed": [],
    }


def test_json_is_complete_whatever_the_look() -> None:
    report = report_of(ONE_REQUEST, TAIL, ASSUMED, FAULT, suppressed=(HUSHED,))
    plain = loaded(report)
    assert loaded(report, quiet=True, color=True, shown_path=always("x")) == plain
    assert [one["line"] for one in plain["findings"]] == [6, 5, 1, 0]
    assert plain["suppressed"][0]["reason"] == "spare capacity is wanted"


def test_json_says_nothing_that_the_schema_does_not_name() -> None:
    found = loaded(report_of(ONE_REQUEST, suppressed=(HUSHED,)))
    deployment = found["deployments"][0]
    parts = SCHEMA["definitions"]
    assert set(found) == set(SCHEMA["properties"])
    assert set(found["summary"]) == set(SCHEMA["properties"]["summary"]["properties"])
    assert set(deployment) == set(parts["deployment"]["properties"])
    assert set(found["findings"][0]) | {"reason"} == set(parts["finding"]["properties"])
    assert set(found["suppressed"][0]) == set(parts["finding"]["properties"])
    assert set(deployment["estimates"]["weights_bytes"]) == set(parts["estimate"]["properties"])


def test_json_without_a_binding_constraint_leaves_it_out() -> None:
    found = loaded(report_of(deployments=(DEPLOYMENT._replace(binding=""),)))
    assert "binding" not in found["deployments"][0]


def test_json_is_ascii_and_refuses_what_json_cannot_hold() -> None:
    assert written("json", report_of(ONE_REQUEST)).isascii()
    odd = DEPLOYMENT._replace(resolved={"devices": float("nan")})
    with pytest.raises(ValueError, match="Out of range"):
        written("json", report_of(deployments=(odd,)))


# text of strangers

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.\u2066 \x9b31m \u2028 \x00 \ud800 \u200b\ufeff \r\n\t\x7f"
)


@pytest.mark.parametrize("format", ["text", "concise", "json"])
def test_nothing_of_a_file_reaches_the_terminal_unescaped(format: str) -> None:
    hostile = Finding(
        f"a/{HOSTILE}", "fail", "error", HOSTILE, Place(HOSTILE, 1, 3, 1, 9, (HOSTILE,)), HOSTILE,
        HOSTILE, (HOSTILE,), HOSTILE, HOSTILE,
    )  # fmt: skip
    deployment = DEPLOYMENT._replace(
        name=HOSTILE, format=HOSTILE, place=hostile.place, checks=(Checked("a/b", "skip", HOSTILE),)
    )
    report = report_of(hostile, deployments=(deployment,), suppressed=(hostile,))
    text = written(format, report, show_passed=True, line=always(HOSTILE * 3))
    assert all(one.isprintable() for one in text.replace("\n", ""))
    if format != "json":
        assert text.count("\n") == {"concise": 1, "text": 11}[format]


def test_printable() -> None:
    assert printable("plain ü 日本") == "plain ü 日本"
    assert printable("a\tb\nc\rd") == "a\\tb\\nc\\rd"
    assert printable("\x1b[0m\x9b") == "\\x1b[0m\\x9b"
    assert printable("\u202e\u2028\xa0\ud800\U000e0001") == "\\u202e\\u2028\\xa0\\ud800\\U000e0001"


@given(st.text(alphabet=st.characters()))
def test_printable_is_printable_and_keeps_what_was(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert "\n" not in shown
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_width() -> None:
    assert [width(one) for one in ("a", "é", "\u0301", "日", "😀", "｡", "\ufe0f", "ﾊ")] == [
        1, 1, 0, 2, 2, 1, 0, 1,
    ]  # fmt: skip


# snippets


def columns(text: str) -> int:
    return sum(width(one) for one in text)


def test_carets_line_up_below_wide_and_combining_characters() -> None:
    found = snippet("日本: e\u0301x # c", 5, 8)
    assert found.line == "日本: e\u0301x # c"
    assert (found.indent, found.carets) == (6, "^^")


def test_escapes_are_marked_whole() -> None:
    found = snippet("a: \x1bb", 4, 5)
    assert (found.line, found.indent, found.carets) == ("a: \\x1bb", 3, "^^^^")


def test_tabs_reach_the_next_stop() -> None:
    found = snippet("a\tb\t\tc", 6, 7)
    assert found.line == "a   b       c"
    assert (found.indent, found.carets) == (3 * TAB, "^")
    assert snippet("a\tb", 2, 3).carets == "^^^"


def test_an_empty_mark_has_a_caret() -> None:
    assert snippet("a:", 3, 3)._replace(line="") == ("", 2, "^")
    assert snippet("", 1, 1) == ("", 0, "^")
    assert snippet("ab", 99, 120) == ("ab", 2, "^")


def test_long_lines_are_cut_around_the_mark() -> None:
    text = "".join(f"{number:04}" for number in range(250))
    found = snippet(text, 501, 505)
    assert found.line.startswith("…")
    assert found.line.endswith("…")
    assert found.line[found.indent : found.indent + 4] == "0125"
    assert found.carets == "^^^^"
    assert len(found.line) == WIDEST
    first = snippet(text, 1, 5)
    assert first.line.startswith("0000")
    assert first.line.endswith("…")
    last = snippet(text, 997, 1001)
    assert last.line.endswith("0249")
    assert len(last.line) in (WIDEST - 1, WIDEST)
    assert last.line[last.indent :] == "0249"


def test_a_mark_that_is_too_long_is_cut() -> None:
    found = snippet("x" * 500, 101, 401)
    assert found.indent + len(found.carets) <= WIDEST - 1
    assert len(found.carets) > 50


LINES = st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=300)


@given(LINES, st.integers(-3, 320), st.one_of(st.none(), st.integers(-3, 320)))
def test_a_snippet_is_one_safe_line_with_carets_within(
    text: str, column: int, end: int | None
) -> None:
    found = snippet(text, column, end)
    assert all(one.isprintable() for one in found.line)
    assert set(found.carets) == {"^"}
    assert columns(found.line) <= WIDEST
    assert found.indent + len(found.carets) <= max(columns(found.line), found.indent) + 1


@given(st.text(alphabet="ab\t日\u0301\x1b é", max_size=80), st.integers(1, 80), st.integers(0, 9))
def test_carets_are_as_wide_as_what_they_mark(text: str, column: int, length: int) -> None:
    line = text.rstrip()
    expanded = snippet(text, column, column + length)
    if columns(expanded.line) == WIDEST or column + length > len(line):
        return
    before = snippet(line[: column - 1] + "|", column, column + 1)
    assert expanded.indent == before.indent
    after = snippet(line[: column - 1 + length] + "|", column + length, column + length + 1)
    assert len(expanded.carets) == max(after.indent - before.indent, 1)
    head = "".join(one for one in line[: column - 1] if unicodedata.combining(one) == 0)
    assert expanded.indent >= len(head.replace("\t", ""))


# the closing sentence


def test_summary_line() -> None:
    assert summary_line(SUMMARY) == (
        "checked 4 deployments in 3 files: 118 checks, 112 passed, 1 error, 2 warnings,"
        " 3 skipped (2 without traffic, 1 accelerator unknown)"
    )


SENTENCES = [
    ({"errors": 0, "warnings": 0, "skipped": 0}, "118 checks, 112 passed"),
    ({"deployments": 1, "files": 1, "checks": 1, "passed": 0, "errors": 2, "warnings": 1,
      "skipped": 0}, "1 check, 0 passed, 2 errors, 1 warning"),
    ({"suppressed": 2, "assumed": 1, "unclaimed": 5, "warnings": 0, "skipped": 0},
     "118 checks, 112 passed, 1 error, 2 suppressed, 1 assumption in use,"
     " 5 files in no known format"),
    ({"plugin_errors": 1, "errors": 3, "warnings": 0, "skipped": 0},
     "118 checks, 112 passed, 3 errors (1 of plugins)"),
    ({"skipped": 9, "errors": 0, "warnings": 0},
     "118 checks, 112 passed, 9 skipped (2 without traffic, 1 accelerator unknown, 6 other)"),
    ({"skip_reasons": (), "errors": 0, "warnings": 0}, "118 checks, 112 passed, 3 skipped"),
    ({"checks": 1180, "passed": 1120, "errors": 0, "warnings": 0, "skipped": 0},
     "1,180 checks, 1,120 passed"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), SENTENCES)
def test_summary_line_says_what_occurred(changes: dict[str, Any], sentence: str) -> None:
    assert summary_line(SUMMARY._replace(**changes)).partition(": ")[2] == sentence


def test_summary_line_of_nothing() -> None:
    nothing = Summary(0, 0, 0, 0, 0, 0, 0, 0)
    assert summary_line(nothing) == "checked 0 deployments in 0 files: nothing to check"
    one = nothing._replace(files=1, errors=1)
    assert summary_line(one) == "checked 0 deployments in 1 file: 1 error"


def test_counted() -> None:
    assert [counted(n, "file") for n in (0, 1, 2, 1200)] == [
        "0 files", "1 file", "2 files", "1,200 files",
    ]  # fmt: skip
    assert counted(2, "entry", "entries") == "2 entries"


def test_a_look_without_sources_shows_no_lines() -> None:
    assert no_line(Place("a")) is None
    assert " | " not in FORMATS["text"].write(report_of(ONE_REQUEST), Look())


def test_formats_have_names_and_titles() -> None:
    assert sorted(FORMATS) == ["concise", "json", "text"]
    assert all(one.title for one in FORMATS.values())

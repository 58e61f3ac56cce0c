"""Which findings remain: selection, severities, suppressions in comments."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.comments import comments_of, suppressions
from capcheck.config import Settings, UsageError
from capcheck.decide import Decided, checked, decide
from capcheck.findings import Finding
from capcheck.notices import NOTICES
from capcheck.quantity import Severity, Verdict
from capcheck.values import Place

KNOWN = {
    "kv-cache/one-request": "kv-cache/one-request",
    "kv-cache/declared-load": "kv-cache/declared-load",
    "kv-cache/old-name": "kv-cache/declared-load",
    "weights/fit": "weights/fit",
    **{id: id for id in NOTICES},
}
ONE, LOAD = "kv-cache/one-request", "kv-cache/declared-load"


def finding(
    rule: str = ONE,
    line: int = 1,
    file: str = "a.yaml",
    severity: Severity = "error",
    verdict: Verdict = "fail",
) -> Finding:
    return Finding(rule, verdict, severity, f"{rule} failed", Place(file, line, 3, line, 5))


def decided(text: str, *findings: Finding, file: str = "a.yaml", **options: object) -> Decided:
    return decide(findings, {file: text}, Settings(**options), KNOWN)  # type: ignore[arg-type]


def rules(findings: Sequence[Finding]) -> list[str]:
    return [one.rule for one in findings]


# comments


def found(text: str, file: str = "a.yaml") -> list[tuple[int, int, str]]:
    return [(one.line, one.column, one.text) for one in comments_of(text, file).comments]


def test_only_real_comments_of_yaml() -> None:
    text = (
        "# head\n"
        "a: 1 # one\n"
        'b: "x # no"\n'
        "c: 'it # no'\n"
        "d: |  # header\n"
        "  # script\n"
        "  echo hi # script\n"
        "# after\n"
        "e: >-\n"
        "  folded # no\n"
        "f: [1, # flow\n"
        "  2] # end\n"
        "g: a#b\n"
        "h: plain\n"
        "  text # tail\n"
        "é😀: x # wide\n"
        "--- # document\n"
        "- {a: b} # last"
    )
    assert found(text) == [
        (1, 1, "# head"),
        (2, 6, "# one"),
        (5, 7, "# header"),
        (8, 1, "# after"),
        (11, 8, "# flow"),
        (12, 6, "# end"),
        (15, 8, "# tail"),
        (16, 7, "# wide"),
        (17, 5, "# document"),
        (18, 10, "# last"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(end: str) -> None:
    text = end.join(["a: |", "  # no", "b: 1 # yes", "", "# alone", "c: 2"])
    assert found(text) == [(3, 6, "# yes"), (5, 1, "# alone")]


def test_json_has_no_comments() -> None:
    text = '{"a": "# capcheck: ignore[weights/fit] x"}\n# capcheck: ignore[weights/fit] x\n'
    assert found(text, "a.json") == []
    assert suppressions(text, "a.JSON") == []


def test_files_that_are_no_yaml_have_comments_on_lines_of_their_own() -> None:
    text = "#!/bin/sh\nvllm serve x # tail\n  # alone\n"
    assert found(text, "run.sh") == [(1, 1, "#!/bin/sh"), (3, 3, "# alone")]


def test_broken_yaml_keeps_the_comments_before_the_fault() -> None:
    assert found("# first\na: {{ x }}\nb: [1 # second\nc: }\n# late\n")[0] == (1, 1, "# first")
    assert found("# one\n\n # two\n@x: 1 # three\n") == [(1, 1, "# one"), (3, 2, "# two")]


def test_a_fault_in_one_document_hides_no_comment_of_the_next() -> None:
    text = "a: 1 # one\n---\nb: [ # two\n@c\n# lost\n---\nd: |\n  # no\ne: 1 # three\n"
    assert found(text) == [(1, 6, "# one"), (3, 6, "# two"), (9, 6, "# three")]


@given(st.text(alphabet="ab:#-[]{}|>'\"\\ \t\n\r&*!%@é😀\x85\u2028", max_size=60))
def test_reading_comments_never_fails(text: str) -> None:
    for name in ("a.yaml", "a.sh"):
        for one in comments_of(text, name).comments:
            line = re.split(r"\r\n|\n|\r", text)[one.line - 1]
            assert line[one.column - 1 :].startswith(one.text)
            assert one.text.startswith("#")


# suppression


def test_on_the_line_or_on_the_line_above() -> None:
    text = (
        "a: 1  # capcheck: ignore[kv-cache/one-request] known\n"
        "# capcheck: ignore[weights/fit] measured\n"
        "b: 2\n"
        "c: 3\n"
    )
    here, above = finding(line=1), finding("weights/fit", line=3)
    beyond, other = finding("weights/fit", line=4), finding(line=3)
    result = decided(text, here, above, beyond, other)
    assert [one.suppressed for one in result.suppressed] == ["known", "measured"]
    assert result.kept == (other, beyond)
    assert result.extra == ()


def test_a_comment_behind_a_value_speaks_of_its_own_line_only() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit] x\nb: 2\n"
    assert rules(decided(text, finding("weights/fit", 2)).kept) == ["weights/fit"]


def test_comments_above_stack_and_blank_lines_part_them() -> None:
    text = (
        "# capcheck: ignore[weights/fit] first\n"
        "# prose\n"
        "# capcheck: ignore[kv-cache/one-request, kv-cache/declared-load] second\n"
        "a: 1\n"
        "# capcheck: ignore[weights/fit] far\n"
        "\n"
        "b: 2\n"
    )
    result = decided(
        text,
        finding("weights/fit", 4),
        finding(ONE, 4),
        finding(LOAD, 4),
        finding("weights/fit", 7),
    )
    assert [one.suppressed for one in result.suppressed] == ["second", "second", "first"]
    assert rules(result.findings) == ["capcheck/unused-ignore", "weights/fit"]


@pytest.mark.parametrize(
    "text",
    [
        "a: |  # capcheck: ignore[weights/fit] in a script\n  x\n  y\n  z\nb: 1\n",
        "# capcheck: ignore[weights/fit] in a script\na: >-\n  x\n  y\n  z\nb: 1\n",
        "# capcheck: ignore[weights/fit] in text\n'a': \"x\n  y\n  z\n  u\"\nb: 1\n",
        'a: "x\n  y\n  z\n  u"  # capcheck: ignore[weights/fit] in text\nb: 1\n',
    ],
)
def test_a_scalar_of_several_lines_is_one_place(text: str) -> None:
    inside, beyond = finding("weights/fit", 3), finding("weights/fit", text.count("\n"))
    result = decided(text, inside, beyond)
    assert result.suppressed == (inside._replace(suppressed=result.suppressed[0].suppressed),)
    assert result.kept == (beyond,)


def test_a_whole_file() -> None:
    text = "a: 1\n# capcheck: file-ignore[kv-cache/one-request] generated\n"
    elsewhere = finding(file="b.yaml")
    result = decided(text, finding(line=1), finding(line=900), elsewhere)
    assert len(result.suppressed) == 2
    assert result.kept == (elsewhere,)


def test_suppressions_hold_only_in_their_own_file() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit] x\n"
    result = decided(text, finding("weights/fit", file="b.yaml"))
    assert rules(result.findings) == ["capcheck/unused-ignore", "weights/fit"]


def test_broken_yaml_can_be_left_out_by_its_first_lines() -> None:
    text = "# capcheck: file-ignore[spec/yaml] a template\n{{ if }}\na: {{\n"
    assert rules(decided(text, finding("spec/yaml", 2)).suppressed) == ["spec/yaml"]


def test_renamed_rules_are_suppressed_under_either_name() -> None:
    text = "a: 1  # capcheck: ignore[kv-cache/old-name] x\n"
    result = decided(text, finding(LOAD))
    assert rules(result.suppressed) == [LOAD]
    assert result.extra == ()


@pytest.mark.parametrize(
    "text",
    [
        "a: '# capcheck: ignore[weights/fit] x'\n",
        'a: "b # capcheck: ignore[weights/fit] x"\n',
        "a: |\n  # capcheck: ignore[weights/fit] x\n  vllm serve\n",
        "a: b#capcheck: ignore[weights/fit] x\n",
    ],
)
def test_data_suppresses_nothing(text: str) -> None:
    result = decided(text, *(finding("weights/fit", line) for line in (1, 2, 3)))
    assert len(result.kept) == 3
    assert result.extra == ()


# what is wrong with suppressions

FAULTS = [
    ("ignore[weights/fit]", "capcheck/bare-ignore", "a suppression gives its reason",
     "say why behind the bracket"),
    ("ignore[weights/fit] --", "capcheck/bare-ignore", "a suppression gives its reason",
     "say why behind the bracket"),
    ("ignore", "capcheck/bare-ignore", "a suppression names its rules",
     "write ignore[RULE] and the reason"),
    ("ignore everything here", "capcheck/bare-ignore", "a suppression names its rules",
     "write ignore[RULE] and the reason"),
    ("file-ignore[ ] why", "capcheck/bare-ignore", "a suppression names its rules",
     "write file-ignore[RULE] and the reason"),
    ("ignore[weights] all of it", "capcheck/bare-ignore",
     "weights is no single rule: a suppression names each", None),
    ("ignore[ALL] all of it", "capcheck/bare-ignore",
     "ALL is no single rule: a suppression names each", None),
    ("ignore[weights/fti] why", "capcheck/unused-ignore", "no rule is named 'weights/fti'",
     "did you mean weights/fit?"),
    ("ignore[one-request] why", "capcheck/unused-ignore", "no rule is named 'one-request'",
     "did you mean kv-cache/one-request?"),
    ("ignore[zzz/qqq] why", "capcheck/unused-ignore", "no rule is named 'zzz/qqq'", None),
    ("ignore[weights/fit] why", "capcheck/unused-ignore",
     "nothing to suppress: weights/fit is not reported", "remove it"),
    ("ingore[weights/fit] why", "capcheck/unused-ignore", "'ingore' suppresses nothing",
     "did you mean ignore or file-ignore?"),
    ("ignore[capcheck/plugin-error] why", "capcheck/unused-ignore",
     "capcheck/plugin-error cannot be suppressed", None),
]  # fmt: skip


@pytest.mark.parametrize(("comment", "rule", "message", "help"), FAULTS)
def test_fault_of_a_suppression(comment: str, rule: str, message: str, help: str | None) -> None:
    (fault,) = decided(f"a: 1\nb: 2  # capcheck: {comment}\n").findings
    assert (fault.rule, fault.message, fault.help) == (rule, message, (help,) if help else ())
    assert fault.severity == "warning"
    text = f"# capcheck: {comment}".rstrip()
    assert fault.place == Place("a.yaml", 2, 7, 2, 7 + len(text))


def test_without_a_reason_nothing_is_suppressed() -> None:
    result = decided("a: 1  # capcheck: ignore[weights/fit]\n", finding("weights/fit"))
    assert rules(result.findings) == ["weights/fit", "capcheck/bare-ignore"]
    assert result.suppressed == ()


def test_one_unused_rule_of_several_is_named() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit, kv-cache/one-request] x\n"
    result = decided(text, finding())
    (fault,) = result.extra
    assert fault.help == ("remove weights/fit",)


def test_what_did_not_run_is_not_unused() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit] x\n"
    assert decided(text, select=("kv-cache",)).extra == ()
    assert decided(text, per_file_ignores=(("a.yaml", ("weights",)),)).extra == ()
    assert decide([], {"a.yaml": text}, Settings(), KNOWN, skipped=["weights/fit"]).extra == ()
    assert len(decide([], {"a.yaml": text}, Settings(), KNOWN, skipped=[ONE]).extra) == 1


def test_where_the_input_is_at_fault_nothing_is_unused() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit] x\n"
    for rule in ("spec/schema", "capcheck/unclaimed"):
        assert decided(text, finding(rule)).extra == ()
        assert len(decided(text, finding(rule, severity="warning")).extra) == 1
        assert len(decided(text, finding(rule, file="b.yaml")).extra) == 1
    fault = Finding("capcheck/plugin-error", "fail", "error", "plugin x", Place("", 0, 0, 0, 0))
    assert decided(text, fault).extra == ()
    assert rules(decided("# capcheck: ignore[zzz/q] x\n", fault).extra) == [
        "capcheck/unused-ignore"
    ]


def test_prose_about_capcheck_is_no_suppression() -> None:
    text = "# capcheck: see the docs[1]\n# capcheck: ignored files are listed\n# capcheck is fine\n"
    assert decided(text).findings == ()


def test_a_suppression_may_follow_other_remarks() -> None:
    text = "a: 1  # noqa # capcheck: ignore[weights/fit]: measured\n"
    (one,) = decided(text, finding("weights/fit")).suppressed
    assert one.suppressed == "measured"


# selection and severities


def test_findings_that_are_not_selected_are_gone() -> None:
    result = decided("", finding(), finding("weights/fit"), select=("weights",))
    assert rules(result.findings) == ["weights/fit"]
    assert result.suppressed == ()


def test_faults_of_comments_can_be_ignored_too() -> None:
    text = "a: 1  # capcheck: ignore[weights/fit] x\n"
    assert decided(text, ignore=("capcheck/unused-ignore",)).findings == ()
    assert decided(text, ignore=("ALL",), select=()).findings == ()
    assert len(decided(text, select=("spec", "weights")).findings) == 1


def test_severities() -> None:
    result = decided(
        "",
        finding(ONE, 1),
        finding(LOAD, 2, severity="warning"),
        finding(LOAD, 3, severity="warning", verdict="at risk"),
        finding("weights/fit", 4),
        severity={ONE: "warning", "kv-cache": "error"},
    )
    assert [one.severity for one in result.findings] == ["warning", "error", "warning", "error"]


def test_a_plugin_error_is_beyond_every_setting() -> None:
    text = "# capcheck: file-ignore[capcheck/plugin-error] hush\n"
    rule = "capcheck/plugin-error"
    fault = Finding(rule, "fail", "error", "plugin x: raised", Place("a.yaml"))
    for ignore in (("ALL",), ("capcheck",), (rule,)):
        result = decided(
            text, fault, ignore=ignore, severity={rule: "warning", "capcheck": "warning"}
        )
        assert fault in result.findings
        assert result.suppressed == ()


def test_findings_are_sorted_and_each_is_given_once() -> None:
    ones = [finding(line=9), finding(file="A.yaml"), finding("weights/fit", 2), finding(LOAD, 2)]
    result = decided("", *ones, *ones)
    assert [(one.place.file, one.place.line, one.rule) for one in result.findings] == [
        ("A.yaml", 1, ONE), ("a.yaml", 2, LOAD), ("a.yaml", 2, "weights/fit"), ("a.yaml", 9, ONE),
    ]  # fmt: skip


# selectors

UNKNOWN = [
    ({"select": ("kv-cach",)}, "--select: no rule is named 'kv-cach'; did you mean kv-cache?"),
    ({"ignore": ("weights/fits",)}, "ignore: no rule is named 'weights/fits';"
     " did you mean weights/fit?"),
    ({"require": ("zzzzz",)}, "require: no rule is named 'zzzzz'"),
    ({"extend_select": ("all",)}, "extend-select: no rule is named 'all'; did you mean ALL?"),
    ({"severity": {"declared-load": "error"}}, "severity: no rule is named 'declared-load';"
     " did you mean kv-cache/declared-load?"),
    ({"per_file_ignores": (("x", ("wieghts",)),)},
     "per-file-ignores: no rule is named 'wieghts'; did you mean weights?"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), UNKNOWN)
def test_selectors_must_name_something(options: dict[str, object], message: str) -> None:
    chosen = Settings(**options, said={"select": "--select"})  # type: ignore[arg-type]
    with pytest.raises(UsageError) as wrong:
        checked(chosen, KNOWN)
    assert str(wrong.value) == message
    with pytest.raises(UsageError):
        decide([], {}, chosen, KNOWN)


def test_every_unknown_selector_is_named_once() -> None:
    with pytest.raises(UsageError) as wrong:
        checked(Settings(select=("a", "b"), ignore=("a", "a")), KNOWN)
    assert len(str(wrong.value).splitlines()) == 3


def test_selectors_come_under_their_present_names() -> None:
    old = "kv-cache/old-name"
    chosen = checked(
        Settings(
            select=(old, "weights"), ignore=(old,), require=(old,), severity={old: "warning"},
            per_file_ignores=(("*", (old, "ALL")),),
        ),
        KNOWN,
    )  # fmt: skip
    assert chosen == Settings(
        select=(LOAD, "weights"), ignore=(LOAD,), require=(LOAD,), severity={LOAD: "warning"},
        per_file_ignores=(("*", (LOAD, "ALL")),),
    )  # fmt: skip


# the core's own rules


def test_notices_are_whole_pages() -> None:
    for id, one in NOTICES.items():
        assert id == one.id
        assert one.concern in ("spec", "capcheck")
        assert one.title[0].islower()
        assert not one.title.endswith(".")
        for text in (one.why, one.fix):
            assert text.endswith(".")
            assert len(text) > 15
            assert "  " not in text


def test_every_rule_id_that_the_core_reports_has_a_page() -> None:
    from pathlib import Path

    import capcheck
    from capcheck.source import PROBLEM_RULES

    used = set(PROBLEM_RULES)
    for file in Path(capcheck.__file__).parent.rglob("*.py"):
        used |= set(re.findall(r'"((?:spec|capcheck)/[a-z-]+)"', file.read_text(encoding="utf-8")))
    used.discard("capcheck/v1")
    assert used - set(NOTICES) == set()


def test_the_gate_is_not_green_by_what_was_not_read() -> None:
    for id in (
        "spec/yaml",
        "spec/unreadable",
        "spec/link",
        "capcheck/unclaimed",
        "capcheck/header",
    ):
        assert NOTICES[id].severity == "error"

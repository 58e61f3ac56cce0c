"""No script raises, hangs or grows without end; what Kubernetes puts in is followed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_tools import at, scalar_at

from capcheck.embedded import kubernetes_replacements, shell_words, whole_text

N = 50_000
HOSTILE = {
    "substitutions": "$(" * N,
    "braces": "${" * N,
    "defaults": "${A:-" * (N // 2),
    "arithmetic": "((" * N,
    "backticks": "`" * N,
    "quotes": "'" * N + '"',
    "quoted substitutions": '"$(' * N,
    "here-documents": "<<A\n" * N,
    "parentheses": "(" * N,
    "keywords": "if " * N,
    "arrays": "A=(" * N,
    "backslashes": "\\" * N,
    "redirections": "2>" * N,
    "cases": "case x in " * (N // 5),
    "doubling": "A=" + "x" * 60 + "\n" + "A=$A$A\n" * 1000 + "echo " + "$A " * 5000,
    "doubling arrays": "A=(a a)\n" + 'A+=("${A[@]}")\n' * 500 + 'echo "${A[@]}"\n' * 50,
    "exports": "".join(f"export A{number}=1\n:\n" for number in range(5000)),
    "nested shells": "sh -c '" * 1000,
    "eval of itself": "E='eval $E'\n" + "eval $E\n" * 200,
    "nested defaults": 'sh -c "' + "${A:-x} " * 10_000 + '"',
    "a large value": "echo " + "$BIG " * 1000,
    "too long": "a " * 500_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_scripts_take_no_time(name: str) -> None:
    script = HOSTILE[name]
    before = time.perf_counter()
    found = shell_words(whole_text(script, "f"), script, {"BIG": "x" * 100_000})
    assert time.perf_counter() - before < 5
    assert sum(len(word.text) for one in found for word in one.words) < 3_000_000


def test_expansion_stops_where_it_grows_too_large() -> None:
    script = HOSTILE["a large value"]
    (command,) = shell_words(whole_text(script, "f"), script, {"BIG": "x" * 100_000})
    assert command.words[1].text == "x" * 100_000
    assert command.words[-1].unresolved == ("BIG",)


PIECES = (
    "$|(|)|{|}|'|\"|`|\\|\n| |;|&|<|>|#|=|A|B=|if |then |fi |do |done |case |in |esac |[[ |]] "
    "|${A:-|${A:+|$B|$C|eval |sh -c |export |A=(|\r|\r\n|\t|é|<<E\n|E\n|exec |!|for x in "
    "|function |f() |${A[@]}|unset |read |declare -x |+=|0|2>|-|@|*|$'|${A:="
)


@given(st.lists(st.sampled_from([*PIECES.split("|"), "|"]), max_size=25).map("".join))
def test_no_script_raises_and_verbatim_words_stand_there(script: str) -> None:
    for command in shell_words(whole_text(script, "f"), script, {"B": "x y", "C": None}):
        assert command.words
        for word in command.words:
            if word.verbatim and word.place.line == word.place.end_line and "\r" not in script:
                assert at(script, word.place) == word.text


@given(st.text(max_size=40), st.text(max_size=10))
def test_no_text_raises(script: str, value: str) -> None:
    shell_words(whole_text(script, "f"), script, {"A": value})


def test_kubernetes_variables_come_before_the_shell() -> None:
    text = "k: serve $(MODEL) --x=$$(nproc) $(SECRET) $(NONE) $${HOME} $HOST\n"
    variables = {"MODEL": "org/m --trust", "SECRET": None, "HOST": "h"}
    scalar = scalar_at(text, "k")
    replacements = kubernetes_replacements(scalar.text, variables)
    (command,) = shell_words(scalar, text, variables, replacements)
    assert [(word.text, at(text, word.place), word.unresolved) for word in command.words[1:]] == [
        ("org/m", "$(MODEL)", ()),
        ("--trust", "$(MODEL)", ()),
        ("--x=$(nproc)", "--x=$$(nproc)", ("$(...)",)),
        ("$(SECRET)", "$(SECRET)", ("SECRET",)),
        ("$(NONE)", "$(NONE)", ("$(...)",)),
        ("${HOME}", "$${HOME}", ("HOME",)),
        ("h", "$HOST", ()),
    ]
    assert [word.verbatim for word in command.words] == [
        True, False, False, False, True, True, False, False,
    ]  # fmt: skip

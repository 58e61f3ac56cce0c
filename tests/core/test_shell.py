"""Commands of shell scripts: words, variables, what is known and what is not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_tools import at, scalar_at

from capcheck.embedded import Command, Word, shell_words, whole_text

ENV: Mapping[str, str | None] = {
    "MODEL": "org/m",
    "OPTS": "--a 1  --b",
    "EMPTY": "",
    "SECRET": None,
}


def commands(script: str, variables: Mapping[str, str | None] = ENV) -> tuple[Command, ...]:
    return shell_words(whole_text(script, "run.sh"), script, variables)


def words(script: str, variables: Mapping[str, str | None] = ENV) -> tuple[Word, ...]:
    (command,) = commands(script, variables)
    return command.words


def texts(script: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a '' \"\" x''y", [["a", "", "", "xy"]]),
        (r"a '\n' "[:-1] + r' "\n\"\$\\" \$x', [["a", r"\n", r"\n" + '"$\\', "$x"]]),
        ("a --j '{\"k\": 1}'", [["a", "--j", '{"k": 1}']]),
        ("a \\\n  b \\\n  c", [["a", "b", "c"]]),
        ("a --x\\\ny", [["a", "--xy"]]),
        ("a \\ \n b", [["a", " "], ["b"]]),
        ("a $'x\\ty\\x41\\101\\''", [["a", "x\tyAA'"]]),
        ('a $"b c"', [["a", "b c"]]),
        ("a b#c # d 'e\nf", [["a", "b#c"], ["f"]]),
        ("a; b && c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a\r\nb\r\n", [["a"], ["b"]]),
        ("exec a b", [["a", "b"]]),
        ("exec > log 2>&1\na", [["a"]]),
        ("a 2>&1 >log <in &>all >>more 3>x b", [["a", "b"]]),
        ("a <<< text b", [["a", "b"]]),
        ("cat <<EOF >f\nb c\nEOF\nd", [["cat"], ["d"]]),
        ("cat <<-'EOF'\n\tb\n\tEOF\nd", [["cat"], ["d"]]),
        ("X=1 Y=2", []),
        ("X=1 a", [["a"]]),
        ("(a; b) && { c; d; }", [["a"], ["b"], ["c"], ["d"]]),
        ("if a; then b; elif c; then d; else e; fi; f", [[x] for x in "abcdef"]),
        ("while a; do b; done\nuntil c\ndo d\ndone", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in p q; do a; done; for ((i=0;i<3;i++)); do b; done", [["a"], ["b"]]),
        ("case $X in p|q) a;; (r) b ;; *) c\nesac\nd", [["a"], ["b"], ["c"], ["d"]]),
        ("f() { a; }\nfunction g { b; }\nc", [["a"], ["b"], ["c"]]),
        ("! a; time b", [["a"], ["b"]]),
        ("[[ a && b ]] && d", [["[[", "a", "b", "]]"], ["d"]]),
        ("", []),
        ("# only\n", []),
    ],
)
def test_words_and_commands(script: str, expected: list[list[str]]) -> None:
    assert texts(script) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a $MODEL ${MODEL}:1", ["org/m", "org/m:1"]),
        ('a "$OPTS" $OPTS', ["--a 1  --b", "--a", "1", "--b"]),
        ("a x$OPTS'y'", ["x--a", "1", "--by"]),
        ('a $EMPTY "$EMPTY" x$EMPTY', ["", "x"]),
        ("a ${MODEL:-x} ${EMPTY:-x} ${EMPTY-x}.", ["org/m", "x", "."]),
        ("a ${NONE:-d e} \"${NONE:-d e}\" ${NONE-'d e'}", ["d", "e", "d e", "d e"]),
        ("a ${NONE:-${ALSO:-$MODEL}}", ["org/m"]),
        ("a ${MODEL:+--m $MODEL} ${EMPTY:+no}.", ["--m", "org/m", "."]),
        ("a ${MODEL:?must} ${MODEL?must}", ["org/m", "org/m"]),
        ("a '$MODEL' \\$MODEL", ["$MODEL", "$MODEL"]),
        ("X='1 2'\na $X \"$X\"", ["1", "2", "1 2"]),
        ("X=$MODEL; Y=$X/$X; a $Y", ["org/m/org/m"]),
        ("X=1; X+=2; a $X", ["12"]),
        ("export X=1 Y='2 3'; a $X \"$Y\"", ["1", "2 3"]),
        ("declare -r X=1; local Y=2; a $X$Y", ["12"]),
        (": ${X:=1 2}\na $X", ["1", "2"]),
        ("X=1 a $X", ["$X"]),
        ("cd /x && X=1 && a $X", ["1"]),
        ("{ X=1; }; a $X", ["1"]),
        ('A=(--p "q r" # note\n  $OPTS\n)\nA+=(s)\na "${A[@]}" ${A[*]}',
         ["--p", "q r", "--a", "1", "--b", "s", "--p", "q r", "--a", "1", "--b", "s"]),
    ],
)  # fmt: skip
def test_known_variables(script: str, expected: list[str]) -> None:
    command = commands(script)[-1]
    assert [word.text for word in command.words[1:]] == expected


@pytest.mark.parametrize(
    ("script", "text", "unresolved"),
    [
        ("a --m=$NONE", "--m=$NONE", ("NONE",)),
        ("a ${SECRET:-default}", "${SECRET:-default}", ("SECRET",)),
        ("a ${NONE:?must}", "${NONE:?must}", ("NONE",)),
        ("a ${NONE:+x}", "${NONE:+x}", ("NONE",)),
        ("a x$(cat 'f)' \")\")y", "x$(cat 'f)' \")\")y", ("$(...)",)),
        ("a `date \\` x`", "`date \\` x`", ("$(...)",)),
        ("a $((2 * (3 + 1)))", "$((2 * (3 + 1)))", ("$((...))",)),
        ("a ${MODEL##*/}", "${MODEL##*/}", ("${MODEL##*/}",)),
        ("a ${#MODEL}", "${#MODEL}", ("${#MODEL}",)),
        ('a "${EP[@]}"', "${EP[@]}", ("EP[@]",)),
        ('a "x${EP[@]}"', "x${EP[@]}", ("EP[@]",)),
        ('a "$@"', "$@", ("@",)),
        ("a $1$?", "$1$?", ("1", "?")),
        ("a <(b c)", "<(b c)", ("$(...)",)),
        ("a 'b c", "b c", ("'",)),
        ('a "b $MODEL', "b org/m", ('"',)),
        ("a ${MODEL:-b c", "${MODEL:-b c", ("${MODEL:-b c",)),
        ("X=$NONE; a $X", "$NONE", ("NONE",)),
        ("X+=1; a $X", "$X1", ("X",)),
        ("if t; then X=1; fi; a $X", "$X", ("X",)),
        ("if t; then X=1; else a $X; fi", "$X", ("X",)),
        ("for X in 1 2; do a $X; done", "$X", ("X",)),
        ("while t; do Y=1; a $Y; done", "$Y", ("Y",)),
        ("case p in q) X=1;; esac; a $X", "$X", ("X",)),
        ("f() { X=1; }; a $X", "$X", ("X",)),
        ("(X=1); a $X", "$X", ("X",)),
        ("t || X=1; a $X", "$X", ("X",)),
        ("[ -z x ] && X=1; a $X", "$X", ("X",)),
        ("[[ x ]] && { X=1; Y=2; }; a $Y", "$Y", ("Y",)),
        ("! t && X=1; a $X", "$X", ("X",)),
        ("read X; a $X", "$X", ("X",)),
        ("X=1; unset X; a $X", "$X", ("X",)),
        ("A=(x); if t; then A+=(y); fi; a ${A[@]}", "${A[@]}", ("A[@]",)),
        ("A=(x); A[1]=y; a ${A[@]}", "${A[@]}", ("A[@]",)),
        ("A=(x); a ${A:-z}", "${A:-z}", ("A",)),
    ],
)  # fmt: skip
def test_what_is_not_known_stays_as_it_is_written(
    script: str, text: str, unresolved: tuple[str, ...]
) -> None:
    command = next(one for one in commands(script) if one.words[0].text == "a")
    word = command.words[-1]
    assert (word.text, word.unresolved) == (text, unresolved)


def test_values_are_known_inside_their_branch() -> None:
    script = "if t; then X=1; a $X; fi"
    assert commands(script)[-1].words[1].text == "1"


def test_quoted_and_defaulted() -> None:
    plain, quoted, default, later = words("L=${LEN:-32k}; a b 'c'd ${P:-8000} --l=$L")[1:]
    assert (plain.quoted, plain.defaulted) == (False, ())
    assert quoted.quoted
    assert (default.text, default.defaulted) == ("8000", ("P",))
    assert (later.text, later.defaulted) == ("--l=32k", ("LEN",))


def test_conditional_commands() -> None:
    script = (
        "a; if b; then c; fi; d || e; f && g; [ x ] && h; for x in y; do i; done; k() { l; }; m"
    )
    assert [one.words[0].text for one in commands(script) if one.conditional] == list("bcehil")


def test_environment() -> None:
    script = "A=1; export B=2 A; D=4 b; if t; then export B=3; fi; c\nenv E=5 d"
    first, _, second, third = commands(script, {"OLD": "0"})
    assert [(name, word.text) for name, word in first.environment] == [
        ("B", "2"),
        ("A", "1"),
        ("D", "4"),
    ]
    assert [(name, word.text, word.unresolved) for name, word in second.environment] == [
        ("B", "$B", ("B",)),
        ("A", "1", ()),
    ]
    assert [word.text for word in third.words] == ["env", "E=5", "d"]
    (command,) = commands("OLD=1; a", {"OLD": "0"})  # it was exported before
    assert [(name, word.text) for name, word in command.environment] == [("OLD", "1")]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("bash -c 'a $MODEL; b'", [["a", "org/m"], ["b"]]),
        ("/bin/sh -lc \"a '$OPTS'\"", [["a", "--a 1  --b"]]),
        ("bash -o pipefail -ec 'a' x", [["a"]]),
        ("sh -c \"sh -c 'a b'\"", [["a", "b"]]),
        ("eval \"a 'b c'\" d", [["a", "b c", "d"]]),
        ("C='a --b c'; eval $C; $C", [["a", "--b", "c"], ["a", "--b", "c"]]),
        ('bash -c "$SECRET"', [["bash", "-c", "$SECRET"]]),
        ("bash run.sh -c x", [["bash", "run.sh", "-c", "x"]]),
        ("bash", [["bash"]]),
        ("X=1; bash -c 'a $X'", [["a", "$X"]]),
        ("export X=1; bash -c 'a $X'", [["a", "1"]]),
        ("X=1 bash -c 'a $X'", [["a", "1"]]),
    ],
)
def test_scripts_inside_scripts(script: str, expected: list[list[str]]) -> None:
    assert texts(script) == expected


def test_defaults_inside_nested_scripts_are_named() -> None:
    found = words('sh -c "a ${NONE:-x} y"')
    assert [(word.text, word.defaulted) for word in found] == [
        ("a", ()),
        ("x", ("NONE",)),
        ("y", ()),
    ]


PIECES = (
    """a|b c|--x=1| |  |'q r'|"d e"|"$V"|$V|${V}|${U:-d f}|"${U:-g h}"|${V:+alt x}|\\ |\\$V|'\\n'"""
    """|"\\n\\""| \\\n |"x\\\ny"|''|""|$E|"$E"|${E:-def}|${E-def}|${U:='as g'}|$W|#c| #com ment'"""
    """|é|*=|~x|%|=|${W:-x}|\\#|\\'|"a#b"|x$V'y'$V |"$W"|${U-'a  b'}|"${U-'a'}\""""
)
FRAMES = (
    ("", ""),
    ("X=1 ", ""),
    ("exec ", ""),
    ("true && ", ""),
    ("W='1  2'\n", ""),
    ("if true; then ", "\nfi"),
    ("( ", "\n)"),
)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell to compare with")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES.split("|")), min_size=1, max_size=7), st.sampled_from(FRAMES)
)
def test_a_shell_makes_the_same_words(pieces: list[str], frame: tuple[str, str]) -> None:
    script = f"{frame[0]}printf '%s\\0' {''.join(pieces)}{frame[1]}\n"
    env = {"V": "v1 v2", "E": "", "W": " lead trail ", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(["sh", "-fc", script], env=env, capture_output=True, check=False)
    if ran.returncode:
        return
    expected = ran.stdout.decode().split("\0")[:-1]
    found = next(one for one in commands(script, env) if one.words[0].text == "printf")
    if any(word.unresolved for word in found.words):
        return  # $E and x beside it are a variable that nobody set
    made = [word.text for word in found.words[2:]]
    assert made == expected or (not made and expected == [""])


def test_places_in_every_kind_of_scalar() -> None:
    line = 'exec serve "org/m" --len 32k'
    for text in (
        f"k: {line}\n",
        f"k: '{line}'\n",
        'k: "exec serve \\"org/m\\" \\\n  --len 32k"\n',
        "k: |\n  cd /x\n  exec serve 'org/m' \\\n    --len 32k\n",
        "k: >-\n  exec serve 'org/m'\n  --len 32k\n",
        "k:\n  exec serve 'org/m'\n  --len 32k\n",
    ):
        command = shell_words(scalar_at(text, "k"), text, {})[-1]
        assert [word.text for word in command.words] == ["serve", "org/m", "--len", "32k"]
        serve, model, _, length = command.words
        assert all(word.place.exact for word in command.words)
        assert at(text, serve.place) == "serve" and at(text, length.place) == "32k"
        assert at(text, model.place).strip("'\"\\") == "org/m"
        assert at(text, command.place).startswith("serve")
        assert at(text, length.part(0, 2)) == "32"
        assert model.part(0, 3) == model.place


def test_places_of_expanded_words() -> None:
    script = 'A=(--p q)\nserve $OPTS ${P:-80 90} "${A[@]}" x=$MODEL'
    found = [(word.text, at(script, word.place)) for word in commands(script)[-1].words]
    assert found[1:4] == [("--a", "$OPTS"), ("1", "$OPTS"), ("--b", "$OPTS")]
    assert found[4:6] == [("80", "80"), ("90", "90")]
    assert found[6:] == [("--p", "--p"), ("q", "q"), ("x=org/m", "x=$MODEL")]


def test_places_inside_nested_scripts() -> None:
    text = 'k: "bash -c \'serve \\"x\\" --len 32k\'"\n'
    (command,) = shell_words(scalar_at(text, "k"), text, {})
    assert [at(text, word.place) for word in command.words] == ["serve", '\\"x\\"', "--len", "32k"]

"""Files by the byte, and what keeps hostile ones from costing much."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from capcheck.source import Limits, read_documents, read_file, to_plain

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
DEEP = 100_000


def test_alias_bomb() -> None:
    before = time.perf_counter()
    documents = read_documents(BOMB, "f")
    assert time.perf_counter() - before < 0.5
    assert [problem.rule for problem in documents.problems] == ["spec/alias"]
    assert "100,000" in documents.problems[0].message
    assert documents.roots == ()


def test_aliases_that_nest_deeper_than_the_cap() -> None:
    lines = ["a0: &a0 " + "[" * 60 + "]" * 60]
    lines += [f"a{n}: &a{n} " + "[" * 60 + f"*a{n - 1}" + "]" * 60 for n in range(1, 40)]
    documents = read_documents("\n".join(lines), "f")
    assert [problem.rule for problem in documents.problems] == ["spec/too-large"]


def test_a_long_chain_of_merges_is_not_deep() -> None:
    lines = ["m0: &m0 {k0: 1}"]
    lines += [f"m{n}: &m{n} {{<<: *m{n - 1}, k{n}: 1}}" for n in range(1, 150)]
    (root,) = read_documents("\n".join(lines), "f").roots
    assert len(to_plain(root)["m149"]) == 150


@pytest.mark.parametrize(
    "text",
    [
        "[" * DEEP,
        "[" * DEEP + "]" * DEEP,
        "{ " * DEEP,
        "- " * DEEP,
        "? " * DEEP,
        "{a: " * DEEP,
        '{"a":' * DEEP,
        "[" * 101 + "]" * 101,
    ],
)
@pytest.mark.parametrize("file", ["f.yaml", "f.json"])
def test_deep_nesting(text: str, file: str) -> None:
    before = time.perf_counter()
    documents = read_documents(text, file)
    assert time.perf_counter() - before < 2
    assert documents.roots == () and len(documents.problems) == 1
    if file == "f.yaml":
        assert documents.problems[0].rule == "spec/too-large"


def test_nesting_up_to_the_cap_is_read() -> None:
    (root,) = read_documents("[" * 100 + "]" * 100, "f").roots
    assert str(to_plain(root)) == "[" * 100 + "]" * 100


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_line_of_ten_megabytes(quote: str) -> None:
    before = time.perf_counter()
    documents = read_documents(f"a: {quote}{'x' * 10_000_000}{quote}\nb: 1\n", "f")
    assert time.perf_counter() - before < 2
    (root,) = documents.roots
    assert documents.problems == () and root.place.end_line == 2


def test_a_list_of_ten_megabytes() -> None:
    before = time.perf_counter()
    documents = read_documents("[" + "1," * 5_000_000 + "]", "f")
    assert time.perf_counter() - before < 5
    assert [problem.rule for problem in documents.problems] == ["spec/too-large"]


def test_every_limit_of_values_and_problems() -> None:
    limits = Limits(nodes=5, all_nodes=12, problems=3)
    documents = read_documents(
        "[1,2]\n---\n[1,2,3,4,5,6]\n---\n[1,2,3]\n---\n[1]", "f", limits=limits
    )
    assert [problem.message for problem in documents.problems] == [
        "the document has more than 5 values",
        "the file has more than 12 values",
    ]
    assert [to_plain(root) for root in documents.roots] == [[1, 2]]
    documents = read_documents("a: 1\n" * 9, "f", limits=Limits(problems=3))
    assert len(documents.problems) == 4 and documents.roots == ()
    assert documents.problems[-1].message.startswith("more than 3 problems")


def test_many_bad_documents_take_no_time() -> None:
    before = time.perf_counter()
    documents = read_documents("---\n[\n" * 200_000, "f")
    assert time.perf_counter() - before < 3
    assert len(documents.problems) == 101


@pytest.mark.parametrize(
    "raw",
    [
        "é: 1".encode(),
        b"\xef\xbb\xbf" + "é: 1".encode(),
        "é: 1".encode("utf-16"),
        "\ufeffé: 1".encode("utf-16-be"),
        "é: 1".encode("utf-32"),
    ],
)
def test_encodings(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)
    documents = read_file(path, "shown.yaml")
    assert documents.problems == () and documents.text == "é: 1"
    (root,) = documents.roots
    assert to_plain(root) == {"é": 1}
    assert root.place[:3] == ("shown.yaml", 1, 1)


@pytest.mark.parametrize(
    ("raw", "rule", "words", "line", "column"),
    [
        (b"a: 1\nb: \xe9\n", "spec/encoding", "byte 0xe9 is not UTF-8", 2, 4),
        (b"\xff\xfea", "spec/encoding", "is not UTF-16", 1, 1),
        (b"\x7fELF\x00\x00\xff", "spec/encoding", "binary", 1, 1),
        (b"a: 1\nb: \x00\n", "spec/encoding", "NUL", 2, 4),
    ],
)
def test_what_is_no_text(
    tmp_path: Path, raw: bytes, rule: str, words: str, line: int, column: int
) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)
    (problem,) = read_file(path, "f.yaml").problems
    assert problem.rule == rule and words in problem.message
    assert problem.place[:3] == ("f.yaml", line, column)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"")
    assert read_file(path, "f.yaml") == ((), (), "")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, words in [
        (tmp_path, "directory"),
        (tmp_path / "none", "No such file"),
        (fifo, "regular file"),
        (Path("a\0b"), "cannot be read"),
    ]:
        (problem,) = read_file(path, "f").problems
        assert problem.rule == "spec/unreadable" and words in problem.message


def test_a_file_over_the_cap(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: " + b"x" * 98)
    (problem,) = read_file(path, "f", limits=Limits(bytes=100)).problems
    assert problem.rule == "spec/too-large" and "100 bytes" in problem.message
    assert read_file(path, "f", limits=Limits(bytes=101)).problems == ()

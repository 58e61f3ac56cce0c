"""The generator itself: a page that is out of date is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from docpages import blocks, commands, fields, shell

import docs

SESSION = "```console\n$ printf 'one\\ntwo\\n'\nold\n$ false\n$ echo $?\n```\n"


def test_a_session_is_replaced_by_what_it_prints() -> None:
    page = shell.replayed(f"before\n\n{SESSION}\nafter\n", Path("/nonexistent"))
    assert page == (
        "before\n\n```console\n$ printf 'one\\ntwo\\n'\none\ntwo\n$ false\n$ echo $?\n1\n```\n"
        "\nafter\n"
    )


def test_both_streams_are_shown_and_the_folder_is_not() -> None:
    page = '```yaml title="a/b.txt"\nx\n```\n\n```console\n$ cat a/b.txt; echo $PWD/a >&2\n```\n'
    assert shell.replayed(page, Path("/nonexistent")).endswith(
        "$ cat a/b.txt; echo $PWD/a >&2\nx\na\n```\n"
    )


def test_files_of_one_page_do_not_reach_another() -> None:
    page = '```sh title="only-here"\n```\n\n```console\n$ ls\n```\n'
    assert "only-here" in shell.replayed(page, Path("/nonexistent"))
    assert (
        "only-here"
        not in shell.replayed("```console\n$ ls\n```\n", Path("/nonexistent")).split("$ ls")[1]
    )


def test_the_environment_does_not_change_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPCHECK_STRICT", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    asked = "env | grep -c 'CAPCHECK\\|FORCE_COLOR\\|UNBUFFERED'"
    page = shell.replayed(f"```console\n$ {asked}\n```\n", Path("/nonexistent"))
    assert page.endswith("\n0\n```\n")


def test_a_crash_is_no_example() -> None:
    page = "```console\n$ python -c 'raise ValueError'\n```\n"
    with pytest.raises(RuntimeError, match="ValueError"):
        shell.replayed(page, Path("/nonexistent"))


def test_a_shell_that_gives_up_is_no_example() -> None:
    with pytest.raises(RuntimeError, match="gave up"):
        shell.replayed("```console\n$ exit 3\n$ echo never\n```\n", Path("/nonexistent"))


def test_a_command_may_have_several_lines() -> None:
    session = "$ echo a \\\n> b\na b\n"
    assert shell.commands(session) == ["echo a \\\nb"]


def test_a_block_is_filled_and_nothing_else() -> None:
    page = "a\n\n<!-- generated: one -->\nold\n<!-- end -->\n\nb\n"
    filled = blocks.filled(page, {"one": lambda: "new\n"})
    assert filled == "a\n\n<!-- generated: one -->\n\nnew\n\n<!-- end -->\n\nb\n"
    assert blocks.filled(filled, {"one": lambda: "new"}) == filled
    with pytest.raises(KeyError):
        blocks.filled(page, {})


def test_cells_hold_no_bars() -> None:
    assert blocks.table(("a",), [("x|y\nz",)]) == "| a |\n| --- |\n| x\\|y z |"


def test_a_stale_page_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "rule_page_texts", lambda: {docs.RULES / "new.md": "new\n"})
    (tmp_path / "README.md").write_text(SESSION, encoding="utf-8")
    (tmp_path / docs.RULES).mkdir(parents=True)
    (tmp_path / docs.RULES / "gone.md").write_text("gone\n", encoding="utf-8")
    found = docs.stale(tmp_path)
    assert set(found) == {Path("README.md"), docs.RULES / "new.md", docs.RULES / "gone.md"}
    assert found[docs.RULES / "gone.md"] is None
    monkeypatch.setattr(docs, "PROJECT", tmp_path)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    assert not (tmp_path / docs.RULES / "gone.md").exists()


SCHEMA = {
    "type": "object",
    "properties": {
        "size": {
            "type": ["number", "string"],
            "x-measure": "bytes",
            "minimum": 0,
            "description": "How big.",
            "examples": ["16GiB"],
        },
        "kind": {"enum": ["a", "b"], "default": "a"},
        "inner": {
            "type": "object",
            "properties": {"low": {"type": "number", "description": "The least."}},
        },
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "examples": ["x"]}},
            },
        },
    },
}


def test_fields_say_what_they_take() -> None:
    text = fields.FieldList(SCHEMA).markdown()
    assert "### `size`\n\nTakes a size such as 24GB, 24GiB or 24Gi; at least 0.\n" in text
    assert "Example: `size: 16GiB`" in text
    assert "### `kind`\n\nTakes `a` or `b`; default `a`." in text
    assert "| `low` | a number | The least. |" in text
    assert "### `runs[].name`" in text


def test_examples_keep_their_meaning_in_yaml() -> None:
    import yaml

    for value in (
        "0.11.0",
        "main",
        "a: b",
        "30%",
        "4/s",
        ["x", 1],
        {"p": "1.5s"},
        True,
        "true",
        "",
    ):
        assert yaml.safe_load(fields.inline(value)) == value


def test_the_command_line_is_listed_whole() -> None:
    from capcheck.arguments import VERBS, parser

    text = commands.markdown()
    for verb in VERBS:
        assert f"### `capcheck {verb}`" in text
    for verb in commands.verbs(parser()).values():
        for name, _ in commands.rows(verb):
            assert blocks.cell(name) in text

"""Which files a run reads: roots, walks, links, and paths that are no files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from core_fakes import write_tree

from capcheck import files
from capcheck.files import Given, collect, inside, root_of, shown, walk


def names(folder: Path, *exclude: str) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in walk(folder, folder, exclude)]


def given(*paths: Path, root: Path) -> list[str]:
    found, _ = collect(paths, root)
    return [one.path.relative_to(root).as_posix() for one in found]


# roots


@pytest.mark.parametrize(
    ("marker", "text"),
    [("capcheck.toml", ""), (".git", ""), (".git/HEAD", ""),
     ("pyproject.toml", "[tool.capcheck]\n"), ("pyproject.toml", "[tool.capcheck.margins]\n")],
)  # fmt: skip
def test_the_nearest_marker_above_is_the_root(tmp_path: Path, marker: str, text: str) -> None:
    write_tree(tmp_path, {marker: text, "a/b/spec.yaml": ""})
    assert root_of(tmp_path / "a/b/spec.yaml") == tmp_path
    assert root_of(tmp_path / "a/b") == tmp_path


def test_without_a_marker_the_given_folder_is_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, {"pyproject.toml": "[tool.other]\n", "a/spec.yaml": ""})
    assert root_of(tmp_path / "a") == tmp_path / "a"
    assert root_of(tmp_path / "a/spec.yaml") == tmp_path / "a"
    assert root_of(tmp_path / "a/missing.yaml") == tmp_path / "a"


def test_a_nearer_marker_wins(tmp_path: Path) -> None:
    write_tree(tmp_path, {".git/HEAD": "", "a/capcheck.toml": "", "a/b/spec.yaml": ""})
    assert root_of(tmp_path / "a/b") == tmp_path / "a"


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_impossible_paths_have_a_root_and_are_missing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "\0" not in name:
        assert root_of(Path(name)) == tmp_path
    found, missing = collect([Path(name)], tmp_path)
    assert found == []
    assert len(missing) == 1
    assert missing[0].why


# walking


def test_a_walk_takes_yaml_and_json_in_a_stable_order(tmp_path: Path) -> None:
    write_tree(tmp_path, dict.fromkeys((
        "b.yaml", "a.YML", "c.json", "d.txt", "e", "sub/f.yml", ".hidden/g.yaml",
        ".git/h.yaml", "node_modules/i.yaml", ".venv/j.yaml", "x/.terraform/k.yaml",
    ), ""))  # fmt: skip
    assert names(tmp_path) == ["a.YML", "b.yaml", "c.json", ".hidden/g.yaml", "sub/f.yml"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("b.yaml", ["a.yaml", "sub/c.yaml"]),
        ("sub", ["a.yaml", "b.yaml"]),
        ("sub/*", ["a.yaml", "b.yaml"]),
        ("**/c.yaml", ["a.yaml", "b.yaml"]),
        ("*.yaml", []),
    ],
)
def test_excluded_files_are_not_walked(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    write_tree(tmp_path, {"a.yaml": "", "b.yaml": "", "sub/c.yaml": ""})
    assert names(tmp_path, pattern) == expected


def test_an_excluded_file_that_is_named_is_read(tmp_path: Path) -> None:
    (path,) = write_tree(tmp_path, {"a.yaml": ""})
    found, _ = collect([path], tmp_path, ["*.yaml"])
    assert found == [Given(path, explicit=True)]


def test_linked_folders_are_not_walked(tmp_path: Path) -> None:
    write_tree(tmp_path, {"real/a.yaml": "", "other/b.yaml": ""})
    (tmp_path / "real/link").symlink_to(tmp_path / "other")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    assert names(tmp_path / "real") == ["a.yaml"]


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"ok/a.yaml": "", "locked/b.yaml": ""})
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found, missing = collect([tmp_path], tmp_path)
    assert [one.path.name for one in found] == ["a.yaml"]
    assert [(one.path.name, one.why) for one in missing] == [("locked", "Permission denied")]


def test_huge_trees_are_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 10)
    write_tree(tmp_path, {f"{number:02}.yaml": "" for number in range(30)})
    found, missing = collect([tmp_path], tmp_path)
    assert len(found) == 11
    assert missing == [files.Missing(tmp_path, "more than 10 files")]


# given paths


def test_each_file_once_and_naming_it_counts(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.yaml": "", "b.yaml": ""})
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    for paths in ([tmp_path, tmp_path / "a.yaml"], [tmp_path / "a.yaml", tmp_path]):
        found, _ = collect(paths, tmp_path)
        assert [(one.path.name, one.explicit) for one in found] == [
            ("a.yaml", True), ("b.yaml", False),
        ]  # fmt: skip


def test_any_file_may_be_named(tmp_path: Path) -> None:
    paths = write_tree(tmp_path, {"notes.txt": "", "Chartfile": ""})
    assert given(*paths, root=tmp_path) == ["notes.txt", "Chartfile"]


def test_what_is_no_file_is_missing_with_a_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    paths = [tmp_path / f"{name}.yaml" for name in ("pipe", "dangling", "loop", "missing")]
    found, missing = collect(paths, tmp_path)
    assert found == []
    assert [one.why.partition(":")[0] for one in missing[:2]] == [
        "neither a regular file nor a folder", "a link that leads nowhere",
    ]  # fmt: skip
    assert missing[3].why == "no such file or folder"
    assert len(missing) == 4


def test_a_folder_that_is_named_like_a_file_is_walked(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x.yaml/a.yaml": ""})
    assert given(tmp_path / "x.yaml", root=tmp_path) == ["x.yaml/a.yaml"]
    assert given(tmp_path, root=tmp_path) == ["x.yaml/a.yaml"]


# below the root


def test_links_are_judged_by_where_they_lead(tmp_path: Path) -> None:
    write_tree(tmp_path, {"root/a.yaml": "", "outside.yaml": ""})
    root = tmp_path / "root"
    (root / "out.yaml").symlink_to("../outside.yaml")
    (root / "in.yaml").symlink_to("a.yaml")
    assert inside(root / "a.yaml", root)
    assert inside(root / "in.yaml", root)
    assert not inside(root / "out.yaml", root)
    assert not inside(root / "../outside.yaml", root)
    assert not inside(Path("/etc/passwd"), root)
    assert not inside(root / "a\0b", root)


def test_names_are_relative_to_the_root(tmp_path: Path) -> None:
    write_tree(tmp_path, {"root/sub/a.yaml": "", "b.yaml": ""})
    root = tmp_path / "root"
    assert shown(root / "sub/a.yaml", root) == "sub/a.yaml"
    assert shown(root / "sub/../sub/a.yaml", root) == "sub/a.yaml"
    assert shown(tmp_path / "b.yaml", root) == (tmp_path / "b.yaml").as_posix()
    (root / "out.yaml").symlink_to("../b.yaml")
    assert shown(root / "out.yaml", root) == "out.yaml"

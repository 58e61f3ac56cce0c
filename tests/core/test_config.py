"""Configuration files, environment and command line into settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck import schemas_home
from capcheck.config import (
    Config,
    ConfigError,
    Settings,
    UsageError,
    load,
    parse_assumption,
    read_config,
    settings,
)
from capcheck.config_file import line_of
from capcheck.selection import INPUT_CONCERNS, matches, selected, weight

ASSUMABLE = ("model", "accelerator", "count", "engine-version")

EVERYTHING = """\
select = ["kv-cache", "weights/fit"]
extend-select = ["spec"]
ignore = ["kv-cache/full-batch"]
require = ["weights/fit"]
strict = true
plugins = ["acme_nics_that_nobody_has"]
no-plugins = ["capcheck_tgi"]
format = "concise"
exclude = ["charts/**"]

[per-file-ignores]
"legacy/*.yaml" = ["options/removed"]

[severity]
"kv-cache/context-unset" = "error"

[assume]
accelerator = "nvidia/l4"
count = 2

[catalogues]
accelerator = ["own/parts.yaml", "more.jsonl"]
model = "models.jsonl"

[margins]
safety-margin = 1.2
activation-share = 0.3
device-gib = 94
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(folder: Path, text: str, name: str = "capcheck.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def settings_of(folder: Path, text: str, **options: Any) -> Settings:
    write(folder, text)
    return settings(load(folder), {}, options, assumable=ASSUMABLE)


def fault_of(folder: Path, text: str, name: str = "capcheck.toml") -> str:
    with pytest.raises(ConfigError) as wrong:
        read_config(write(folder, text, name))
    return str(wrong.value).replace(str(folder / name), name)


# finding and reading


def test_everything_is_read(tree: Path) -> None:
    found = settings_of(tree, EVERYTHING)
    assert found._replace(said={}) == Settings(
        select=("kv-cache", "weights/fit"),
        extend_select=("spec",),
        ignore=("kv-cache/full-batch",),
        per_file_ignores=(("legacy/*.yaml", ("options/removed",)),),
        severity={"kv-cache/context-unset": "error"},
        require=("weights/fit",),
        strict=True,
        assume={"accelerator": "nvidia/l4", "count": "2"},
        plugins=("acme_nics_that_nobody_has",),
        no_plugins=("capcheck_tgi",),
        shelves=(
            ("accelerator", tree / "own/parts.yaml", "capcheck.toml", 2),
            ("accelerator", tree / "more.jsonl", "capcheck.toml", 2),
            ("model", tree / "models.jsonl", "capcheck.toml", 2),
        ),
        format="concise",
        exclude=("charts/**",),
        safety_margin=1.2,
        activation_share=0.3,
        device_gib=94.0,
    )


def test_defaults_are_those_of_the_schema() -> None:
    schema = schemas_home.read_schema("config")["properties"]
    have = Settings()
    for key, part in schema.items():
        if key in ("margins", "catalogues", "per-file-ignores"):
            continue
        default = part["default"]
        wanted = tuple(default) if isinstance(default, list) else default
        assert getattr(have, key.replace("-", "_")) == wanted, key
    for key, part in schema["margins"]["properties"].items():
        assert getattr(have, key.replace("-", "_")) == part["default"], key


def test_every_key_of_the_schema_reaches_the_settings(tree: Path) -> None:
    config = read_config(write(tree, EVERYTHING))
    assert config is not None
    assert set(config.values) == set(schemas_home.read_schema("config")["properties"])


def test_project_file_is_read_when_it_has_our_table(tree: Path) -> None:
    write(tree, '[tool.capcheck]\nformat = "json"\n', "pyproject.toml")
    assert settings(load(tree / "specs" / "a.yaml")).format == "json"


def test_project_file_without_our_table_is_none(tree: Path) -> None:
    file = write(tree, '[project]\nname = "capcheck-user"\n', "pyproject.toml")
    assert load(tree) is None
    assert read_config(file) is None


def test_own_file_wins_over_the_project_file(tree: Path) -> None:
    write(tree, '[tool.capcheck]\nformat = "json"\n', "pyproject.toml")
    assert settings_of(tree, 'format = "concise"\n').format == "concise"


def test_nearest_configuration_counts_and_a_repository_ends_the_search(tree: Path) -> None:
    write(tree, 'format = "json"\n')
    write(tree / "inner", 'format = "concise"\n')
    assert settings(load(tree / "inner")).format == "concise"
    (tree / "other" / ".git").mkdir(parents=True)
    assert load(tree / "other") is None


def test_without_a_configuration_nothing_heavy_is_imported(tree: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from capcheck.config import load, settings;"
        f"settings(load(Path({str(tree)!r})), {{}}, {{}});"
        "print(sorted({'jsonschema', 'tomllib', 'yaml', 'difflib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FAULTS = [
    ('selct = ["ALL"]\n', "capcheck.toml:1: unknown key 'selct'; did you mean select?"),
    ("strict = 1\n", "capcheck.toml:1: strict is 1: expected true or false"),
    ('select = "ALL"\n', "capcheck.toml:1: select is 'ALL': expected a list"),
    ("\n[margins]\nsafety-margin = 0.5\n",
     "capcheck.toml:3: margins.safety-margin is 0.5: expected at least 1"),
    ("[margins]\nsafty-margin = 2\n",
     "capcheck.toml:2: unknown key 'safty-margin' in margins; did you mean safety-margin?"),
    ("safety-margin = 2\n",
     "capcheck.toml:1: unknown key 'safety-margin'; did you mean margins.safety-margin?"),
    ('[severity]\n"kv-cache/x" = "off"\n',
     "capcheck.toml:2: severity.kv-cache/x is 'off': expected error or warning;"
     " to switch a rule off, name it in `ignore`"),
    ('[severity]\na = "eror"\n', "capcheck.toml:2: severity.a is 'eror': expected error or warning;"
     " did you mean error?; to switch a rule off, name it in `ignore`"),
    ('[per-file-ignores]\n"a.yaml" = "ALL"\n',
     "capcheck.toml:2: per-file-ignores.a.yaml is 'ALL': expected a list"),
    ("[assume]\ncount = [2]\n",
     "capcheck.toml:2: assume.count is a list: expected text, a number or true or false"),
    ('catalogues = ["a.yaml"]\n', "capcheck.toml:1: catalogues is a list: expected a mapping;"
     " write catalogues = {accelerator = FILE}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_fault_is_named_at_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert fault_of(tmp_path, text) == message


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    lines = fault_of(tmp_path, "bogus = 1\nstrict = 2\n").splitlines()
    assert len(lines) == 2
    assert {line.split(":")[1] for line in lines} == {"1", "2"}


def test_fault_in_a_project_file_has_its_line(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.capcheck]\nformat = 3\n'
    assert fault_of(tmp_path, text, "pyproject.toml") == (
        "pyproject.toml:5: format is 3: expected text"
    )
    assert fault_of(tmp_path, "[tool]\ncapcheck = 3\n", "pyproject.toml") == (
        "pyproject.toml:2: tool.capcheck is not a table"
    )


def test_broken_files_are_faults(tmp_path: Path) -> None:
    assert "not valid TOML" in fault_of(tmp_path, "a = \n")
    (tmp_path / "capcheck.toml").write_bytes(b"a = '\xff'\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(tmp_path / "capcheck.toml")
    with pytest.raises(ConfigError, match="No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "capcheck.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger"):
        read_config(tmp_path / "capcheck.toml")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "capcheck.toml").write_bytes(b'\xef\xbb\xbfformat = "json"\n')
    found = read_config(tmp_path / "capcheck.toml")
    assert found is not None
    assert found.values == {"format": "json"}


def test_line_of_finds_tables_dotted_and_quoted_keys() -> None:
    text = "a.b = 1\n[ t . \"u v\" ]\n'k' = 2\n[[many]]\nx = 1\n"
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("t", "u v")) == 2
    assert line_of(text, ("t", "u v", "k", "deeper")) == 3
    assert line_of(text, ("many", "x")) == 5
    assert line_of(text, ("none",)) == 0


@given(st.text(max_size=200))
def test_line_of_never_fails(text: str) -> None:
    assert 0 <= line_of(text, ("a", "b")) <= len(text) + 1


# layers


def test_command_line_over_environment_over_file(tree: Path) -> None:
    write(tree, 'format = "json"\nselect = ["a"]\nignore = ["b"]\nstrict = true\n')
    environment = {"CAPCHECK_FORMAT": "concise", "CAPCHECK_SELECT": "c, d/e,", "OTHER": "1"}
    found = settings(load(tree), environment, {"select": ["f"], "ignore": None})
    assert (found.format, found.select, found.ignore, found.strict) == (
        "concise", ("f",), ("b",), True,
    )  # fmt: skip
    assert found.said["format"] == "CAPCHECK_FORMAT"
    assert found.said["select"] == "--select"
    assert found.said["ignore"] == "capcheck.toml: ignore"
    assert settings(None, environment).select == ("c", "d/e")


@pytest.mark.parametrize(
    ("text", "strict"), [("1", True), ("Yes", True), ("0", False), ("", False), ("off", False)]
)
def test_a_flag_in_the_environment(text: str, strict: bool) -> None:
    assert settings(None, {"CAPCHECK_STRICT": text}).strict is strict


def test_a_flag_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="CAPCHECK_STRICT is 'maybe': expected true or false"):
        settings(None, {"CAPCHECK_STRICT": "maybe"})


def test_assumptions_merge_by_name(tree: Path) -> None:
    text = "[assume]\ncount = 2\nengine-version = true\n"
    found = settings_of(tree, text, assume={"count": "4", "model": "x"})
    assert found.assume == {"count": "4", "model": "x", "engine-version": "true"}


def test_unknown_assumptions_are_refused(tree: Path) -> None:
    with pytest.raises(UsageError) as wrong:
        settings_of(tree, '[assume]\nacelerator = "x"\n')
    assert str(wrong.value) == (
        "capcheck.toml: assume: 'acelerator' cannot be assumed; did you mean accelerator?"
    )
    with pytest.raises(UsageError, match="--assume: 'zzz' cannot be assumed; known are model"):
        settings(None, {}, {"assume": {"zzz": "1"}}, assumable=ASSUMABLE)


def test_parse_assumption() -> None:
    assert parse_assumption(" model = a=b ") == ("model", "a=b")
    for text in ("model", "=x", "model=", " = "):
        with pytest.raises(UsageError, match="expected NAME=VALUE"):
            parse_assumption(text)


# trust


@pytest.mark.parametrize("name", ["acme.py", "./acme.py", "plugins/acme", "/tmp/x.py", "..acme"])
def test_a_configuration_of_the_tree_cannot_load_a_file(tree: Path, name: str) -> None:
    write(tree, f"plugins = [{json.dumps(name)}]\n")
    with pytest.raises(ConfigError, match="only the command line can load one"):
        settings(load(tree))


@pytest.mark.parametrize("package", [True, False])
def test_a_configuration_of_the_tree_cannot_import_from_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch, package: bool
) -> None:
    if package:
        write(tree / "evil_acme_plugin", "raise SystemExit('loaded')\n", "__init__.py")
    else:
        write(tree, "raise SystemExit('loaded')\n", "evil_acme_plugin.py")
    monkeypatch.syspath_prepend(str(tree))
    write(tree, 'plugins = ["evil_acme_plugin.sub"]\n')
    with pytest.raises(ConfigError, match="lies in the checked tree"):
        settings(load(tree))


def test_a_configuration_that_the_invoker_names_may_load_code(tree: Path) -> None:
    file = write(tree, 'plugins = ["acme.py", "json"]\n')
    config = read_config(file, trusted=True)
    assert settings(config).plugins == (str(tree / "acme.py"), "json")
    assert settings(config, {}, {"plugins": ["other.py"]}).plugins == ("other.py",)


def test_records_must_lie_in_the_tree(tree: Path) -> None:
    file = write(tree / "deep", '[catalogues]\nmodel = "../outside.yaml"\n')
    with pytest.raises(ConfigError, match=r"catalogues\.model: '\.\./outside\.yaml' leads out of"):
        settings(read_config(file))
    (shelf,) = settings(read_config(file, trusted=True)).shelves
    assert shelf[1] == tree / "outside.yaml"


def test_a_link_out_of_the_tree_is_no_way_around(tree: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (tree / "link").symlink_to(outside)
    file = write(tree, '[catalogues]\nmodel = "link/records.yaml"\n')
    with pytest.raises(ConfigError, match="leads out of"):
        settings(read_config(file))


# what settings answer


SELECTED = [
    ((), (), (), True),
    (("kv-cache",), (), (), True),
    (("weights",), (), (), False),
    (("weights",), ("kv-cache/one",), (), True),
    (("ALL",), (), ("kv-cache",), False),
    (("kv-cache/one",), (), ("kv-cache",), True),
    (("kv-cache",), (), ("kv-cache/one",), False),
    (("kv-cache",), (), ("kv-cache",), False),
    (("kv-cache",), (), ("ALL",), True),
    (("kv-cache/on",), (), (), False),
    (("kv",), (), (), False),
]


@pytest.mark.parametrize(("select", "extend", "ignore", "expected"), SELECTED)
def test_the_closest_selector_decides_and_ignore_wins_ties(
    select: tuple[str, ...], extend: tuple[str, ...], ignore: tuple[str, ...], expected: bool
) -> None:
    chosen = Settings(select=select or ("ALL",), extend_select=extend, ignore=ignore)
    assert chosen.selects("kv-cache/one") is expected


def test_trouble_with_the_input_is_reported_unless_it_is_ignored_by_name() -> None:
    for concern in INPUT_CONCERNS:
        rule = f"{concern}/something"
        assert Settings(select=("weights",)).selects(rule)
        assert Settings(ignore=("ALL",)).selects(rule)
        assert not Settings(ignore=(concern,)).selects(rule)
        assert not Settings(ignore=(rule,)).selects(rule)
        assert Settings(select=(rule,), ignore=(concern,)).selects(rule)


def test_a_plugin_error_cannot_be_ignored() -> None:
    rule = "capcheck/plugin-error"
    ignoring = Settings(ignore=("ALL", "capcheck", rule), per_file_ignores=(("*", (rule,)),))
    assert ignoring.selects(rule)
    assert ignoring.selects(rule, "a.yaml")


def test_ignores_by_file() -> None:
    found = Settings(per_file_ignores=(("old/**", ("kv-cache",)), ("b.yaml", ("ALL",))))
    assert found.selects("kv-cache/one")
    assert found.selects("kv-cache/one", "new/a.yaml")
    assert not found.selects("kv-cache/one", "old/deep/a.yaml")
    assert found.selects("weights/fit", "old/a.yaml")
    assert not found.selects("weights/fit", "x/b.yaml")
    assert found.selects("spec/yaml", "x/b.yaml")


def test_severity_and_requirement_of_the_closest_selector() -> None:
    found = Settings(
        severity={"kv-cache": "warning", "kv-cache/one": "error"}, require=("weights",)
    )
    assert found.severity_of("kv-cache/one") == "error"
    assert found.severity_of("kv-cache/two") == "warning"
    assert found.severity_of("weights/fit") is None
    assert found.requires("weights/fit")
    assert not found.requires("kv-cache/one")


@given(st.lists(st.sampled_from(["ALL", "a", "b", "a/x", "a/y", "b/x"])), st.booleans())
def test_selecting_and_ignoring_the_same_ignores(selectors: list[str], flip: bool) -> None:
    rule = "a/x"
    assert not selected(rule, selectors, selectors)
    assert selected(rule, [*selectors, rule], [] if flip else ["ALL"])


def test_weights_order_by_closeness() -> None:
    assert [weight(one, "a/x") for one in ("b", "ALL", "a", "a/x", "a/")] == [-1, 0, 1, 2, -1]


MATCHES = [
    ("a.yaml", "a.yaml", True),
    ("a.yaml", "deep/er/a.yaml", True),
    ("*.yaml", "deep/a.yaml", True),
    ("specs", "specs/a/b.yaml", True),
    ("specs/", "specs/a.yaml", True),
    ("./specs/*.yaml", "specs/a.yaml", True),
    ("specs/*.yaml", "specs/deep/a.yaml", False),
    ("specs/*.yaml", "other/specs/a.yaml", False),
    ("specs/**", "specs/deep/a.yaml", True),
    ("specs/**/a.yaml", "specs/a.yaml", True),
    ("specs/**/a.yaml", "specs/b/c/a.yaml", True),
    ("**/charts/*", "x/charts/y/z.yaml", True),
    ("**/charts/*", "x/y/z.yaml", False),
    ("specs/[ab].yaml", "specs/b.yaml", True),
    ("specs/[!ab].yaml", "specs/b.yaml", False),
    ("specs/?.yaml", "specs/ab.yaml", False),
    ("specs/a.b", "specs/aXb", False),
    ("specs/[", "specs/[", True),
    ("SPECS", "specs/a.yaml", False),
]


@pytest.mark.parametrize(("glob", "path", "expected"), MATCHES)
def test_matches(glob: str, path: str, expected: bool) -> None:
    assert matches(glob, path) is expected


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not matches("**/" * 500 + "*a" * 500 + "/b", "/".join(["a" * 200] * 50))


def test_an_empty_configuration_is_one(tmp_path: Path) -> None:
    found = read_config(write(tmp_path, ""))
    assert found == Config(tmp_path / "capcheck.toml", {})
    assert settings(found)._replace(said={}) == Settings()

"""The command line, as a process: exit codes, streams, formats, verbs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from core_fakes import write_tree
from jsonschema import Draft7Validator

from capcheck import __version__
from capcheck.schemas_home import read_schema

HEAD = "apiVersion: capcheck/v1\nkind: Deployment\n"
GOOD = HEAD + (
    "name: good\nmodel: {id: meta-llama/Llama-3.1-8B-Instruct}\n"
    "hardware: {accelerator: nvidia/l40s, count: 1}\n"
    "engine: {name: vllm, version: 0.11.0, args: {max_model_len: 8192, max_num_seqs: 64}}\n"
)
BAD = GOOD.replace("8192", "999999").replace("good", "bad")
WARNS = GOOD.replace("max_num_seqs: 64", "gpu_memory_utilization: 0.97").replace("good", "warns")
CLEAN = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/root")}


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs the command in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **files: str) -> None:
        write_tree(self.folder, {f"{name}.yaml": text for name, text in files.items()})

    def __call__(
        self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, cwd: str = "."
    ) -> Done:
        done = subprocess.run(
            command(words), input=stdin, capture_output=True, cwd=self.folder / cwd,
            env={**CLEAN, **(env or {})}, timeout=120, check=False,
        )  # fmt: skip
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "capcheck.cli", *words]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


# exit codes


@pytest.mark.parametrize(
    ("files", "words", "code"),
    [
        ({"good": GOOD}, ["."], 0),
        ({"good": GOOD}, ["good.yaml"], 0),
        ({"good": GOOD}, ["check", "good.yaml"], 0),
        ({"bad": BAD}, ["."], 1),
        ({"bad": BAD}, ["bad.yaml", "--ignore", "kv-cache/one-request,options/context-limit"], 0),
        ({"warns": WARNS}, ["."], 0),
        ({"warns": WARNS}, [".", "--strict"], 1),
        ({"good": GOOD}, [".", "--strict"], 0),
        ({"good": "a: 1\n"}, ["."], 2),
        ({"good": "a: 1\n"}, ["good.yaml"], 1),
        ({"good": "a: 1\n"}, ["good.yaml", "--skip-unclaimed"], 0),
        ({}, ["."], 2),
        ({}, ["none.yaml"], 1),
        ({}, [], 2),
        ({"good": GOOD}, [".", "--no-such-option"], 2),
        ({"good": GOOD}, [".", "--sel", "weights"], 2),
        ({"good": GOOD}, [".", "--format", "none"], 2),
        ({"good": GOOD}, [".", "--select", "none"], 2),
        ({"good": GOOD}, [".", "--select", ""], 2),
        ({"good": GOOD}, [".", "--assume", "nonsense"], 2),
        ({"good": GOOD}, [".", "--assume", "colour=red"], 2),
        ({"good": GOOD}, [".", "--config", "none.toml"], 2),
        ({"good": GOOD}, [".", "--plugin", "none.py"], 2),
        ({"good": GOOD}, [".", "--output", "json"], 2),
        ({"good": GOOD}, [".", "--output", "json=no/such/folder/x"], 2),
        ({"good": GOOD, "bad": "a: ["}, ["."], 1),
    ],
)
def test_exit_codes(cli: Cli, files: dict[str, str], words: list[str], code: int) -> None:
    cli.write(**files)
    done = cli(*words)
    assert done.code == code, done
    if code == 2:
        assert done.err
        assert not done.out or "--output" in words


def test_a_required_rule_that_is_skipped_fails_a_strict_run(cli: Cli) -> None:
    cli.write(good=GOOD)
    config = 'strict = true\nrequire = ["decode/tpot"]\n'
    write_tree(cli.folder, {"capcheck.toml": config})
    assert cli(".").code == 1
    write_tree(cli.folder, {"capcheck.toml": config.replace("true", "false")})
    assert cli(".").code == 0


def test_a_plugin_that_fails_is_2_whatever_else_is_found(cli: Cli) -> None:
    cli.write(bad=BAD)
    text = "from capcheck import hookimpl\n@hookimpl\ndef capcheck_check(case): 1 / 0\n"
    write_tree(cli.folder, {"acme.py": text})
    done = cli("bad.yaml", "--plugin", "acme.py")
    assert done.code == 2
    assert "capcheck: error: plugin acme: capcheck_check: ZeroDivisionError" in done.out
    assert "[kv-cache/one-request]" in done.out
    assert "(1 of plugins)" in done.err


def test_an_internal_fault_is_2_in_one_line(cli: Cli) -> None:
    cli.write(good=GOOD)
    site = "import capcheck.session as s\ndef boom(*_, **__): raise RuntimeError('boom')\n"
    start = (
        f"import sys\nsys.argv = ['capcheck', 'good.yaml']\n{site}"
        "s.Session.run = boom\nimport capcheck.cli\ncapcheck.cli.main()\n"
    )
    env = dict(CLEAN)
    run = [sys.executable, "-c", start]
    done = subprocess.run(run, capture_output=True, cwd=cli.folder, env=env, check=False, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("capcheck: internal error: RuntimeError: boom at <string>:")
    assert len(done.stderr.splitlines()) == 1
    env["CAPCHECK_TRACE"] = "1"
    done = subprocess.run(run, capture_output=True, cwd=cli.folder, env=env, check=False, text=True)
    assert done.returncode == 2
    assert "Traceback" in done.stderr


# streams


def test_findings_on_stdout_and_all_else_on_stderr(cli: Cli) -> None:
    cli.write(bad=BAD)
    done = cli("bad.yaml")
    assert done.out.startswith("bad.yaml:6:")
    assert done.err.startswith("checked 1 deployment in 1 file: ")
    quiet = cli("bad.yaml", "--quiet")
    assert (quiet.out, quiet.err) == (done.out, "")


def test_a_good_run_says_nothing_on_stdout(cli: Cli) -> None:
    cli.write(good=GOOD)
    assert cli(".").out == ""
    assert cli(".", "-q") == Done(0, "", "")


def test_a_reader_that_goes_away_is_no_fault(cli: Cli) -> None:
    cli.write(bad="---\n".join(BAD.replace("bad", f"bad{number}") for number in range(60)))
    process = subprocess.Popen(
        command(["bad.yaml"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cli.folder,
        env=CLEAN,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in (141, 1)
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err


def test_an_interrupt_is_130(cli: Cli) -> None:
    start = (
        "import os, signal, sys\nimport capcheck.cli as c\n"
        "def stop(words): os.kill(os.getpid(), signal.SIGINT)\n"
        "c.run = stop\nsys.argv = ['capcheck', '.']\nc.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, env=CLEAN, check=False
    )
    assert done.returncode == 130
    assert done.stderr == b""
    assert signal.SIGINT


def test_a_full_disk_is_said(cli: Cli) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    cli.write(bad=BAD)
    with full.open("w") as stream:
        done = subprocess.run(
            command(["bad.yaml"]), stdout=stream, stderr=subprocess.PIPE, cwd=cli.folder,
            env=CLEAN, check=False, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert "the report cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


# formats


def test_json_is_what_its_schema_says(cli: Cli) -> None:
    cli.write(
        good=GOOD, bad=BAD, warns=WARNS, odd=GOOD.replace("name: vllm", "name: wllm"),
        broken="a: [", lost=GOOD.replace("version: 0.11.0, ", ""),
        quiet=BAD.replace("}}", "}} # capcheck: ignore[kv-cache/one-request] it is meant"),
        planned=GOOD[: GOOD.index("engine")] + "workload: {prompt_tokens: 99, concurrency: 2}\n",
    )  # fmt: skip
    done = cli(".", "--format", "json")
    assert (done.code, done.err) == (1, "")
    report = done.json
    errors = list(Draft7Validator(read_schema("report")).iter_errors(report))
    assert errors == []
    assert report["summary"]["suppressed"] == len(report["suppressed"]) == 1
    assert report["summary"]["deployments"] == len(report["deployments"]) == 7
    checks = [check for one in report["deployments"] for check in one["checks"]]
    assert report["summary"]["checks"] == len(checks)
    assert {one["path"] for one in report["findings"]} >= {"bad.yaml", "broken.yaml"}
    assert cli(".", "--format", "json") == done


def test_paths_in_text_are_as_the_reader_stands_and_in_json_as_the_root_does(cli: Cli) -> None:
    write_tree(cli.folder, {"capcheck.toml": "", "specs/bad.yaml": BAD, "here/x.txt": ""})
    done = cli("../specs", "--format", "concise", cwd="here")
    assert done.out.startswith("../specs/bad.yaml:6:")
    report = cli("../specs", "--format", "json", cwd="here").json
    assert {one["path"] for one in report["findings"]} == {"specs/bad.yaml"}


def test_reports_to_files_beside_the_one_on_stdout(cli: Cli) -> None:
    cli.write(bad=BAD)
    done = cli(
        "bad.yaml", "--output", "json=out.json", "--output", "concise=out.txt", "--color", "always"
    )
    assert done.out.startswith("\x1b[1mbad.yaml:6:")
    assert json.loads((cli.folder / "out.json").read_text())["report"] == 1
    assert (cli.folder / "out.txt").read_text().startswith("bad.yaml:6:")


@pytest.mark.parametrize(
    ("words", "env", "colored"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colour(cli: Cli, words: list[str], env: dict[str, str], colored: bool) -> None:
    cli.write(bad=BAD)
    assert ("\x1b[" in cli("bad.yaml", *words, env=env).out) is colored


def test_passed_checks_and_files_on_request(cli: Cli) -> None:
    cli.write(good=GOOD, note="a: 1\n")
    done = cli(".", "--show-passed", "--show-files")
    assert "good.yaml:1:1: good (capcheck/v1)" in done.out
    assert "pass    kv-cache/one-request" in done.out
    assert "skipped decode/tpot: " in done.out
    assert "good.yaml: capcheck/v1\n" in done.err
    assert "note.yaml: no deployment\n" in done.err


# standard input


def test_standard_input(cli: Cli) -> None:
    done = cli("-", stdin=BAD.encode())
    assert done.code == 1
    assert done.out.startswith("<stdin>:6:")
    named = cli("-", "--stdin-filename", "sub/bad.yaml", stdin=BAD.encode())
    assert named.out.startswith("sub/bad.yaml:6:")


def test_standard_input_stands_where_its_name_says(cli: Cli) -> None:
    write_tree(cli.folder, {
        "capcheck.toml": '[per-file-ignores]\n"specs/*" = ["kv-cache", "options"]\n',
        "specs/base.yaml": GOOD,
    })  # fmt: skip
    assert cli("-", "--stdin-filename", "specs/bad.yaml", stdin=BAD.encode()).code == 0
    assert cli("-", "--stdin-filename", "bad.yaml", stdin=BAD.encode()).code == 1
    linked = (HEAD + "name: new\nfrom: base.yaml\n").encode()
    assert cli("-", "--stdin-filename", "specs/new.yaml", stdin=linked).code == 0
    assert "no such file" in cli("-", "--stdin-filename", "new.yaml", stdin=linked).out


@pytest.mark.parametrize(
    ("content", "rule"), [(b"\xff\xfe\x00", "spec/encoding"), (b"", "capcheck/unclaimed"),
                          (b"a: [", "spec/yaml"), (b"\x00\x01", "spec/encoding")],
)  # fmt: skip
def test_standard_input_that_is_no_deployment(cli: Cli, content: bytes, rule: str) -> None:
    done = cli("-", stdin=content)
    assert done.code == 1
    assert f"[{rule}]" in done.out


# assumptions and selection


def test_assumptions(cli: Cli) -> None:
    cli.write(lost=BAD.replace("accelerator: nvidia/l40s, ", ""))
    assert "kv-cache" not in cli("lost.yaml", "--select", "kv-cache").out
    done = cli("lost.yaml", "--select", "kv-cache", "--assume", "accelerator=nvidia/l40s")
    assert "(assumed hardware.accelerator: --assume accelerator=nvidia/l40s)" in done.out
    assert "1 assumption in use" in done.err


def test_selection(cli: Cli) -> None:
    cli.write(bad=BAD)
    only = cli("bad.yaml", "--select", "weights", "--format", "json").json
    assert {one["rule"] for one in only["deployments"][0]["checks"]} == {
        "weights/fit", "weights/load-peak",
    }  # fmt: skip
    done = cli("bad.yaml", "--select", "kv-cache/one-requst")
    assert done.code == 2
    assert "no rule is named 'kv-cache/one-requst'" in done.err
    assert "did you mean kv-cache/one-request?" in done.err


def test_configuration_is_found_and_faults_in_it_are_named(cli: Cli) -> None:
    cli.write(bad=BAD)
    write_tree(cli.folder, {"pyproject.toml": '[tool.capcheck]\nselect = ["weights"]\n'})
    assert cli("bad.yaml").code == 0
    write_tree(cli.folder, {"pyproject.toml": '[tool.capcheck]\nselekt = ["weights"]\n'})
    done = cli("bad.yaml")
    assert done.code == 2
    assert "pyproject.toml:2: " in done.err
    assert "did you mean select?" in done.err
    write_tree(cli.folder, {"other.toml": 'select = ["weights"]\n', "pyproject.toml": ""})
    assert cli("bad.yaml", "--config", "other.toml").code == 0
    assert cli("bad.yaml", env={"CAPCHECK_CONFIG": "other.toml"}).code == 0
    done = cli("bad.yaml", "--config", "pyproject.toml")
    assert done.code == 2
    assert "has no table [tool.capcheck]" in done.err


def test_a_plugin_that_is_not_there_to_leave_out_is_told(cli: Cli) -> None:
    cli.write(good=GOOD)
    done = cli("good.yaml", "--no-plugin", "wllm")
    assert done.code == 0
    assert "--no-plugin wllm: no such plugin is installed" in done.err


def test_a_run_without_any_rule_is_no_run(cli: Cli) -> None:
    cli.write(good=GOOD)
    named = [entry.name for entry in entry_points(group="capcheck")]
    words = [word for name in named if name not in ("spec", "reports")
             for word in ("--no-plugin", name)]  # fmt: skip
    done = cli("good.yaml", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err == "capcheck: no plugin brings rules: nothing would be checked\n"


@pytest.mark.parametrize(
    "name", ["kv_cache", "weights", "serving", "quantization", "vllm", "models", "generic",
             "nvidia", "spec", "options", "reports"],
)  # fmt: skip
def test_any_plugin_can_be_left_out(cli: Cli, name: str) -> None:
    cli.write(good=GOOD)
    done = cli("good.yaml", "--no-plugin", name)
    if name == "reports":
        assert (done.code, done.err) == (
            2, "capcheck: there is no report format 'text'; known are none\n",
        )  # fmt: skip
        return
    assert "plugin-error" not in done.out, done.out
    assert done.code == (1 if name == "spec" else 0)


# several roots


def test_each_root_has_its_own_configuration_and_one_report(cli: Cli) -> None:
    write_tree(cli.folder, {
        "one/capcheck.toml": 'ignore = ["kv-cache", "options"]\n', "one/specs/bad.yaml": BAD,
        "two/capcheck.toml": "", "two/specs/bad.yaml": BAD, "two/specs/good.yaml": GOOD,
    })  # fmt: skip
    done = cli("two/specs", "one/specs", "--format", "json")
    assert done.code == 1
    report = done.json
    assert not list(Draft7Validator(read_schema("report")).iter_errors(report))
    assert {one["path"] for one in report["findings"]} == {"two/specs/bad.yaml"}
    assert [one["path"] for one in report["deployments"]] == [
        "two/specs/bad.yaml", "two/specs/good.yaml", "one/specs/bad.yaml",
    ]  # fmt: skip
    assert report["summary"]["deployments"] == 3
    text = cli("one/specs", "two/specs", "--show-files")
    assert text.out.startswith("two/specs/bad.yaml:6:")
    assert "    6 | engine: {name: vllm" in text.out
    assert "one/specs/bad.yaml: capcheck/v1" in text.err
    assert text.err.count("checked 3 deployments in 3 files") == 1


def test_links_stay_below_their_own_root(cli: Cli) -> None:
    write_tree(cli.folder, {
        "one/capcheck.toml": "", "one/new.yaml": HEAD + "name: n\nfrom: ../two/good.yaml\n",
        "two/capcheck.toml": "", "two/good.yaml": GOOD,
    })  # fmt: skip
    done = cli("one", "two")
    assert done.code == 1
    assert "leads out of the checked tree" in done.out


# verbs


def test_version(cli: Cli) -> None:
    assert cli("--version") == Done(0, f"capcheck {__version__}\n", "")


def test_help(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    assert "exit:  0 no error remains" in done.out
    assert cli().err == done.out
    assert "--skip-unclaimed" in cli("check", "--help").out


def test_options_may_stand_before_the_verb(cli: Cli) -> None:
    write_tree(cli.folder, {"acme.py": "A = 1\n"})
    assert cli("--plugin", "acme.py", "list", "engines").out.startswith("generic\n")
    assert cli("--format", "json", "rules").json


def test_a_folder_that_is_called_like_a_verb(cli: Cli) -> None:
    write_tree(cli.folder, {"list/good.yaml": GOOD})
    assert cli("./list").code == 0
    assert cli("list").code == 2


def test_rules(cli: Cli) -> None:
    rows = cli("rules", "--format", "json").json
    ids = [row["id"] for row in rows]
    assert ids == sorted(ids)
    assert {"weights/fit", "spec/yaml", "capcheck/plugin-error"} <= set(ids)
    assert all(row["title"] and row["plugin"] and row["severity"] for row in rows)
    text = cli("rules").out.splitlines()
    assert len(text) == len(rows)
    assert text[0].startswith(ids[0])


@pytest.mark.parametrize(
    ("kind", "pattern", "line"),
    [
        ("engines", "", "vllm vllm-openai"),
        ("accelerators", "l40s", "nvidia/l40s"),
        ("models", "llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("formats", "capcheck", "capcheck/v1"),
    ],
)
def test_lists(cli: Cli, kind: str, pattern: str, line: str) -> None:
    done = cli("list", kind, *([pattern] if pattern else []))
    assert done.code == 0
    assert any(one.startswith(line) for one in done.out.splitlines())
    assert all(pattern.lower() in one.lower() for one in done.out.splitlines())
    nothing = cli("list", kind, "nobody's")
    assert (nothing.code, nothing.out) == (1, "")
    assert nothing.err


def test_list_knows_its_kinds(cli: Cli) -> None:
    done = cli("list", "colours")
    assert done.code == 2
    assert "invalid choice: 'colours'" in done.err


def test_explain_a_rule(cli: Cli) -> None:
    done = cli("explain", "kv-cache/one-request")
    assert done.code == 0
    assert done.out.startswith("kv-cache/one-request: One request")
    assert "What helps: " in done.out
    assert "    apiVersion: capcheck/v1" in done.out
    assert cli("explain", "spec/yaml").out.startswith("spec/yaml: the text is not valid YAML")
    wrong = cli("explain", "kv-cache/one-requst")
    assert wrong.code == 2
    assert "did you mean kv-cache/one-request?" in wrong.err


def test_explain_a_rule_on_a_file(cli: Cli) -> None:
    cli.write(bad=BAD)
    done = cli("explain", "kv-cache/one-request", "bad.yaml")
    assert done.code == 0
    assert "bad (bad.yaml:1)" in done.out
    assert "arithmetic: 999,999 tokens" in done.out
    assert "moved by " in done.out
    assert "help: max_model_len: " in done.out
    assert cli("explain", "spec/yaml", "bad.yaml").code == 2
    assert cli("explain", "kv-cache/one-request", "none.yaml").code == 2


def test_show(cli: Cli) -> None:
    cli.write(good=GOOD)
    done = cli("show", "good.yaml")
    assert done.code == 0
    assert "good (capcheck/v1, good.yaml:1)" in done.out
    assert "engine.args.max_model_len" in done.out
    assert "good.yaml:6:" in done.out
    assert "weights_bytes" in done.out
    assert cli("show", "-", stdin=GOOD.encode()).out.startswith("good (capcheck/v1, <stdin>:1)")
    assert cli("show", "none.yaml").code == 2


def test_schemas(cli: Cli) -> None:
    deployment = cli("schema").json
    assert deployment["title"] == "capcheck/v1 deployment"
    assert "x-acme" not in deployment["properties"]
    assert cli("schema", "report").json["title"] == "capcheck report"
    assert cli("schema", "none").code == 2
    text = (
        "from capcheck import Extension, hookimpl\n@hookimpl\ndef capcheck_spec_extensions():\n"
        "    return [Extension('x-acme', {'type': 'object', 'title': 'NICs'})]\n"
    )
    write_tree(cli.folder, {"acme.py": text})
    extended = cli("schema", "--plugin", "acme.py").json
    assert extended["properties"]["x-acme"] == {"type": "object", "title": "NICs"}


def test_text_of_strangers_is_escaped_everywhere(cli: Cli) -> None:
    evil = "\x1b[31mred\u202e"
    cli.write(evil=BAD.replace("name: bad", r'name: "\x1b[31mred\u202e"'))
    for words in (
        ["evil.yaml", "--show-passed"], ["show", "evil.yaml"],
        ["explain", "weights/fit", "evil.yaml"], ["evil.yaml", "--select", evil],
        ["explain", evil], ["fit", evil],
    ):  # fmt: skip
        done = cli(*words)
        assert "\x1b" not in done.out + done.err, words
        assert "\u202e" not in done.out + done.err, words
        assert "\\x1b[31mred\\u202e" in done.out + done.err, words


# fit


LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def test_fit_prints_the_planners_five_figures(cli: Cli) -> None:
    figures = cli("fit", LLAMA, "--format", "json").json
    five = ("weights", "kv", "activation", "total", "recommended")
    assert [figures[f"{name}_gib"] for name in five] == [14.96, 16.0, 3.74, 39.9, 80.0]
    assert "fits" not in figures
    text = cli("fit", LLAMA).out
    assert [line.split("  ")[1] for line in text.splitlines()[1:6]] == [
        "weights", "KV cache", "activation overhead", "total", "recommended",
    ]  # fmt: skip
    assert "14.96 GiB" in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--on", "nvidia/h100-sxm5-80gb"], 0),
        (["--on", "nvidia/rtx-4090"], 1),
        (["--on", "nvidia/rtx-4090", "--count", "2"], 0),
        (["--on", "nvidia/rtx-4090", "--kv-dtype", "fp8", "--sequences", "3"], 0),
        (["--on", "nvidia/rtx-4090", "--engine", "vllm", "--engine-version", "0.11.0"], 0),
        (["--on", "nvidia/h100-sxm5-80gb", "--tpot", "30ms", "--prompt-tokens", "500"], 0),
        (["--on", "nvidia/none"], 2),
        (["--precision", "none"], 2),
        (["--engine", "none"], 2),
        (["--count", "some", "--on", "nvidia/rtx-4090"], 2),
    ],
)
def test_fit_codes(cli: Cli, words: list[str], code: int) -> None:
    done = cli("fit", LLAMA, *words)
    assert done.code == code, done
    assert ("kv-cache/full-batch" in done.out) is (code == 1)


def test_fit_with_targets_prints_floors(cli: Cli) -> None:
    done = cli("fit", LLAMA, "--tpot", "50ms", "--ttft", "1s", "--prompt-tokens", "1000")
    assert done.code == 0
    assert "GB/s" in done.out
    assert "TFLOP/s" in done.out


def test_fit_of_a_name_of_several_parts(cli: Cli) -> None:
    done = cli("fit", LLAMA, "--on", "H100", "--format", "json")
    labels = [one["label"] for one in done.json["alternatives"]]
    assert "on nvidia/h100-sxm5-80gb" in labels
    assert len(labels) > 1


def test_fit_of_a_config_json_anywhere(cli: Cli, tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
    }  # fmt: skip
    write_tree(tmp_path, {"models/mine/config.json": json.dumps(config), "here/x": ""})
    for path in ("../models/mine/config.json", "../models/mine", str(tmp_path / "models/mine")):
        done = cli("fit", path, "--format", "json", cwd="here")
        assert done.json["weights_gib"] == 14.96


def test_fit_of_a_model_that_nobody_knows(cli: Cli) -> None:
    done = cli("fit", "meta-llama/Llama-3.1-8B-Instrukt")
    assert done.code in (0, 2)
    assert cli("fit", "nobody/nothing-at-all-xyz").code == 2
    assert cli("fit", "x" * 5000).code == 2

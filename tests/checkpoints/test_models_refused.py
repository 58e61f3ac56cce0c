"""What `capcheck models add` refuses, and the hub, which it asks only when told to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from catalogue_kit import OWN, Run, checked, records
from checkpoint_kit import CONFIG, PARAMETERS, write_checkpoint


def test_nothing_is_fetched_unasked(tmp_path: Path, run: Run) -> None:
    done = run("models", "add", "acme/chat", code=2)
    assert "--hub reads it from the Hugging Face hub" in done.stderr
    assert not (tmp_path / OWN).exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["./gone"], "no such file or folder"),
        (["gone.gguf"], "no such file or folder"),
        (["./empty"], "holds neither config.json nor a .gguf file"),
        (["./strange"], "cannot be used: unknown model_type 'strange'"),
        (["./cut"], "model.safetensors: no safetensors file"),
        (["./acme", "--name", "a b"], "is no name of a model"),
        (["./acme", "--name", "a/b/c"], "is no name of a model"),
        (["./acme", "--revision", "main"], "it needs --hub"),
        (["./acme", "--hub"], "is no id of the hub"),
        (["../x/y", "--hub"], "is no id of the hub"),
    ],
)
def test_what_is_refused_writes_nothing(
    tmp_path: Path, run: Run, words: list[str], why: str
) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / "empty").mkdir()
    write_checkpoint(tmp_path / "strange", config={"model_type": "strange"})
    write_checkpoint(tmp_path / "cut")
    (tmp_path / "cut" / "model.safetensors").write_bytes(b"\xff" * 20)
    done = run("models", "add", *words, code=2)
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / OWN).exists()


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path, run: Run) -> None:
    auto = {"AutoConfig": "configuration_acme.AcmeConfig"}
    folder = write_checkpoint(tmp_path / "acme", config={**CONFIG, "auto_map": auto})
    trap = "from pathlib import Path\nPath('ran').touch()\n"
    for name in ("configuration_acme.py", "__init__.py", "sitecustomize.py", "yaml.py"):
        (folder / name).write_text(trap, encoding="utf-8")
    run("models", "add", "acme")
    assert not list(tmp_path.rglob("ran"))
    assert "auto_map" not in records(tmp_path)[0]["config"]


# the hub, by a library of the same face

FAKE_HUB = '''
"""Stands for huggingface_hub: gives files of a folder, and records what was asked."""
import json, os, shutil
from pathlib import Path
from types import SimpleNamespace as Thing

HERE = Path(os.environ["FAKE_HUB"])

def said(*words):
    with (HERE / "asked").open("a") as out:
        out.write(" ".join(map(str, words)) + "\\n")

def hf_hub_download(repo_id, filename, *, revision, local_dir):
    said("download", repo_id, filename, revision)
    shutil.copy(HERE / repo_id / filename, local_dir)

class HfApi:
    def model_info(self, repo_id, *, revision=None):
        said("info", repo_id, revision)
        if not (HERE / repo_id).is_dir():
            raise OSError("404 Client Error\\nRepository Not Found")
        names = [Thing(rfilename=one.name) for one in (HERE / repo_id).iterdir()]
        return Thing(sha="c0ffee" * 6 + "beef", siblings=names)

    def get_safetensors_metadata(self, repo_id, *, revision):
        said("headers", repo_id, revision)
        data = (HERE / repo_id / "model.safetensors").read_bytes()
        told = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        told.pop("__metadata__")
        tensors = {name: Thing(**one) for name, one in told.items()}
        return Thing(files_metadata={"model.safetensors": Thing(tensors=tensors)})
'''


def test_the_hub_when_asked(tmp_path: Path, run: Run) -> None:
    hub, library = tmp_path / "hub", tmp_path / "library"
    write_checkpoint(hub / "acme" / "chat")
    (hub / "acme" / "chat" / "model.py").write_text("", encoding="utf-8")
    library.mkdir()
    (library / "huggingface_hub.py").write_text(FAKE_HUB, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(library), os.environ.get("PYTHONPATH", ""))))
    more = {"PYTHONPATH": path, "FAKE_HUB": str(hub)}
    run("models", "add", "acme/chat", "--hub", "--revision", "v2", **more)
    commit = "c0ffee" * 6 + "beef"
    assert (hub / "asked").read_text(encoding="utf-8").splitlines() == [
        "info acme/chat v2",
        f"download acme/chat config.json {commit}",
        f"headers acme/chat {commit}",
    ]
    (record,) = records(tmp_path)
    assert (record["id"], record["revision"]) == ("acme/chat", commit)
    assert record["parameters"] == PARAMETERS
    assert record["source"] == [
        "Hugging Face hub, acme/chat: config.json, the headers of its safetensors"
    ]
    assert checked(run, tmp_path, "acme/chat")["unknown"] == {}
    done = run("models", "add", "acme/gone", "--hub", code=2, **more)
    why = "acme/gone cannot be had from the hub: 404 Client Error"
    assert done.stderr == f"capcheck: {why}\n"


def test_the_hub_without_its_library(tmp_path: Path, run: Run) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError", encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    done = run("models", "add", "acme/chat", "--hub", code=2, PYTHONPATH=path)
    assert done.stderr == (
        "capcheck: --hub needs the package huggingface_hub: pip install 'capcheck[hub]'\n"
    )

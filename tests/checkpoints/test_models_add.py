"""`capcheck models add` as a user runs it, and checks with what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue_kit import OWN, ROPE, SPEC, Run, checked, records
from checkpoint_kit import (
    CONFIG,
    GGUF_METADATA,
    PARAMETERS,
    gguf,
    gguf_tensors,
    gptq_tensors,
    llama_tensors,
    write_checkpoint,
)


def test_a_checkpoint_is_added_and_then_known_by_its_name(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "models" / "acme", files=2)
    done = run("models", "add", "models/acme", "--name", "acme/chat")
    assert done.stdout == f"acme/chat: added to {OWN}\n"
    assert done.stderr == ""
    (record,) = records(tmp_path)
    assert record["parameters"] == PARAMETERS
    assert record["stored_bytes"] == {"bf16": 2 * PARAMETERS}
    assert record["checked"] == "2026-09-21"
    assert record["source"] == ["models/acme: config.json, the headers of its safetensors"]
    assert "transformers_version" not in record["config"]
    assert "bos_token_id" not in record["config"]
    report = checked(run, tmp_path, "acme/chat")
    assert report["unknown"] == {}
    weights = report["estimates"]["weights_bytes"]["mid"]
    assert weights == 2 * PARAMETERS + ROPE


def test_the_record_is_listed_with_its_file(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    run("models", "add", "acme")
    assert run("list", "models", "acme").stdout.split() == ["acme", OWN]
    assert run("list", "models", "Qwen/Qwen3-8B").stdout.splitlines()[0] == "Qwen/Qwen3-8B"


def test_ones_own_record_wins(tmp_path: Path, run: Run) -> None:
    """A shipped name, spelled otherwise; the record takes the catalogue's spelling."""
    write_checkpoint(tmp_path / "acme")
    before = checked(run, tmp_path, "Qwen/Qwen3-8B")
    done = run("models", "add", "acme", "--name", "qwen/qwen3-8b")
    assert done.stdout.startswith("Qwen/Qwen3-8B: added")
    after = checked(run, tmp_path, "Qwen/Qwen3-8B")
    big, small = (one["estimates"]["weights_bytes"]["mid"] for one in (before, after))
    assert big > 1000 * small
    assert small == 2 * PARAMETERS + ROPE


def test_ones_own_record_of_a_known_upload_decides_its_packing(tmp_path: Path, run: Run) -> None:
    """The shipped list says AWQ of this name; the record says that nothing is packed."""
    write_checkpoint(tmp_path / "acme")
    run("models", "add", "acme", "--name", "Qwen/Qwen2.5-7B-Instruct-AWQ")
    report = checked(run, tmp_path, "Qwen/Qwen2.5-7B-Instruct-AWQ")
    assert report["estimates"]["weights_bytes"]["mid"] == 2 * PARAMETERS + ROPE


def test_packed_weights_are_counted_as_weights(tmp_path: Path, run: Run) -> None:
    told = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
    config = {**CONFIG, "quantization_config": told}
    write_checkpoint(tmp_path / "acme", gptq_tensors(), config)
    done = run("models", "add", "acme")
    assert done.stderr == ""
    (record,) = records(tmp_path)
    assert record["parameters"] == PARAMETERS
    assert record["config"]["quantization_config"] == told
    linear = PARAMETERS - 2 * 1024 * 256 - 5 * 256
    packed = record["stored_bytes"]["i32"]
    # Half a byte a weight, half a byte a zero point, an index of four bytes an input.
    assert packed == linear / 2 + linear / 128 / 2 + 2 * 4 * (6 * 256 + 512)


def test_a_gguf_file(tmp_path: Path, run: Run) -> None:
    tensors = gguf_tensors()
    tensors["blk.1.ffn_down.weight"] = ("Q6_K", (512, 256))
    data = gguf(GGUF_METADATA, tensors)
    (tmp_path / "acme.gguf").write_bytes(data)
    done = run("models", "add", "acme.gguf", "--name", "acme/chat")
    assert done.stderr == ""
    (record,) = records(tmp_path)
    assert record["parameters"] == PARAMETERS
    scheme = record["scheme"]
    assert (scheme["method"], scheme["weight"]) == ("gguf", "q4_k_m")
    assert scheme["parts"] == [
        {"method": "gguf", "weight": "q6_k", "bits": 6.5625,
         "targets": ["lm_head", "layers.1.mlp.down_proj"]},
        {"method": "gguf", "weight": "q4_k", "bits": 4.5},
    ]  # fmt: skip
    assert checked(run, tmp_path, "acme/chat")["unknown"] == {}
    assert "q4_k_m, gguf (config)" in run("show", "spec.yaml").stdout


def test_a_difference_is_told_and_kept(tmp_path: Path, run: Run) -> None:
    tensors = {**llama_tensors(), "model.layers.0.adapter.weight": ("BF16", (256, 512))}
    write_checkpoint(tmp_path / "acme", tensors)
    done = run("models", "add", "acme")
    held = PARAMETERS + 256 * 512
    why = f"the headers hold {held:,} weights, but llama has {PARAMETERS:,} at these sizes (-7.1%)"
    assert done.stderr == f"capcheck: acme: {why}\n"
    (record,) = records(tmp_path)
    assert record["doubts"] == [why]
    assert record["parameters"] == held


def test_a_folder_without_weights_has_no_counts(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / "acme" / "model.safetensors").unlink()
    done = run("models", "add", "acme")
    assert "no safetensors are there" in done.stderr
    (record,) = records(tmp_path)
    assert "parameters" not in record
    assert "stored_bytes" not in record
    assert checked(run, tmp_path, "acme")["unknown"] == {}


def test_weights_that_were_not_checked_out(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    pointer = "version https://git-lfs.github.com/spec/v1\n"
    (tmp_path / "acme" / "model.safetensors").write_text(pointer, encoding="utf-8")
    assert "no safetensors are there" in run("models", "add", "acme").stderr
    assert "parameters" not in records(tmp_path)[0]


def test_prediction_layers_that_are_told_but_not_stored(tmp_path: Path, run: Run) -> None:
    config = {**CONFIG, "model_type": "mimo", "architectures": [], "attention_bias": False,
              "num_nextn_predict_layers": 1}  # fmt: skip
    write_checkpoint(tmp_path / "acme", config=config)
    run("models", "add", "acme")
    (record,) = records(tmp_path)
    assert record["mtp"] == {"layers": 0}


# the file

COMMENTED = """\
# Ours.

- id: acme/first  # kept
  config: {model_type: llama}

# about the second
- id: acme/second
  config:
    model_type: llama
# the end
"""


def test_a_record_is_replaced_only_when_forced(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / OWN).write_text(COMMENTED, encoding="utf-8")
    done = run("models", "add", "acme", "--name", "acme/second", code=2)
    assert done.stderr == f"capcheck: {OWN}: acme/second is there already; --force replaces it\n"
    assert (tmp_path / OWN).read_text(encoding="utf-8") == COMMENTED
    done = run("models", "add", "acme", "--name", "acme/second", "--force")
    assert done.stdout == f"acme/second: replaced in {OWN}\n"
    text = (tmp_path / OWN).read_text(encoding="utf-8")
    head, _, tail = COMMENTED.partition("- id: acme/second\n")
    assert text.startswith(head)
    assert text.endswith("# the end\n")
    assert [one["id"] for one in records(tmp_path)] == ["acme/first", "acme/second"]
    assert records(tmp_path)[1]["parameters"] == PARAMETERS
    assert tail.count("llama") == 1


def test_what_stands_in_the_file_stays(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / OWN).write_text(COMMENTED.rstrip("\n"), encoding="utf-8")
    run("models", "add", "acme", "--name", "acme/first", "--force")
    run("models", "add", "acme", "--name", "acme/third")
    text = (tmp_path / OWN).read_text(encoding="utf-8")
    assert text.startswith("# Ours.\n\n- id: acme/first\n")
    assert "\n\n# about the second\n- id: acme/second\n" in text
    assert [one["id"] for one in records(tmp_path)] == ["acme/first", "acme/second", "acme/third"]


@pytest.mark.parametrize("name", ["ours.jsonl", "ours.json", "deep/ours.yml"])
def test_other_forms_of_the_file(tmp_path: Path, run: Run, name: str) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / "capcheck.toml").write_text(f'catalogues = {{model = "{name}"}}', encoding="utf-8")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("", encoding="utf-8")
    if name.endswith(".json"):
        (tmp_path / name).write_text("[]", encoding="utf-8")
    for model in ("acme/a", "acme/b"):
        assert run("models", "add", "acme", "--name", model).stderr == ""
    run("models", "add", "acme", "--name", "acme/a", code=2)
    run("models", "add", "acme", "--name", "acme/a", "--force")
    listed = run("list", "models", "acme/").stdout.split()
    assert [one for one in listed if one.startswith("acme/")] == ["acme/a", "acme/b"]
    assert checked(run, tmp_path, "acme/b")["unknown"] == {}


def test_a_file_that_nobody_reads_is_said(tmp_path: Path, run: Run) -> None:
    write_checkpoint(tmp_path / "acme")
    done = run("models", "add", "acme", "--to", "other.yaml")
    assert "other.yaml is not read by checks" in done.stderr
    assert [one["id"] for one in records(tmp_path, "other.yaml")] == ["acme"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &a [x]\nb: *a\n", "records have no aliases"),
        ("[" * 60 + "]" * 60, "deeper than any record"),
        ("- 1\n", "not a list of records"),
        ("id: one\nconfig: {}\n", "no YAML list at the left edge"),
        ("{", "expected"),
    ],
)
def test_a_file_that_is_no_catalogue(tmp_path: Path, run: Run, text: str, why: str) -> None:
    write_checkpoint(tmp_path / "acme")
    (tmp_path / OWN).write_text(text, encoding="utf-8")
    done = run("models", "add", "acme", code=2)
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / OWN).read_text(encoding="utf-8") == text


def test_a_catalogue_that_cannot_be_read_fails_the_run(tmp_path: Path, run: Run) -> None:
    (tmp_path / OWN).write_text("a: &a [x]\nb: *a\n", encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(SPEC % "Qwen/Qwen3-8B", encoding="utf-8")
    done = run("check", "spec.yaml", code=2)
    assert f"{OWN}: records have no aliases" in done.stdout
    assert OWN in run("list", "models", code=2).stderr

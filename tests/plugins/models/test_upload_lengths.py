"""Context lengths in which uploads differ from the architecture that they share."""

from __future__ import annotations

from pathlib import Path

import pytest

import capcheck_models
from capcheck import Architecture, Catalogue, Shelf
from capcheck_models.source import Models

DATA = Path(capcheck_models.__file__).parent / "data"
CATALOGUE = Catalogue([Shelf("model", DATA / "models.jsonl", "models")])


def built(name: str) -> Architecture:
    found = Models().find(name, CATALOGUE)
    assert found is not None
    assert not any("position" in remark for remark in found.may_differ)
    return found.architecture


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 262144),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", 262144),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", 262144),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 262144),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 32768),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 32768),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", 131072),
    ],
)
def test_the_uploads_own_length(name: str, length: int) -> None:
    one = built(name)
    assert one.max_positions == length
    assert one.start_positions in (None, length)
    assert one.most_positions_without_yarn in (None, length)


def test_the_shared_architecture_keeps_its_own() -> None:
    built("Qwen/Qwen3-30B-A3B-Instruct-2507")
    assert built("Qwen/Qwen3-30B-A3B").max_positions == 40960

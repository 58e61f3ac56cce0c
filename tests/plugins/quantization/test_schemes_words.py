from __future__ import annotations

from typing import Any

import pytest

from capcheck.quantization import Scheme
from capcheck_quantization.schemes import from_words, near_words, online, precisions


@pytest.mark.parametrize("word", precisions())
def test_every_precision_is_written_and_known(word: str) -> None:
    scheme = from_words(word)
    if word in ("bf16", "fp16", "fp32"):
        assert scheme is None
    else:
        assert scheme is not None
        assert scheme.seen == "written"
        assert scheme.source
        assert 1 < scheme.bits <= 8.6
        assert set(scheme.guessed) <= set(Scheme._fields)


def test_other_spellings_and_case() -> None:
    assert from_words("AWQ") == from_words("awq-int4")
    assert from_words(" W4A16 ") == from_words("int4")
    written = from_words("awq")
    assert written is not None
    assert from_words("awq", "name") == written._replace(seen="name")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("awk-int4", "awq-int4"), ("q4_km", "q4_k_m"), ("fp8block", "fp8-block"), ("nvpf4", "nvfp4")],
)
def test_did_you_mean(wrong: str, meant: str) -> None:
    assert from_words(wrong) is None
    assert near_words(wrong)[0] == meant


def test_nothing_is_near_nonsense() -> None:
    assert near_words("zzzzzz") == ()


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("fp8", {"weight": "fp8_e4m3", "group": -1}),
        ("FP8_per_block", {"block": (128, 128)}),
        ("bitsandbytes", {"weight": "nf4", "nested": False}),
        ("experts_int8", {"weight": "int8", "roles": ("expert",)}),
    ],
)
def test_what_an_option_does_while_loading(option: str, expected: dict[str, Any]) -> None:
    scheme = online(option)
    assert scheme is not None
    assert scheme.seen == "online"
    assert {name: getattr(scheme, name) for name in expected} == expected


@pytest.mark.parametrize("option", ["awq", "gptq", "modelopt", "compressed-tensors", ""])
def test_options_that_need_a_packed_checkpoint(option: str) -> None:
    assert online(option) is None

"""Safetensors headers: worked examples by the format's own layout, and files that lie."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from checkpoint_kit import PARAMETERS, llama_tensors, safetensors, write_checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from capcheck.safetensors_header import (
    SafetensorsError,
    StoredTensor,
    parse_safetensors,
    read_shards,
    shards_of,
)

WHOLE = safetensors(llama_tensors(layers=1))


def parsed(data: bytes) -> tuple[StoredTensor, ...]:
    return parse_safetensors(io.BytesIO(data), len(data))


def by_hand(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_a_file_by_hand() -> None:
    """The length of the header as eight bytes, the header, then 2 x 3 values of two bytes."""
    told = {"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}
    (tensor,) = parsed(by_hand(told, bytes(12)))
    assert tuple(tensor) == ("w", "BF16", (2, 3))
    assert (tensor.elements, tensor.bytes) == (6, 12)


def test_half_bytes_and_scalars() -> None:
    told = {
        "packed": {"dtype": "F4", "shape": [4, 2], "data_offsets": [0, 4]},
        "one": {"dtype": "F32", "shape": [], "data_offsets": [4, 8]},
    }
    assert [(one.elements, one.bytes) for one in parsed(by_hand(told, bytes(8)))] == [
        (8, 4), (1, 4),
    ]  # fmt: skip


def _one(**changes: object) -> bytes:
    return by_hand(
        {"w": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4], **changes}}, bytes(4)
    )


TWO = {
    "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
    "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]},
}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0", "within the length"),
        (b"\xff" * 8, "do not fit it"),
        (by_hand(b"{"), "not JSON"),
        (by_hand(b"\xff\xfe"), "not JSON"),
        (by_hand(b"[" * 5000), "not JSON"),
        (by_hand([1]), "not a JSON object"),
        (by_hand(b'{"a": 1, "a": 2}'), "there twice"),
        (by_hand({"w": 1}), "unknown dtype None"),
        (_one(dtype="U9"), "unknown dtype 'U9'"),
        (_one(shape=[-4]), "no shape"),
        (_one(shape=[True, 4]), "no shape"),
        (_one(data_offsets=[0]), "where it lies"),
        (_one(data_offsets=[4, 0]), "takes -4 bytes"),
        (_one(shape=[5]), "takes 4 bytes, not 5"),
        (by_hand(TWO, bytes(3)), "overlap or leave holes"),
        (_one() + b"\0", "the file has 5"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    ],
)
def test_what_is_no_sound_file(data: bytes, why: str) -> None:
    with pytest.raises(SafetensorsError, match=why):
        parsed(data)


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_is_cut_never_reads_as_whole(length: int) -> None:
    with pytest.raises(SafetensorsError):
        parsed(WHOLE[:length])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 255)), max_size=6))
def test_changed_bytes_raise_nothing_else(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    try:
        found = parsed(bytes(data))
    except SafetensorsError:
        return
    assert sum(one.bytes for one in found) <= len(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
_ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["U8", "F4", "BF16"]) | _JSON,
        "shape": st.lists(st.integers(-1, 4), max_size=3) | _JSON,
        "data_offsets": st.lists(st.integers(-1, 9), max_size=3) | _JSON,
    },
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(max_size=3), _ENTRY, max_size=3), st.binary(max_size=8))
def test_any_header_raises_nothing_else(header: dict[str, Any], data: bytes) -> None:
    try:
        found = parsed(by_hand(header, data))
    except SafetensorsError:
        return
    assert sum(one.bytes for one in found) == len(data)


# folders


def test_several_files_through_their_index(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, files=3)
    assert len(shards_of(tmp_path)) == 3
    assert sum(one.elements for one in read_shards(tmp_path)) == PARAMETERS


def test_the_index_decides_which_files_count(tmp_path: Path) -> None:
    """Mistral's repositories hold everything twice."""
    write_checkpoint(tmp_path, files=2)
    (tmp_path / "consolidated.safetensors").write_bytes(safetensors(llama_tensors()))
    assert sum(one.elements for one in read_shards(tmp_path)) == PARAMETERS


def test_no_weights_are_no_fault(tmp_path: Path) -> None:
    assert read_shards(tmp_path) == ()


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("[]", "not a JSON object"),
        ("{}", "weight_map is missing"),
        ('{"weight_map": {"a": "../../etc/passwd"}}', "no file of this folder"),
        ('{"weight_map": {"a": ".."}}', "no file of this folder"),
        ('{"weight_map": {"a": 1}}', "no file of this folder"),
        ('{"weight_map": {"a": "gone.safetensors"}}', "is not there"),
    ],
)
def test_an_index_that_cannot_be_followed(tmp_path: Path, index: str, why: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    with pytest.raises(SafetensorsError, match=why):
        read_shards(tmp_path)


def test_a_tensor_of_the_index_that_no_file_has(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, files=2)
    index = tmp_path / "model.safetensors.index.json"
    told = json.loads(index.read_text(encoding="utf-8"))
    told["weight_map"]["lost.weight"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(
        SafetensorsError, match=r"lost\.weight, which the index names, is in no file"
    ):
        read_shards(tmp_path)

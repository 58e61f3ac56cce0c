"""GGUF headers: worked examples by the format's own layout, and files that lie."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from checkpoint_kit import GGUF_METADATA, PARAMETERS, gguf, gguf_tensors, stored_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from capcheck.ggml_types import TYPES
from capcheck.gguf_header import (
    MOST_KEPT,
    GgufArray,
    GgufError,
    GgufHeader,
    parse_gguf,
    parts_of,
    read_gguf,
    read_whole,
)

WHOLE = gguf(GGUF_METADATA, gguf_tensors())
HEADER_END = WHOLE.rindex(b"ffn_norm.weight") + 60


def parsed(data: bytes) -> GgufHeader:
    return parse_gguf(io.BytesIO(data), len(data))


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_by_hand(version: int) -> None:
    """Magic, version, one tensor, one key; then key, type 4, 7; then name, 2 dimensions, type 8."""
    data = b"GGUF" + struct.pack("<IQQ", version, 1, 1)
    data += struct.pack("<Q", 3) + b"a.b" + struct.pack("<II", 4, 7)
    data += struct.pack("<Q", 1) + b"w" + struct.pack("<IQQIQ", 2, 64, 3, 8, 0)
    data += bytes(-len(data) % 32)
    # Q8_0 stores 32 values in 34 bytes: two blocks a row, three rows.
    header = parsed(data + bytes(6 * 34))
    assert header.metadata == {"a.b": 7}
    (tensor,) = header.tensors
    assert (tensor.name, tensor.shape, tensor.type) == ("w", (64, 3), "Q8_0")
    assert (tensor.parameters, tensor.bytes) == (192, 204)


def test_a_models_metadata_and_sums() -> None:
    header = parsed(WHOLE)
    assert header.architecture == "llama"
    assert header.own("block_count") == 2
    assert header.own("rope.freq_base") == pytest.approx(10000.0)
    assert header.parameters == PARAMETERS
    tokens = header.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, GgufArray)
    assert (tokens.length, tokens.values[3]) == (1024, "t3")
    # Q6_K: 256 values in 210 bytes; the head has 1024 x 256 of them.
    assert header.bytes_by_type()["Q6_K"] == 1024 * 210
    assert header.bytes == sum(header.bytes_by_type().values())


def test_bits_of_common_types() -> None:
    """llama.cpp's own table of bits per weight."""
    bits = {one.name: one.size * 8 / one.block for one in TYPES.values()}
    known = {"Q4_K": 4.5, "Q6_K": 6.5625, "Q8_0": 8.5, "Q5_K": 5.5, "Q3_K": 3.4375, "Q2_K": 2.625,
             "IQ4_XS": 4.25, "IQ2_XXS": 2.0625, "BF16": 16.0, "MXFP4": 4.25}  # fmt: skip
    assert {name: bits[name] for name in known} == known


def test_a_long_list_is_only_counted() -> None:
    metadata = {"general.architecture": "x", "words": ["ab"] * (MOST_KEPT + 1), "n": [1, 2]}
    header = parsed(gguf(metadata, {}))
    assert header.metadata["words"] == GgufArray(MOST_KEPT + 1, ())
    assert header.metadata["n"] == GgufArray(2, (1, 2))


def test_an_unknown_type_has_the_bytes_up_to_the_next_tensor() -> None:
    data = bytearray(gguf({}, {"a": ("F32", (8,)), "b": ("F32", (8,))}))
    at = data.index(b"a") + 1 + 4 + 8
    data[at : at + 4] = struct.pack("<I", 99)
    first, second = parsed(bytes(data)).tensors
    assert (first.type, first.bytes) == ("type 99", 32)
    assert (second.type, second.bytes) == ("F32", 32)


def _with(offset: int, form: str, value: int) -> bytes:
    data = bytearray(WHOLE)
    struct.pack_into(form, data, offset, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "ends within its first word"),
        (b"GGML" + WHOLE[4:], "does not begin with GGUF"),
        (_with(4, "<I", 1), "version 1 is not read"),
        (_with(4, ">I", 3), "big-endian"),
        (_with(8, "<Q", 2**63), "ends within"),
        (_with(16, "<Q", 2**63), "a key is [0-9,]+ bytes long"),
        (_with(24, "<Q", 2**40), "is 1,099,511,627,776 bytes long"),
        (WHOLE[:-1], "cut short"),
        (gguf({}, {"w": ("Q4_K", (255, 2))}), "no whole blocks of 256"),
        (gguf({"general.alignment": 0}, {}), "general.alignment is 0"),
    ],
)
def test_what_is_no_sound_file(data: bytes, why: str) -> None:
    with pytest.raises(GgufError, match=why):
        parsed(data)


def test_names_that_are_there_twice() -> None:
    twice = gguf({"a": 1, "b": 2}, {}).replace(b"b", b"a", 1)
    with pytest.raises(GgufError, match="the key a is there twice"):
        parsed(twice)
    twice = gguf({}, {"v": ("F32", (8,)), "w": ("F32", (8,))}).replace(b"w", b"v", 1)
    with pytest.raises(GgufError, match="two tensors have one name"):
        parsed(twice)


def test_lists_of_lists_are_refused() -> None:
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    data += struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", 9, 9, 1) + bytes(64)
    with pytest.raises(GgufError, match="list of lists"):
        parsed(data)


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_is_cut_never_reads_as_whole(length: int) -> None:
    with pytest.raises(GgufError):
        parsed(WHOLE[:length])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, HEADER_END), st.integers(0, 255)), max_size=8))
def test_changed_bytes_raise_nothing_else(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value
    try:
        header = parsed(bytes(data))
    except GgufError:
        return
    assert all(0 <= one.bytes <= len(data) for one in header.tensors)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"GGUF\3\0\0\0", b"GGUF\2\0\0\0"]))
def test_garbage_raises_nothing_else(data: bytes, before: bytes) -> None:
    try:
        parsed(before + data)
    except GgufError:
        return


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12),
        st.integers(0, 2**32 - 1) | st.booleans() | st.text(max_size=12),
        max_size=6,
    ).filter(lambda found: "general.alignment" not in found),
    st.dictionaries(
        st.text(min_size=1, max_size=12),
        st.tuples(
            st.sampled_from(["F32", "F16", "Q8_0"]),
            st.lists(st.integers(1, 4), max_size=3).map(lambda rest: (32, *rest)),
        ),
        max_size=6,
    ),
)
def test_what_was_written_is_read(
    metadata: dict[str, object], tensors: dict[str, tuple[str, tuple[int, ...]]]
) -> None:
    header = parsed(gguf(metadata, tensors))
    assert header.metadata == metadata
    assert {one.name: (one.type, one.shape) for one in header.tensors} == tensors
    assert {one.name: one.bytes for one in header.tensors} == {
        name: stored_bytes(*told) for name, told in tensors.items()
    }


def test_a_model_in_several_files(tmp_path: Path) -> None:
    tensors = gguf_tensors()
    names = list(tensors)
    for number, part in enumerate((names[:5], names[5:]), 1):
        metadata = GGUF_METADATA if number == 1 else {"split.no": 1}
        data = gguf(metadata, {name: tensors[name] for name in part})
        (tmp_path / f"acme-{number:05d}-of-00002.gguf").write_bytes(data)
    first = tmp_path / "acme-00001-of-00002.gguf"
    assert read_whole(first).parameters == PARAMETERS
    assert read_whole(first).architecture == "llama"
    assert read_gguf(first).parameters < PARAMETERS
    parts_of(first)[1].unlink()
    with pytest.raises(GgufError, match=r"acme-00002-of-00002\.gguf is not there"):
        read_whole(first)


def test_one_file_has_one_part() -> None:
    assert parts_of(Path("acme.gguf")) == (Path("acme.gguf"),)
    assert parts_of(Path("acme-00001-of-00000.gguf")) == (Path("acme-00001-of-00000.gguf"),)

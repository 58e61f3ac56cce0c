"""Worked examples of the warm-up accounting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tgi_specs import case_of

from capcheck import GIB
from capcheck_tgi.defaults import attention, block_tokens, graph_sizes, prefill_by_compute
from capcheck_tgi.memory import warm_up_tokens
from capcheck_tgi.releases import ROOM, releases, room


@pytest.mark.parametrize(
    ("version", "share"),
    [((1, 1, 0), 1.0), ((1, 4, 1), 0.95), ((2, 3, 1), 0.95), ((2, 4, 0), 0.90), ((3, 0, 2), 0.95),
     ((3, 2, 3), 0.93), ((3, 3, 7), 0.90)],
)  # fmt: skip
def test_the_share_that_is_not_kept_back(version: tuple[int, ...], share: float) -> None:
    """The literal 0.95 of the warm-up, later TGI_WIGGLE_ROOM's default; read in the sources."""
    assert room(version) == share


def test_a_line_for_each_thing_and_the_rest_kept_back() -> None:
    """3.3: the pool is 90 % of the device less the weights and one prefill step."""
    case = case_of(args={"max_batch_prefill_tokens": 4096, "max_total_tokens": 8192})
    ledger = case.ledger(case.terms())
    used = sum(line.bytes for line in ledger.lines if line.name != "kept back")
    assert ledger.kv == pytest.approx(0.90 * ledger.visible - used)
    assert ledger.bytes_of("kept back") == pytest.approx(0.10 * ledger.visible)
    # 32 layers x 8 KV heads x 128 x 2 x 2 bytes
    assert case.kv().bytes_per_token == 131072


def test_before_3_the_share_is_one_of_what_is_free() -> None:
    """2.0: 95 % of what is left beside the warm-up's own blocks, which are counted in again."""
    case = case_of(
        version="2.0.4",
        args={"max_input_tokens": 2048, "max_total_tokens": 4096, "max_batch_prefill_tokens": 4096},
    )
    ledger = case.ledger(case.terms())
    free = ledger.visible - sum(one.bytes for one in ledger.lines if one.name != "kept back")
    taken = 2 * 4096 * 131072  # two prompts of 2,048, each with room for 4,096 tokens
    assert warm_up_tokens(case) == 2 * 4096
    assert ledger.kv == pytest.approx(0.95 * (free - taken) + taken)


def test_prefill_logprobs_are_part_of_the_warm_up_until_3() -> None:
    """Logits and log-softmax of every prompt token: 6.3 B x 4,096 x 128,256."""
    args = {"max_batch_prefill_tokens": 4096, "max_input_tokens": 4000, "max_total_tokens": 4096}
    old = case_of(version="2.4.1", args=args)
    new = case_of(version="3.0.0", args=args)
    asked = case_of(version="3.0.0", args={**args, "enable_prefill_logprobs": True})
    peak = 6.3 * 4096 * 128256
    assert old.ledger(old.terms()).bytes_of("prefill logprobs") == pytest.approx(peak)
    assert new.ledger(new.terms()).bytes_of("prefill logprobs") == 0
    assert asked.ledger(asked.terms()).bytes_of("prefill logprobs") == pytest.approx(peak)


def test_a_smaller_fraction_is_a_smaller_budget() -> None:
    whole = case_of(args={"max_total_tokens": 8192})
    half = case_of(args={"max_total_tokens": 8192, "cuda_memory_fraction": 0.5})
    assert half.ledger(half.terms()).budget == pytest.approx(
        0.5 * whole.ledger(whole.terms()).budget
    )


def test_an_fp8_cache_holds_twice_the_tokens() -> None:
    wide = case_of(args={"max_total_tokens": 8192})
    narrow = case_of(args={"max_total_tokens": 8192, "kv_cache_dtype": "fp8_e4m3fn"})
    assert narrow.kv().bytes_per_token == wide.kv().bytes_per_token / 2


@pytest.mark.parametrize(
    ("version", "model", "capability", "kernel", "slots"),
    [((2, 2, 0), "meta-llama/Llama-3.1-8B-Instruct", 9.0, "paged", 16),
     ((3, 3, 0), "meta-llama/Llama-3.1-8B-Instruct", 9.0, "flashinfer", 1),
     ((3, 3, 0), "microsoft/Phi-3.5-mini-instruct", 9.0, "flashdecoding", 256),
     ((3, 3, 0), "microsoft/Phi-3.5-mini-instruct", 7.5, "paged", 16)],
)  # fmt: skip
def test_the_kernel_decides_the_block(
    version: tuple[int, ...], model: str, capability: float, kernel: str, slots: int
) -> None:
    """Heads of 64, 128 and 256 go to flashinfer; Phi-3.5 has 96. Read in the launcher."""
    built = case_of(model).model.get().architecture
    assert attention(version, built, capability) == kernel
    assert block_tokens(kernel) == slots


def test_3_computes_its_prefill_step() -> None:
    """125 TFLOP/s of an A10G over the 15.0 GFLOP of a token of Mistral-7B: 8,315 tokens."""
    case = case_of("mistralai/Mistral-7B-Instruct-v0.3", "nvidia/a10g", version="3.2.3")
    assert case.plan.max_step_tokens.get() == 8315


@given(st.integers(1, 16), st.floats(0.8, 1.0))
def test_more_devices_never_take_a_smaller_step(shards: int, fraction: float) -> None:
    case = case_of("mistralai/Mistral-7B-Instruct-v0.3", "nvidia/a10g", version="3.2.3")
    built, part = case.model.get().architecture, case.accelerator.get()
    steps = [
        prefill_by_compute((3, 2, 3), built, part, count, fraction)
        for count in (shards, shards + 1)
    ]
    assert 1 <= steps[0] <= steps[1] <= (built.max_positions or 0)


@given(st.lists(st.integers(0, 512), max_size=8))
def test_graph_sizes_are_those_above_zero(sizes: list[int]) -> None:
    words = ",".join(str(size) for size in sizes)
    assert graph_sizes(words) == tuple(size for size in sizes if size > 0)


@given(st.integers(256, 65536), st.integers(1, 64))
def test_the_pool_never_exceeds_what_is_left(prefill: int, batch: int) -> None:
    case = case_of(
        version="2.4.1",
        args={"max_input_tokens": 255, "max_total_tokens": 512,
              "max_batch_prefill_tokens": prefill, "max_batch_size": batch},
    )  # fmt: skip
    ledger = case.ledger(case.terms())
    used = sum(line.bytes for line in ledger.lines if line.name != "kept back")
    assert ledger.kv <= ledger.visible - used + 1
    assert ledger.kv < 48 * GIB


@given(st.sampled_from([first for first, _ in ROOM]))
def test_a_named_release_is_one_release(version: tuple[int, ...]) -> None:
    text = ".".join(str(part) for part in version)
    (found,) = releases(text, "")
    assert found.known
    assert found.version == version


def test_an_unknown_release_is_every_era_that_is_still_pulled() -> None:
    found = releases(None, "the image has no tag")
    assert [one.known for one in found] == [False] * 3
    assert found[0].why == "the image has no tag"
    assert all("older" in one.why for one in releases("0.9.4", ""))

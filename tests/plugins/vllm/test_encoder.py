"""What vLLM encodes while it profiles its memory, by release, model class and options.

Counts are those of its log line "Encoder cache will be initialized with a budget of N tokens, and
profiled with M items", of start-up logs or worked out from the sources of the named release.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck import Case, Unknown
from capcheck.physics.encoders import items_within, steps_within, transient_bytes
from capcheck.quantity import GIB
from capcheck.terms import spread
from capcheck.testing import Bench
from capcheck_vllm.encoder import Encoding, deepstack_buffer_bytes, encoding
from capcheck_vllm.mm_options import limit_of, options_of

QWEN25_VL = "Qwen/Qwen2.5-VL-7B-Instruct"
QWEN3_VL = "Qwen/Qwen3-VL-30B-A3B-Instruct"
QWEN35 = "Qwen/Qwen3.5-27B"
GEMMA3 = "google/gemma-3-27b-it"
MLLAMA = "meta-llama/Llama-3.2-11B-Vision-Instruct"
H100 = "nvidia/h100-sxm5-80gb"


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_of(bench: Bench, model: str, release: str, accelerator: str = H100, **args: Any) -> Case:
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "encoder",
        "model": {"id": model},
        "hardware": {
            "accelerator": accelerator,
            "count": args.get("tensor_parallel_size", 1),
        },
        "engine": {"name": "vllm", "version": release, "args": args},
    }
    return bench.cases(json.dumps(spec))[0]


def encoded(
    bench: Bench, model: str, release: str, accelerator: str = H100, **args: Any
) -> Encoding:
    case = case_of(bench, model, release, accelerator, **args)
    return encoding(case, case.terms())


@pytest.mark.parametrize(
    ("model", "release", "args", "words"),
    [
        # Logged: 153600/1 video (0.12.0), 16384/1 image (0.19.0), 2496/1 video (0.25.1),
        # 7 images of 2,048 tokens (0.13.0rc2), 31 images of 8,192 tokens (0.11.0rc2).
        (QWEN3_VL, "0.12.0", {"max_model_len": 65536}, "1 video of 153,600 tokens"),
        (QWEN35, "0.19.0", {"max_model_len": 50000}, "1 image of 16,384 tokens"),
        (
            "google/gemma-4-26B-A4B-it", "0.25.1", {"max_num_batched_tokens": 2496},
            "1 video of 2,496 tokens",
        ),
        (
            "google/gemma-3-12b-it", "0.13.0rc2", {"max_num_batched_tokens": 2048},
            "7 images of 260 tokens",
        ),
        (
            GEMMA3, "0.11.0rc2.dev98", {"max_model_len": 4096, "max_num_batched_tokens": 8192},
            "31 images of 260 tokens",
        ),
        # From 0.14 what lies around an image counts no more: 8,192 / 256.
        (GEMMA3, "0.14.0", {"max_num_batched_tokens": 8192}, "32 images of 256 tokens"),
        # 0.14: no timestamps, 25,165,824 / (2 x 32 x 32) = 12,288 < 16,384.
        (QWEN3_VL, "0.14.0", {"max_model_len": 65536}, "1 image of 16,384 tokens"),
        # Fourteen frames in seven steps from 0.11; eight steps beside an image before 0.10.2.
        (QWEN25_VL, "0.12.0", {"max_model_len": 128000}, "1 video of 114,688 tokens"),
        (QWEN25_VL, "0.9.2", {"max_model_len": 65536}, "1 video of 49,152 tokens"),
        (QWEN25_VL, "0.12.0", {"max_model_len": 8192}, "1 image of 16,384 tokens"),
        # Among equals the last name counts from 0.17.
        (QWEN25_VL, "0.19.1", {"max_model_len": 8192}, "1 video of 16,384 tokens"),
        # 28 x 28 x 2 x 30,000 pixels of all frames.
        ("zai-org/GLM-4.5V", "0.19.1", {"max_model_len": 65536}, "1 video of 30,000 tokens"),
        # (32,768 - 13 x 256) / 256 = 115 frames.
        ("OpenGVLab/InternVL3-8B", "0.19.1", {"max_model_len": 32768}, "1 video of 29,440 tokens"),
        # Seventeen tiles of 144; 8,192 // 2,448 = 3, rounded up before 0.10.
        (
            "meta-llama/Llama-4-Scout-17B-16E-Instruct", "0.12.0", {"max_num_batched_tokens": 8192},
            "3 images of 2,448 tokens",
        ),
        (
            "meta-llama/Llama-4-Scout-17B-16E-Instruct", "0.9.2", {"max_num_batched_tokens": 8192},
            "4 images of 2,448 tokens",
        ),
    ],
)  # fmt: skip
def test_items(bench: Bench, model: str, release: str, args: dict[str, Any], words: str) -> None:
    assert encoded(bench, model, release, **args).words == words


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"video": 0}, "1 image of 16,384 tokens"),
        ('{"image": 2, "video": 0}', "1 image of 16,384 tokens"),
        ({"image": 0}, "1 video of 114,688 tokens"),
        ({"video": {"count": 0}, "image": {"count": 1}}, "1 image of 16,384 tokens"),
        ({"image": 0, "video": 0}, ""),
    ],
)
def test_limits_turn_modalities_off(bench: Bench, limits: Any, words: str) -> None:
    found = encoded(bench, QWEN25_VL, "0.12.0", max_model_len=128000, limit_mm_per_prompt=limits)
    assert found.words == words
    assert (found.kept_bytes > 0) == bool(words)


def test_the_older_spelling_of_limits(bench: Bench) -> None:
    case = case_of(bench, QWEN25_VL, "0.8.5", limit_mm_per_prompt="image=2,video=0")
    limits = options_of(case, "limit_mm_per_prompt")
    assert [limit_of(limits, name, 999).number for name in ("image", "video", "audio")] == [
        2, 0, 999,
    ]  # fmt: skip


def test_limits_that_cannot_be_read_are_not_guessed(bench: Bench) -> None:
    with pytest.raises(Unknown, match="limit_mm_per_prompt"):
        encoded(bench, QWEN25_VL, "0.12.0", limit_mm_per_prompt="[1")


@pytest.mark.parametrize(
    ("model", "release", "options", "words"),
    [
        (QWEN35, "0.19.0", {"max_pixels": 1_003_520}, "2 images of 980 tokens"),
        (QWEN35, "0.19.0", {"size": {"longest_edge": 1_048_576}}, "2 images of 1,024 tokens"),
        (GEMMA3, "0.19.1", {"do_pan_and_scan": True}, "1 image of 1,280 tokens"),
        (
            "OpenGVLab/InternVL3-8B", "0.19.1", {"max_dynamic_patch": 4},
            "1 image of 1,280 tokens",
        ),
    ],
)  # fmt: skip
def test_processor_options(
    bench: Bench, model: str, release: str, options: dict[str, Any], words: str
) -> None:
    found = encoded(
        bench, model, release, mm_processor_kwargs=options, max_num_batched_tokens=2048,
        limit_mm_per_prompt={"video": 0}, max_model_len=8192,
    )  # fmt: skip
    assert found.words == words


def test_a_smaller_profiled_image_is_encoded_but_not_counted(bench: Bench) -> None:
    """Qwen's class tells the limit of the processor whatever the dummy image is."""
    limits = {"image": {"count": 1, "width": 1024, "height": 1024}, "video": 0}
    small = encoded(bench, QWEN35, "0.19.0", limit_mm_per_prompt=limits)
    large = encoded(bench, QWEN35, "0.19.0", limit_mm_per_prompt={"image": 1, "video": 0})
    assert small.words == large.words == "1 image of 16,384 tokens"
    assert small.kept_bytes * 16 == large.kept_bytes  # 32 x 32 against 128 x 128 tokens


@pytest.mark.parametrize("option", ["skip_mm_profiling", "language_model_only"])
def test_nothing_is_encoded_when_it_is_turned_off(bench: Bench, option: str) -> None:
    args: dict[str, Any] = {option: True}
    assert encoded(bench, QWEN35, "0.19.0", **args) == Encoding(0.0, 0.0)


def test_models_of_text_encode_nothing(bench: Bench) -> None:
    assert encoded(bench, "Qwen/Qwen3-8B", "0.19.0") == Encoding(0.0, 0.0)


def test_outputs_are_padded_from_0_11_to_0_13(bench: Bench) -> None:
    """Qwen3-VL's video of 12,288 tokens is kept as 153,600 rows of four hidden states."""
    found = encoded(bench, QWEN3_VL, "0.12.0", max_model_len=65536, max_num_batched_tokens=8192)
    rows = 153_600 * 2048 * 2 * 4
    pixels = 12_288 * 4 * 3 * 2 * 16 * 16 * 2
    assert found.kept_bytes == rows + pixels
    images = encoded(bench, GEMMA3, "0.11.0", max_num_batched_tokens=8192, max_model_len=4096)
    assert images.kept_bytes > 31 * 8192 * 5376 * 2


def test_hidden_states_of_a_step_are_set_aside_for_deepstack(bench: Bench) -> None:
    """The 0.09 GiB by which a logged 29.31 GiB of weights exceed the checkpoint's tensors."""
    deep = case_of(bench, QWEN3_VL, "0.12.0", max_num_batched_tokens=8192)
    assert deepstack_buffer_bytes(deep) == 3 * 8192 * 2048 * 2
    assert deepstack_buffer_bytes(case_of(bench, QWEN35, "0.19.0")) == 0


def test_devices_that_encode_whole_items(bench: Bench) -> None:
    """mm_encoder_tp_mode data: one image is encoded by one device alone."""
    args: dict[str, Any] = {"tensor_parallel_size": 4, "max_model_len": 8192}
    sharded = encoded(bench, QWEN35, "0.22.1", **args)
    whole = encoded(bench, QWEN35, "0.22.1", mm_encoder_tp_mode="data", **args)
    alone = encoded(bench, QWEN35, "0.22.1", max_model_len=8192)
    assert whole.peak_bytes == alone.peak_bytes > sharded.peak_bytes


# Total x utilization - weights - pool, GiB, in logs of public reports; the sampler (13.3 bytes a
# logit, 38.3 before 0.17) and the encoder's share explain it but for what is no tensor.
@pytest.mark.parametrize(
    ("model", "release", "accelerator", "args", "other", "rest"),
    [
        (
            QWEN35, "0.19.0", "nvidia/rtx-3090", {"tensor_parallel_size": 4, "max_num_seqs": 1},
            0, 1.16,
        ),
        (QWEN35, "0.19.0", "nvidia/rtx-3090", {"tensor_parallel_size": 4}, 0.81, 1.25),
        (
            QWEN3_VL, "0.12.0", H100,
            {"tensor_parallel_size": 2, "max_model_len": 65536, "max_num_batched_tokens": 8192},
            1.42, 4.73,
        ),
        (
            "Qwen/Qwen3.6-27B", "0.17.2", "nvidia/b200-180gb", {"max_num_batched_tokens": 8192},
            3.23, 4.18,
        ),
    ],
)  # fmt: skip
def test_what_start_up_logs_leave_for_activations(
    bench: Bench, model: str, release: str, accelerator: str, args: dict[str, Any],
    other: float, rest: float,
) -> None:  # fmt: skip
    found = encoded(bench, model, release, accelerator, **args)
    activation = found.kept_bytes / GIB + max(other, found.peak_bytes / GIB)
    assert -0.05 < rest - activation < 0.9  # NCCL, contexts and graphs are in the rest


def test_older_releases_profile_whole_prompts(bench: Bench) -> None:
    """V0 on a Jetson: 2.47 GiB with videos off and 4.93 GiB with them, both of the decoder's pass
    over one prompt: 16,384 tokens for each allowed modality."""
    both = encoded(bench, QWEN25_VL, "0.7.3", "nvidia/l4", max_model_len=4096)
    one = encoded(
        bench, QWEN25_VL, "0.7.3", "nvidia/l4", max_model_len=4096,
        limit_mm_per_prompt={"image": 1, "video": 0},
    )  # fmt: skip
    assert (both.step_tokens, both.rows) == (32_768, 1)
    assert (one.step_tokens, one.rows) == (16_384, 1)
    per_token = 2 * (4 * 3584 + 3 * 18_944)
    for found, logged in ((both, 4.93), (one, 2.47)):
        decoder = found.kept_bytes + found.step_tokens * per_token
        whole = max(decoder, found.kept_bytes + found.peak_bytes)
        assert whole / GIB == pytest.approx(logged, rel=0.06)


def test_cross_attention_encodes_an_image_for_each_sequence(bench: Bench) -> None:
    """Public report: 128 sequences leave 2,252 blocks of 2.5 MiB on a card of 94 GiB that holds
    19.9 GiB of weights, so they take 58 GiB; 256 do not fit."""
    many = encoded(bench, MLLAMA, "0.6.6", max_model_len=32)
    few = encoded(bench, MLLAMA, "0.6.6", max_model_len=512, max_num_seqs=128)
    assert many.words == "256 images of 6,404 tokens"
    left = 93.6 * 0.9 - 19.86 - 2252 * 2.5 / 1024
    assert (few.peak_bytes + few.kept_bytes) / GIB == pytest.approx(left, rel=0.05)
    assert (many.peak_bytes + many.kept_bytes) / GIB > 94 - 19.86


def test_the_band_holds_the_spread_of_its_terms(bench: Bench) -> None:
    case = case_of(bench, QWEN35, "0.19.0", max_model_len=8192)
    terms = case.terms()
    encoding(case, terms)
    band = spread(lambda t: encoding(case, t).peak_bytes, terms).band
    assert 0 < band.low < band.mid < band.high
    assert all(name.startswith("vllm.encoder_") for name in terms.reads)


SIZES = st.integers(min_value=64, max_value=8192)


@given(SIZES, SIZES, SIZES, st.integers(1, 8), st.booleans())
def test_encoding_more_takes_more_and_sharding_less(
    patches: int, hidden: int, wide: int, tensor: int, gated: bool
) -> None:
    def needed(count: int, devices: int) -> float:
        return transient_bytes(
            count, hidden, wide, tensor=devices, attention_copies=8, gated=gated, placing_copies=3
        )

    assert needed(2 * patches, tensor) == 2 * needed(patches, tensor)
    assert needed(patches, tensor) <= needed(patches, 1)
    assert needed(patches, tensor) >= patches * 3 * hidden * 2


@given(st.integers(1, 200_000), st.integers(1, 20_000), st.integers(1, 1024), st.integers(1, 999))
def test_items_stay_within_budget_and_requests(
    budget: int, tokens: int, requests: int, per_request: int
) -> None:
    fitting = items_within(budget, tokens, requests, per_request, whole=True)
    rounded = items_within(budget, tokens, requests, per_request, whole=False)
    assert 1 <= fitting <= rounded <= max(1, requests * per_request)
    assert fitting == 1 or fitting * tokens <= budget
    assert steps_within(budget, tokens, requests) <= max(1, requests)
    assert steps_within(budget, tokens) * tokens <= max(budget, tokens)

"""Which device a layer goes to: worked examples from public start-up logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck_llama_cpp.overriding import overrides, placed
from capcheck_llama_cpp.placing import owners, shares


@pytest.mark.parametrize(
    ("devices", "layers"),
    [
        (2, (17, 15)),
        (4, (9, 8, 8, 7)),
        (6, (6, 5, 6, 5, 6, 4)),
        (8, (5, 4, 4, 4, 4, 4, 4, 3)),
    ],
)
def test_equal_devices(devices: int, layers: tuple[int, ...]) -> None:
    # Llama 3 8B, 32 layers and the output: 32 MiB of cache a layer (logs of b2824 and b2833).
    found = owners(32, 10000, shares(devices, None), build=2824)
    assert tuple(found[:-1].count(device) for device in range(devices)) == layers
    assert found[-1] == devices - 1


def test_given_shares() -> None:
    found = owners(32, 99, shares(2, (3, 1)), build=9000)
    assert (found[:-1].count(0), found[:-1].count(1)) == (25, 7)
    assert shares(3, (1,)) == (1.0, 1.0, 1.0)


def test_some_layers_stay_on_the_host() -> None:
    older = owners(32, 20, shares(1, None), build=5000)
    newer = owners(32, 20, shares(1, None), build=9000)
    assert older.count(0) == 20 and older[-1] is None  # the output is the last to be offloaded
    assert newer.count(0) == 20 and newer[-1] == 0  # and now the first
    assert owners(32, 0, shares(1, None), build=9000) == (None,) * 33
    assert owners(32, 99, (), build=9000) == (None,) * 33


@given(
    st.integers(1, 130), st.integers(0, 200), st.lists(st.floats(0, 9), min_size=1, max_size=8),
    st.sampled_from([2824, 9000]),
)  # fmt: skip
def test_layers_go_in_order(layers: int, many: int, parts: list[float], build: int) -> None:
    found = owners(layers, many, shares(len(parts), parts), build=build)
    placed = [one for one in found if one is not None]
    assert len(found) == layers + 1 and len(placed) == min(many, layers + 1)
    assert placed == sorted(placed)


def test_overrides() -> None:
    rules = overrides(r"blk\.(0|1|2)\.ffn.*=CUDA1,exps=CPU")
    assert rules is not None
    assert placed("blk.1.ffn_up_exps.weight", rules, 0) == 1
    assert placed("blk.7.ffn_up_exps.weight", rules, 0) is None
    assert placed("blk.7.attn_q.weight", rules, 0) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exps",
        "exps=MOON",
        r"(a+)+b=CPU",
        r"\d+.*x+y*=CPU",
        "[=CPU",
        r"(x)\1=CPU",
        "a" * 400 + "=CPU",
    ],
)
def test_overrides_that_are_not_tried(text: str) -> None:
    assert overrides(text) is None


@given(st.text(alphabet=r"blk\.()|*+[]{}0-9,=CPUDA", max_size=60))
def test_patterns_of_strangers(text: str) -> None:
    rules = overrides(text)
    assert rules is None or placed("blk.10.ffn_down_exps.weight", rules, 3) in {
        3,
        None,
        *range(1000),
    }

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck_quantization.expressions import expressions
from capcheck_quantization.patterns import LONGEST_PATTERN, Matcher, canonical, fold, matcher


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("model.layers.3.mlp.gate", "layers.3.mlp.gate"),
        ("model.language_model.layers.3.mlp", "layers.3.mlp"),
        ("language_model.model.layers.3.mlp", "layers.3.mlp"),
        ("backbone.layers.3.mixer", "layers.3.mixer"),
        ("model.visual.blocks.0", "visual.blocks.0"),
        ("lm_head", "lm_head"),
        ("layers.3.mlp.experts.17.up_proj", "layers.3.mlp.experts.up_proj"),
    ],
)
def test_names_without_what_wraps_them(name: str, short: str) -> None:
    assert canonical(name) == short


def test_folding_is_lossless_for_layers_and_drops_expert_numbers() -> None:
    names = [f"model.layers.{n}.self_attn.q_proj" for n in (0, 1, 2, 5)]
    names += ["lm_head", "model.layers.78*", "model.layers.0*"]
    names += [f"model.layers.1.mlp.experts.{e}.up_proj" for e in range(3)]
    assert fold(names) == (
        "layers.{0-2,5}.self_attn.q_proj",
        "lm_head",
        "layers.{0,78}*",
        "layers.1.mlp.experts.up_proj",
    )


@given(st.sets(st.integers(0, 200), min_size=1, max_size=40), st.integers(0, 201))
def test_a_folded_pattern_matches_the_same_layers(indices: set[int], asked: int) -> None:
    folded = Matcher(fold(f"model.layers.{n}.mlp" for n in sorted(indices)))
    assert folded.matches(asked, "mlp.up_proj") == (asked in indices)


@pytest.mark.parametrize(
    ("pattern", "layer", "module", "expected"),
    [
        ("lm_head", None, "lm_head", True),
        ("language_model.lm_head", None, "lm_head", True),
        ("gate", 0, "mlp.gate", True),
        ("gate", 0, "mlp.gate_proj", False),
        ("mlp.gate", 0, "mlp.gate", True),
        ("model.layers.3.", 3, "mlp.gate_proj", True),
        ("model.layers.3", 30, "mlp.gate_proj", False),
        ("model.layers.*.self_attn", 7, "self_attn", True),
        ("model.layers.*.self_attn*", 7, "self_attn.q_proj", True),
        ("*.mlp.shared_expert.*", 7, "mlp.shared_expert.up_proj", True),
        ("*.mlp.shared_expert.*", 7, "mlp.shared_expert_gate", False),
        ("model.layers.1*", 1, "mlp.up_proj", True),
        ("model.layers.1*", 10, "mlp.up_proj", False),
        ("visual.*", None, "visual.blocks.0.mlp.fc1", True),
        ("model.visual*", None, "visual.blocks.0.mlp.fc1", True),
        ("vision_tower", None, "vision_tower.encoder.layers.0.mlp", True),
        ("re:.*self_attn.*", 3, "self_attn.q_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", 3, "mlp.gate_proj", True),
        ("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", 3, "mlp.experts.gate_proj", False),
        ("re:model\\.layers\\.\\d+\\.mlp\\.gate$", 11, "mlp.gate", True),
        ("re:model\\.layers\\.\\d+\\.mlp\\.gate$", 11, "mlp.gate_proj", False),
        ("re:^mtp.*", 3, "mlp.up_proj", False),
        ("re:^(?!.*experts).*up_proj", 3, "mlp.up_proj", True),
        ("re:^(?!.*experts).*up_proj", 3, "mlp.experts.up_proj", False),
        ("re:.*experts\\.[0-9]+\\.up_proj", 3, "mlp.experts.up_proj", True),
        ("model.layers.{0-2,9}.mlp", 9, "mlp.up_proj", True),
        ("model.layers.{0-2,9}.mlp", 3, "mlp.up_proj", False),
    ],
)
def test_patterns(pattern: str, layer: int | None, module: str, expected: bool) -> None:
    assert Matcher((pattern,)).matches(layer, module) is expected


@pytest.mark.parametrize(
    "pattern", ["mtp*", "mtp.*", "re:^mtp.*", "mtp.layers.0*", "model.layers.61*"]
)
def test_draft_layers_go_by_several_names(pattern: str) -> None:
    assert Matcher((pattern,)).matches(61, "mlp.up_proj", draft=True)
    assert not Matcher((pattern,)).matches(60, "mlp.up_proj")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (("lm_head", "*.mlp.gate"), False),
        (("model.layers.3.mlp",), True),
        (("layers.{0-3}.mlp",), True),
        (("re:.*layers\\.(1|2)\\..*",), True),
        (("re:.*self_attn.*",), False),
    ],
)
def test_whether_layers_are_told_apart(patterns: tuple[str, ...], expected: bool) -> None:
    assert matcher(patterns).by_layer is expected


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(.*)*x", "([a-z]+)*$", "(a{2,30}){2,30}", "(x)\\1", "[", "a(", "*a",
     "\\", "(?<=a)b", "(?P<n>a)", "a{1,1000}", "a+b+c+d"],
)  # fmt: skip
def test_costly_or_broken_expressions_are_refused(pattern: str) -> None:
    assert expressions(pattern) is None
    refusing = Matcher((f"re:{pattern}",))
    assert refusing.refused == [f"re:{pattern}"]
    assert not refusing.matches(0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")


@pytest.mark.parametrize(
    "pattern", [".*" * 60 + "x", ".*a" * 60, "[a-z._0-9]*x" + ".*y" * 50, "(?:a|b|.)*"]
)
def test_no_expression_is_slow(pattern: str) -> None:
    start = time.perf_counter()
    Matcher((f"re:{pattern}",)).matches(3, "a" * 200 + ".b")
    assert time.perf_counter() - start < 0.5


@given(st.text(alphabet="ab.*+?()[]{}|\\^$0-9,:=!<", max_size=25), st.text("ab.", max_size=40))
def test_whatever_is_accepted_matches_quickly_and_never_raises(pattern: str, name: str) -> None:
    start = time.perf_counter()
    Matcher((f"re:{pattern}", pattern)).matches(2, name)
    assert time.perf_counter() - start < 1.0


@given(st.text("ab", max_size=12))
def test_cut_expressions_match_as_whole_ones(name: str) -> None:
    import re

    for pattern in ("a.*b", ".*ab.*a$", "(?:a|b)b.+a", "^b?.*aa", "a|.*bb", "[ab]+a.*", "a.*?b"):
        found = expressions(pattern)
        assert found is not None
        assert any(one.matches(name) for one in found) == bool(re.match(pattern, name)), pattern


def test_long_and_numerous_patterns_are_dropped_visibly() -> None:
    dropping = Matcher(("x" * (LONGEST_PATTERN + 1), ""))
    assert len(dropping.refused) == 2

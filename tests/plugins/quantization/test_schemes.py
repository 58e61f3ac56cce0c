from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.quantization import Scheme
from capcheck_quantization.layouts import of_module
from capcheck_quantization.schemes import Unread, from_config, read

LINEAR = {"targets": ["Linear"]}
FP8_TOKEN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}


def compressed(form: str, weights: dict[str, Any], inputs: Any = None, **more: Any) -> Any:
    group = {**LINEAR, "weights": weights, "input_activations": inputs}
    return {"quant_method": "compressed-tensors", "format": form,
            "config_groups": {"group_0": group}, **more}  # fmt: skip


CONFIGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("fp8 blocks",
     {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
      "weight_block_size": [128, 128]},
     {"method": "fp8", "weight": "fp8_e4m3", "bits": 8, "group": 0, "block": (128, 128),
      "activation": "fp8", "activation_static": False}),
    ("fp8 per tensor, static",
     {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]},
     {"block": None, "group": -1, "activation_static": True, "excluded": ("lm_head",)}),
    ("fbgemm",
     {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.mlp", "lm_head"]},
     {"method": "fbgemm_fp8", "group": 0, "excluded": ("layers.0.mlp", "lm_head")}),
    ("awq",
     {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm",
      "modules_to_not_convert": None},
     {"method": "awq", "weight": "int4", "bits": 4, "group": 128, "zero_points": True,
      "excluded": (), "guessed": ()}),
    ("awq without its group",
     {"quant_method": "awq", "w_bit": 4},
     {"group": 128, "guessed": ("group",)}),
    ("gptq",
     {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True, "sym": True},
     {"method": "gptq", "activation_order": True, "zero_points": False}),
    ("gptq per channel, asymmetric, packed head",
     {"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": False, "lm_head": True},
     {"weight": "int8", "group": 0, "zero_points": True,
      "roles": ("attention", "mlp", "expert", "shared_expert", "state", "indexer", "other",
                "head", "draft")}),
    ("gptq of some modules",
     {"quant_method": "gptq", "bits": 4, "group_size": 64,
      "modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.down_proj"]],
      "dynamic": {"-:.*layers\\.0\\..*": {}, "+:.*layers\\.1\\..*": {"bits": 8}}},
     {"targets": ("self_attn.q_proj", "mlp.down_proj"),
      "excluded": ("re:.*layers\\.0\\..*",)}),
    ("auto-round",
     {"quant_method": "intel/auto-round", "bits": 4, "group_size": 128, "sym": True,
      "block_name_to_quantize": "model.language_model.layers",
      "extra_config": {"model.layers.3.mlp.gate": {"bits": 16}, "lm_head": {"bits": 4}}},
     {"method": "auto-round", "targets": ("layers",), "excluded": ("layers.3.mlp.gate",)}),
    ("gpt-oss",
     {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
     {"method": "mxfp4", "weight": "mxfp4", "bits": 4, "group": 32, "experts_only": True}),
    ("bitsandbytes nf4",
     {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
      "bnb_4bit_use_double_quant": True, "llm_int8_skip_modules": ["lm_head"]},
     {"weight": "nf4", "group": 64, "nested": True, "excluded": ("lm_head",)}),
    ("bitsandbytes int8",
     {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False},
     {"weight": "int8", "bits": 8, "group": 0, "activation": "int8"}),
    ("quark fp8",
     {"quant_method": "quark", "exclude": ["lm_head"],
      "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                              "input_tensors": {"dtype": "fp8_e4m3", "is_dynamic": False}},
      "export": {"kv_cache_quant_config": {"*k_proj": {}}}},
     {"method": "quark", "weight": "fp8_e4m3", "group": -1, "activation_static": True,
      "kv": "fp8_e4m3", "excluded": ("lm_head",)}),
    ("quark mxfp4",
     {"quant_method": "quark",
      "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group",
                                         "group_size": 32}, "input_tensors": {"dtype": "fp4"}}},
     {"weight": "mxfp4", "group": 32, "activation": "mxfp4"}),
    ("hqq",
     {"quant_method": "hqq", "skip_modules": ["lm_head"],
      "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
     {"method": "hqq", "weight": "int4", "group": 64, "zero_points": True}),
    ("torchao int4",
     {"quant_method": "torchao",
      "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 64}}}},
     {"weight": "int4", "group": 64, "zero_points": True}),
    ("torchao int8", {"quant_method": "torchao", "quant_type": "int8_weight_only"},
     {"weight": "int8", "activation": ""}),
    ("torchao float8 rows",
     {"quant_method": "torchao",
      "quant_type": {"default": {"_type": "Float8DynamicActivationFloat8WeightConfig",
                                 "_data": {"granularity": [{"_type": "PerRow"}]}}}},
     {"weight": "fp8_e4m3", "group": 0, "activation": "fp8"}),
    ("exl2", {"quant_method": "exl2", "bits": 4.25}, {"method": "exl2", "bits": 4.25}),
    ("eetq", {"quant_method": "eetq"}, {"weight": "int8", "group": 0}),
    ("w4a16 groups",
     compressed("pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group",
                                   "group_size": 32, "symmetric": False}, ignore=["lm_head"]),
     {"method": "compressed-tensors", "weight": "int4", "group": 32, "zero_points": True,
      "activation": "", "excluded": ("lm_head",)}),
    ("w8a16 channels",
     compressed("pack-quantized", {"num_bits": 8, "type": "int", "strategy": "channel"}),
     {"weight": "int8", "group": 0, "activation": ""}),
    ("w8a8",
     compressed("int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel"},
                {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}),
     {"weight": "int8", "group": 0, "activation": "int8", "activation_static": False}),
    ("fp8 channels",
     compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"},
                FP8_TOKEN),
     {"weight": "fp8_e4m3", "group": 0, "activation": "fp8"}),
    ("fp8 tensors, static, with a KV scheme",
     compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"},
                {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False},
                kv_cache_scheme={"num_bits": 8, "type": "float", "dynamic": False}),
     {"group": -1, "activation_static": True, "kv": "fp8_e4m3"}),
    ("fp8 blocks of compressed-tensors",
     compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "block",
                                    "block_structure": [128, 128]}, FP8_TOKEN),
     {"block": (128, 128), "group": 0}),
    ("nvfp4",
     compressed("nvfp4-pack-quantized", {"num_bits": 4, "type": "float",
                                         "strategy": "tensor_group", "group_size": 16},
                {"num_bits": 4, "type": "float", "dynamic": "local", "group_size": 16}),
     {"weight": "nvfp4", "group": 16, "activation": "nvfp4", "activation_static": False}),
    ("nvfp4 weights only",
     compressed("nvfp4-pack-quantized", {"num_bits": 4, "type": "float",
                                         "strategy": "tensor_group", "group_size": 16}),
     {"weight": "nvfp4", "activation": ""}),
    ("modelopt fp8",
     {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8",
                       "exclude_modules": ["lm_head"]}, "producer": {"name": "modelopt"}},
     {"method": "modelopt", "weight": "fp8_e4m3", "group": -1, "kv": "fp8_e4m3",
      "excluded": ("lm_head",)}),
    ("modelopt nvfp4 in config.json",
     {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
      "kv_cache_scheme": {"num_bits": 8, "type": "float"},
      "ignore": [f"model.layers.{n}.self_attn*" for n in range(4)] + ["lm_head"]},
     {"weight": "nvfp4", "group": 16, "kv": "fp8_e4m3",
      "excluded": ("layers.{0-3}.self_attn*", "lm_head")}),
    ("modelopt without a method", {"quant_algo": "W4A16_NVFP4"},
     {"method": "modelopt", "weight": "nvfp4", "activation": ""}),
    ("modelopt groups only",
     {"quant_method": "modelopt", "config_groups": {"group_0": {
         "weights": {"num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]}}},
     {"method": "modelopt", "weight": "nvfp4"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "expected"), [row[1:] for row in CONFIGS], ids=[row[0] for row in CONFIGS]
)
def test_configurations(config: dict[str, Any], expected: dict[str, Any]) -> None:
    scheme = read(config)
    assert {name: getattr(scheme, name) for name in expected} == expected
    assert scheme.seen == "config"
    assert not scheme.is_guess


def test_how_it_is_known_and_from_where_is_kept() -> None:
    scheme = read({"quant_method": "mxfp4"}, "document", "model card")
    assert (scheme.seen, scheme.source) == ("document", "model card")


def test_several_groups_are_parts_and_named_modules_come_first() -> None:
    config = {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision",
        "config_groups": {
            "group_1": {**LINEAR, "format": "nvfp4-pack-quantized",
                        "weights": {"num_bits": 4, "type": "float", "group_size": 16,
                                    "strategy": "tensor_group"}},
            "group_0": {"targets": ["re:.*self_attn.*"], "format": "float-quantized",
                        "input_activations": FP8_TOKEN,
                        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
        },
    }  # fmt: skip
    scheme = read(config)
    assert scheme.mixed
    assert [(part.weight, part.targets) for part in scheme.parts] == [
        ("fp8_e4m3", ("re:.*self_attn.*",)),
        ("nvfp4", ()),
    ]


def test_mixed_precision_by_layer_is_folded() -> None:
    layers: dict[str, dict[str, Any]] = {
        f"model.layers.{n}.mlp.up_proj": {"quant_algo": "FP8"} for n in range(10)
    }
    layers |= {
        f"model.layers.3.mlp.experts.{e}.up_proj": {"quant_algo": "NVFP4", "group_size": 16}
        for e in range(64)
    }
    scheme = read({"quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    assert [(part.weight, part.targets) for part in scheme.parts] == [
        ("fp8_e4m3", ("layers.{0-9}.mlp.up_proj",)),
        ("nvfp4", ("layers.3.mlp.experts.up_proj",)),
    ]


def test_patterns_of_a_trimmed_copy() -> None:
    told = {"quant_method": "modelopt", "quant_algo": "NVFP4", "unquantized_patterns": [
        "lm_head", "model.layers.N*", "model.layers.N.self_attn*", "mtp.layers.N*"]}  # fmt: skip
    scheme = read(told)
    assert scheme.excluded == ("lm_head", "layers.*.self_attn*", "mtp.layers.*")
    assert "model.layers.N*" in scheme.doubt


def test_experts_of_another_precision_in_an_fp8_checkpoint() -> None:
    config = {"quant_method": "fp8", "weight_block_size": [128, 128], "moe_quant_algo": "NVFP4",
              "group_size": 16, "ignore": ["*.attn.*"]}  # fmt: skip
    scheme = read(config)
    assert [part.weight for part in scheme.parts] == ["nvfp4", "fp8_e4m3"]
    assert scheme.excluded == ()


def test_the_model_may_say_that_experts_are_fp4() -> None:
    config = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert not read(config).mixed
    scheme = read(config, expert_dtype="fp4")
    assert [(part.weight, part.roles) for part in scheme.parts] == [
        ("mxfp4", ("expert",)),
        ("fp8_e4m3", ()),
    ]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "quant_method is not told"),
        ({"quant_method": "aqlm"}, "quant_method 'aqlm' is not known"),
        ({"quant_method": "awq"}, "bits is not told"),
        ({"quant_method": "awq", "bits": "four"}, "bits is not a number"),
        ({"quant_method": "awq", "bits": 64}, "bits is 64, not a width in bits"),
        ({"quant_method": "awq", "bits": 4, "group_size": 10**9}, "group_size is out of range"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size is not a pair"),
        ({"quant_method": "modelopt"}, "quant_algo is not told"),
        ({"quant_algo": "MIXED_PRECISION"}, "mixed precision whose layers are not listed"),
        ({"quant_algo": "W2A2"}, "quant_algo W2A2"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": False}, "neither load_in_4bit nor"),
        ({"quant_method": "torchao"}, "torchao without a quant_type"),
        (compressed("marlin-24", {"num_bits": 4, "type": "int"}), "2:4 sparse weights"),
        (compressed("pack-quantized", {"num_bits": 4, "strategy": "group"}), "group_size is not"),
    ],
)
def test_what_cannot_be_read_says_why(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unread, match=reason.replace("(", r"\(")):
        read(config)
    assert from_config(config) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
KEYS = ("quant_method", "bits", "group_size", "config_groups", "quantized_layers", "ignore",
        "quant_algo", "weight_block_size", "kv_cache_scheme", "quantization", "quant_type",
        "global_quant_config", "extra_config", "dynamic", "activation_scheme")  # fmt: skip
METHODS = ("fp8", "awq", "gptq", "auto-round", "compressed-tensors", "modelopt", "bitsandbytes",
           "quark", "hqq", "torchao", "exl2", "mxfp4")  # fmt: skip


@given(
    config=st.dictionaries(st.sampled_from(KEYS), JSON),
    method=st.sampled_from(METHODS),
)
def test_a_stranger_s_configuration_is_read_or_refused(config: dict[str, Any], method: str) -> None:
    for told in (config, {**config, "quant_method": method}):
        scheme = from_config(told)
        assert scheme is None or isinstance(scheme, Scheme)


def test_mixed_precision_by_pattern() -> None:
    told = {"model.layers.N.mlp.experts": {"NVFP4": 40}, "lm_head": {"FP8": 1}}
    scheme = read({"quant_algo": "MIXED_PRECISION", "quantized_layer_patterns": told})
    assert of_module(scheme, 3, "mlp.experts.up_proj", "expert") == scheme.parts[0]
    assert of_module(scheme, None, "lm_head", "head") == scheme.parts[1]
    assert of_module(scheme, 3, "self_attn.q_proj", "attention") is None

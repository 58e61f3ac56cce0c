"""The YAML of `trtllm-serve --config` (also --extra_llm_api_options): what it says wins."""

from __future__ import annotations

from capcheck.option_file import OTHERS_KEYS, OptionFile
from capcheck_tensorrt_llm.table import TABLE


class TensorRtLlmConfig(OptionFile):
    """A map of the LLM API's arguments."""

    name = "tensorrt-llm-config"
    title = "TensorRT-LLM's own options (trtllm-serve --config, --extra_llm_api_options)"
    engine_config = "tensorrt-llm"
    engine_title = "TensorRT-LLM"
    config_options = ("extra_llm_api_options", "config")
    overrules = True
    table = TABLE
    telling = frozenset({
        "cache_transceiver_config", "cuda_graph_config", "cuda_graph_padding_enabled",
        "enable_attention_dp", "enable_autotuner", "kv_cache_config", "moe_config",
        "moe_expert_parallel_size", "print_iter_log", "pytorch_backend_config", "use_cuda_graph",
    })  # fmt: skip
    file_names = ("*trtllm*.y*ml", "*tensorrt*llm*.y*ml", "*llm*api*.y*ml", "*llm*option*.y*ml")
    others_keys = OTHERS_KEYS | {"context_servers", "generation_servers"}
    least_known = 1
    known_for_each_foreign = 1
    structured = True

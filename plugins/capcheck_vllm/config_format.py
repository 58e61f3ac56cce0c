"""vLLM's own configuration file: the YAML that `vllm serve --config` takes."""

from __future__ import annotations

from capcheck.option_file import OptionFile
from capcheck_vllm.launching import TELLING
from capcheck_vllm.table import TABLE


class VllmConfig(OptionFile):
    """A flat map of vLLM's options."""

    name = "vllm-config"
    title = "vLLM's own configuration file (vllm serve --config)"
    engine_config = "vllm"
    engine_title = "vLLM"
    config_options = ("config",)
    table = TABLE
    telling = TELLING
    file_names = ("vllm*.y*ml",)

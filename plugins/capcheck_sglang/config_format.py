"""SGLang's own configuration file: the YAML that `--config` takes."""

from __future__ import annotations

from capcheck.option_file import OptionFile
from capcheck_sglang.launching import TELLING
from capcheck_sglang.table import TABLE


class SGLangConfig(OptionFile):
    """A flat map of SGLang's options."""

    name = "sglang-config"
    title = "SGLang's own configuration file (--config)"
    engine_config = "sglang"
    engine_title = "SGLang"
    config_options = ("config",)
    table = TABLE
    telling = TELLING
    file_names = ("sglang*.y*ml",)
    least_telling = 2

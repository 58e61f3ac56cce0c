"""Which of V1's two model runners serves: they profile sampling and CUDA graphs differently.

Read in the configuration of 0.21.0 to 0.33.0. The second one measures no trial capture until 0.28,
and samples its dummy logits without filtering.
"""

from __future__ import annotations

from capcheck import Architecture, Case, Model

Version = tuple[int, ...]
FIRST, EVERYTHING = (0, 22, 0), (0, 29, 0)
TRIAL_CAPTURE = (0, 29, 0)
PLAIN = {(0, 22): ("qwen3",), (0, 23): ("llama", "mistral", "qwen3")}  # dense, not quantized
NAMED = ("qwen3", "deepseek_v2", "qwen2_moe", "granitemoe", "llama", "mistral")  # 0.24
MIXTURES = ("deepseek_v2", "qwen2_moe", "granitemoe", "longcat_flash_ngram", "kimi_k3")  # from 0.25
LATER_MIXTURES = ("deepseek_v4",)  # from 0.28, not on ROCm
DRAFTS = ("eagle", "eagle3", "mtp", "dflash", "dspark")


def second_runner(case: Case, v1: bool) -> bool:
    """Whether the second model runner is the release's default for this deployment."""
    version = case.release.version
    if not v1 or version < FIRST:
        return False
    flag = case.deployment.text("engine", "env", "VLLM_USE_V2_MODEL_RUNNER")
    asked = flag.either(None) if flag is not None else None
    if asked is not None:
        return asked.strip().lower() in ("1", "true")
    model = case.model.either(None)
    if model is None or _lacks_a_feature(case) or case.plan.extra["pooling"].either(False):
        return False
    return version >= EVERYTHING or _by_architecture(version, model, case)


def _lacks_a_feature(case: Case) -> bool:
    """Drafting by lookup stays with the first runner."""
    method = case.deployment.text("engine", "args", "speculative_config", "method")
    word = method.either(None) if method is not None else None
    return word is not None and word.lower() not in DRAFTS and not word.lower().endswith("_mtp")


def _by_architecture(version: Version, model: Model, case: Case) -> bool:
    built = model.architecture
    family = built.family
    plain = PLAIN.get((version[0], version[1]))
    if plain is not None:
        quantized = model.scheme.known and model.scheme.get() is not None
        return family in plain and not quantized
    if version < (0, 25, 0):
        return family in NAMED
    part = case.accelerator.either(None)
    later = version >= (0, 28, 0) and (part is None or part.vendor != "amd")
    if family in MIXTURES or (later and family in LATER_MIXTURES):
        return True
    return not built.experts and not _recurrent(built)


def _recurrent(built: Architecture) -> bool:
    return any(one.cache is not None and one.cache.kind == "state" for one in built.layers)

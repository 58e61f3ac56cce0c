"""Families by model_type; a family's module is imported when one of its models is built."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from .config import Config, UnknownFamily
from .decoder import Decoder

Family = Callable[[Config], Decoder]

# Which module builds which model types.
_MODULES: dict[str, str] = {
    "classic": "apertus bloom cohere dbrx falcon gpt2 gpt_neox opt phi phi3small",
    "deepseek": ("deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_k2 mistral4"),
    "deepseek_v4": "deepseek_v4",
    "dense": (
        "arcee baichuan cohere2 ernie4_5 exaone exaone4 gemma gemma2 gemma3_text glm glm4 "
        "granite hunyuan_v1_dense internlm2 internlm3 llama mimo minicpm ministral ministral3 "
        "mistral muse_glimmer_text nemotron olmo olmo2 olmo3 phi3 qwen2 qwen3 seed_oss "
        "smollm3 solar stablelm starcoder2"
    ),
    "encoders": "bert roberta xlm-roberta",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4 gemma4_text gemma4_unified gemma4_unified_text",
    "hybrid": "falcon_h1 granitemoehybrid jamba",
    "kimi": "bailing_hybrid glm5_next glm5_next_text kimi_k3 kimi_linear",
    "lfm": "lfm2 lfm2_moe minimax minimax_m1 minimax_text_01",
    "linear": "qwen3_5_moe_text qwen3_5_text qwen3_next",
    "m3": "minimax_m3_vl minimax_m3_vl_text",
    "mixtures": (
        "afmoe bailing_moe dots1 ernie4_5_moe glm4_moe gpt_oss granitemoe hunyuan_v1_moe "
        "hy_v3 mellum minimax_m2 mixtral olmoe phimoe qwen2_moe qwen3_moe solar_open"
    ),
    "mllama": "mllama",
    "multimodal": (
        "gemma3 glm4v glm4v_moe internvl internvl_chat kimi_k25 kimi_vl llava llava_next "
        "llava_onevision mistral3 qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe qwen3_vl "
        "qwen3_vl_moe"
    ),
    "nas": "nemotron-nas",
    "nemotron": "nemotron_h",
    "omni": (
        "phi4_multimodal phi4mm qwen2_5_omni qwen2_5_omni_thinker qwen3_omni_moe "
        "qwen3_omni_moe_thinker"
    ),
    "qwen4": "qwen4_exp qwen4_exp_text",
    "shortcut": "longcat_flash step3_text step3_vl",
    "special": "ernie4_5_vl_moe llama4 muse_glimmer step3p7",
    "varied": "laguna llama4_text mimo_v2 mimo_v2_flash step3p5",
}
# Text parts that are another family's decoder.
_TEXT_PARTS = {
    "glm4v_moe_text": "glm4_moe", "glm4v_text": "glm4", "mistral_text": "mistral",
    "qwen2_5_omni_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen2_vl_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe", "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_vl_text": "qwen3",
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

_TOWERED = ("mllama", "multimodal", "omni", "special")
_WITH_TOWERS = frozenset(
    {name for module in _TOWERED for name in _MODULES[module].split()}
    | {"gemma4", "gemma4_unified", "glm5_next", "kimi_k3", "qwen4_exp", "minimax_m3_vl", "step3_vl"}
)

MODEL_TYPES = tuple(sorted(_MODULE_OF))

# Classes whose model_type does not follow from their name.
_CLASSES = {"GPT2LMHeadModel": "gpt2", "OPTModel": "opt"}
_CLASS_ENDINGS = (
    "ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification",
    "ForRewardModeling", "ForProcessRewardModel", "LMHeadModel", "Model",
)  # fmt: skip
_LONGEST_CLASS_NAME = 100


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def of_class(name: str) -> str:
    """The model_type that a class of `architectures` belongs to, or ""."""
    if name in _CLASSES:
        return _CLASSES[name]
    for ending in _CLASS_ENDINGS:
        if len(name) <= _LONGEST_CLASS_NAME and name.endswith(ending):
            wanted = _plain(name.removesuffix(ending))
            return next((known for known in MODEL_TYPES if _plain(known) == wanted), "")
    return ""


def _listed(c: Config, otherwise: str = "") -> str:
    """The listed model_type that a mapping names itself or by its classes, or ""."""
    named = c.word("model_type", default=otherwise)
    named = _TEXT_PARTS.get(named, named)
    if named in _MODULE_OF:
        return named
    found = (of_class(architecture) for architecture in c.words("architectures") or ())
    return next((known for known in found if known), "")


def model_type_of(c: Config) -> str:
    """The listed model_type of a configuration.

    An unlisted one counts by its `architectures`, then by its text part. Raises UnknownFamily,
    or BadConfig when nothing names a type.
    """
    known = _listed(c)
    if not known and c.has("text_config"):
        known = _listed(c.section("text_config"))
    if known:
        return known
    named = c.word("model_type")
    if not named:
        raise c.bad("model_type", "the name of a model family")
    raise UnknownFamily(named, _near(named))


def _near(named: str) -> tuple[str, ...]:
    from difflib import get_close_matches

    return tuple(get_close_matches(named, MODEL_TYPES, n=3))


def family(model_type: str) -> Family:
    """The family of a listed model_type."""
    module = import_module(f"{__name__}.{_MODULE_OF[model_type]}")
    found: Family = module.FAMILIES[model_type]
    return found


def towers_of(model_type: str) -> bool:
    """Whether the family of a listed model_type builds towers beside its decoder."""
    return model_type in _WITH_TOWERS


def text_decoder(c: Config, otherwise: str) -> Decoder:
    """Build the decoder that a text part describes, of type `otherwise` when it names none.

    Raises UnknownFamily, also for a type that has towers of its own; BadConfig.
    """
    named = _listed(c, otherwise)
    if not named:
        told = c.word("model_type")
        raise UnknownFamily(told, _near(told))
    if named in _WITH_TOWERS:
        raise UnknownFamily(named)
    return family(named)(c)

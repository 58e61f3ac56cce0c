"""How a checkpoint's weights are packed: the type that quantization methods fill."""

from __future__ import annotations

from typing import Literal, NamedTuple

# How the scheme is known. Only the checkpoint's own configuration ("config") is a fact about
# that checkpoint; "recipe" (the uploader's usual one) and "name" are guesses, and "written" is
# what the author of the deployment declared.
Seen = Literal["config", "document", "total", "recipe", "name", "written", "online"]

GUESSES = frozenset(("recipe", "name"))


class Scheme(NamedTuple):
    """One quantization scheme, expanded to what decides bytes, kernels and legality.

    Patterns (`excluded`, `targets`) are a checkpoint's own: a module name or some whole dotted
    parts of one, a shell wildcard, or a regular expression after `re:`. Long lists of layers are
    folded: `layers.{0-2,78}.mlp` stands for the four names.
    """

    method: str  # engine-neutral: fp8 awq gptq compressed-tensors modelopt mxfp4 ...
    weight: str  # dtype word: fp8_e4m3 int8 int4 nvfp4 mxfp4 nf4 q4_k_m ...
    bits: float  # of one packed weight, scales not counted
    group: int = 0  # input elements per scale; 0: one scale per output channel; -1: per tensor
    block: tuple[int, int] | None = None  # two-dimensional scale blocks (out, into)
    zero_points: bool = False
    activation: str = ""  # "" weight-only; fp8, int8, nvfp4: activations are quantized too
    activation_static: bool = False  # per-tensor scales fixed at calibration
    kv: str = ""  # KV-cache dtype that the checkpoint asks for: fp8_e4m3; "" none
    excluded: tuple[str, ...] = ()  # name patterns that stay unquantized
    experts_only: bool = False  # mxfp4 of gpt-oss: only the experts are packed
    seen: Seen = "config"
    source: str = ""
    activation_order: bool = False  # GPTQ desc_act: an index for every input element is kept
    nested: bool = False  # bitsandbytes: the scales are packed too, until they are loaded
    roles: tuple[str, ...] = ()  # the only roles that are packed; (): what the method packs
    targets: tuple[str, ...] = ()  # patterns of the only modules that are packed; (): all
    parts: tuple[Scheme, ...] = ()  # mixed precision: the first that packs a module decides
    share: float = 1.0  # of the linear weights that is packed, where nobody tells which are
    guessed: tuple[str, ...] = ()  # fields above that nobody told: "group", "excluded"
    doubt: str = ""  # what else may be otherwise, in words

    @property
    def mixed(self) -> bool:
        """Whether modules are packed differently; `parts` then holds how."""
        return bool(self.parts)

    @property
    def is_guess(self) -> bool:
        """Whether nothing but a habit or a name tells of this scheme: no ground for an error."""
        return self.seen in GUESSES

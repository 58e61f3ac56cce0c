"""What a source of models offers to the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.catalogue import Catalogue
    from capcheck.quantization import Scheme

# How the weights are known to be stored: "plain" is unquantized, "config" is the quantization
# configuration of the architecture's own checkpoint, "scheme" is what `scheme` says.
Stored = Literal["plain", "config", "scheme", "unknown"]


class FoundModel(NamedTuple):
    """What a name is: an architecture, and what is known of the checkpoint's weights."""

    architecture: Architecture
    how: str
    stored: Stored
    scheme: Scheme | None = None
    own: bool = True  # the configuration was read from this very checkpoint
    why: str = ""  # why the storage is not known
    may_differ: tuple[str, ...] = ()
    parameters: float | None = None  # exact count


class ModelSource(Protocol):
    """A plugin that knows models."""

    def find(self, name: str, catalogue: Catalogue) -> FoundModel | None:
        """The model of that name; None when this source does not know it."""

    def near(self, name: str, catalogue: Catalogue) -> tuple[str, ...]:
        """Names that the user may have meant."""

    def build(self, config: Mapping[str, Any], name: str) -> FoundModel:
        """The model of a checkpoint's configuration. Raises ValueError saying what is wrong.

        It is a Hugging Face config.json, or Mistral's params.json, or under the key "gguf" the
        `GgufHeader` of a GGUF file.
        """

"""The Ollama engine plugin: llama.cpp under another roof."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from capcheck import (
    ARGS,
    Case,
    Change,
    Deployment,
    Edit,
    Image,
    Launch,
    OptionTable,
    Plan,
    Release,
    Site,
    Support,
    Value,
)
from capcheck.embedded import Word
from capcheck.option_reader import OptionReader
from capcheck_llama_cpp.engine import LlamaCpp
from capcheck_llama_cpp.ollama_names import tagged
from capcheck_llama_cpp.ollama_plan import NAME, OllamaPlanner, releases
from capcheck_llama_cpp.table import OLLAMA

_IMAGE = re.compile(r"(?:.*/)?ollama/ollama")
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)(?:-rc\d+)?(?:-(?:rocm|cpu|vulkan))?")
_OPTION_OF = {"max_request_tokens": "num_ctx", "max_step_tokens": "num_batch"}


class Ollama(LlamaCpp):
    """Ollama 0.1.30 to 0.32."""

    name = NAME
    names = ("ollama-server",)

    @property
    def options(self) -> OptionTable:
        """The parameters of a model."""
        return OLLAMA

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release, or one for each accounting era."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """The model of `ollama run`."""
        return deployment.text(*ARGS, "model")

    def known_as(self, name: str) -> str:
        """The model that a tag of the library stands for."""
        found = tagged(name)
        return found.model if found is not None else name

    def precision(self, deployment: Deployment) -> Value[str] | None:
        """The file type that the tag names, or the library's own choice."""
        found = _tag(deployment)
        known = tagged(found.either("")) if found is not None else None
        if found is None or known is None or known.type is None:
            return None
        kind: str = known.type
        return found.map(lambda _: kind)

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return OllamaPlanner(site).plan()

    def supports(self, case: Case) -> Iterable[Support]:
        """A cache type that is not used."""
        asked = case.deployment.text("engine", "env", "OLLAMA_KV_CACHE_TYPE")
        flash = case.plan.extra["flash"].either(None)
        if asked is None or not asked.known or asked.get() in ("f16", "") or flash is not False:
            return ()
        message = f"OLLAMA_KV_CACHE_TYPE {asked.get()} is not used: flash attention is off"
        help = ("set OLLAMA_FLASH_ATTENTION=1",)
        return (
            Support("options/conflict", False, asked, message, help, doubt="it starts with f16"),
        )

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        """Parameters of the model; slots are a variable of the server."""
        text = str(change.to)
        if change.field == "max_sequences":
            path = ("engine", "env", "OLLAMA_NUM_PARALLEL")
            return Edit(path, text, f"OLLAMA_NUM_PARALLEL={text}")
        option = _OPTION_OF.get(change.field)
        if option is None:
            return None
        return Edit(OptionReader(deployment, OLLAMA, None).path(option), text, f"{option}: {text}")

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        """`ollama serve`, `ollama run MODEL`."""
        texts = [word.text for word in words]
        at = next(
            (at for at, text in enumerate(texts) if text.rpartition("/")[2] == "ollama"), None
        )
        if at is None:
            served = image is not None and (image.starts_server or not texts)
            return (
                Launch(tuple(words[1:] if texts[:1] in (["serve"], ["run"]) else words))
                if served
                else None
            )
        verb = texts[at + 1 : at + 2]
        if verb == ["run"]:
            return Launch(tuple(words[at + 2 :]), "model")
        return Launch(tuple(words[at + 2 :])) if verb == ["serve"] else None

    def image(self, reference: str) -> Image | None:
        """`ollama/ollama:0.12.6-rocm`."""
        name, _, _ = reference.strip().partition("@")
        folder, slash, last = name.rpartition("/")
        last, _, tag = last.partition(":")
        if not _IMAGE.fullmatch(folder + slash + last):
            return None
        found = _VERSION.fullmatch(tag)
        why = (
            ""
            if found
            else (f"the image's tag {tag} is no release" if tag else "the image has no tag")
        )
        return Image(found[1] if found else None, why)


def _tag(deployment: Deployment) -> Value[str] | None:
    """The tag: the first word of `ollama run`, or the model that the deployment names."""
    given = deployment.text(*ARGS, "model")
    return given if given is not None else deployment.text("model", "id")

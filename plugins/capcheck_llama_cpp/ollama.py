"""The Ollama engine plugin: llama.cpp under another roof."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from capcheck import (
    ARGS,
    ENV,
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
from capcheck_llama_cpp.ollama_plan import NAME, SLOTS, TOKENS, OllamaPlanner, natural, releases
from capcheck_llama_cpp.table import OLLAMA

CONFLICT = "options/conflict"
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
        if found is None or known is None:
            return None
        if known.type is None:
            why = f"the tag of {found.either('')} names no file type that is known"
            return Value((), found.origin._replace(why=why))
        kind: str = known.type
        return found.map(lambda _: kind)

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return OllamaPlanner(site).plan()

    def supports(self, case: Case) -> Iterable[Support]:
        """Variables that are not used."""
        return (*_not_numbers(case), *_unused_type(case))

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


def _not_numbers(case: Case) -> Iterator[Support]:
    """Numbers that Ollama does not read: it warns, and takes its defaults."""
    for name in (SLOTS, TOKENS):
        given = case.deployment.text(*ENV, name)
        text = given.either("") if given is not None else ""
        if given is not None and text.strip() and natural(text) is None:
            message = f"{name} {text} is no whole number in digits"
            help = (f"a number such as {'4' if name == SLOTS else '8192'}",)
            yield Support(CONFLICT, False, given, message, help, doubt="it starts with its default")


def _unused_type(case: Case) -> Iterator[Support]:
    """A type of cached values that is not used."""
    asked = case.deployment.text(*ENV, "OLLAMA_KV_CACHE_TYPE")
    flash = case.plan.extra["flash"].either(None)
    if asked is None or not asked.known or asked.get() in ("f16", "") or flash is not False:
        return
    message = f"OLLAMA_KV_CACHE_TYPE {asked.get()} is not used: flash attention is off"
    help = ("set OLLAMA_FLASH_ATTENTION=1",)
    yield Support(CONFLICT, False, asked, message, help, doubt="it starts with f16")

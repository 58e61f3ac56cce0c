"""The llama.cpp engine plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capcheck import (
    Case,
    Change,
    Deployment,
    Edit,
    Engine,
    Image,
    KvLayout,
    Launch,
    Ledger,
    OptionTable,
    Plan,
    Release,
    Site,
    Support,
    Terms,
    Value,
)
from capcheck.embedded import Word
from capcheck_llama_cpp import launching, names
from capcheck_llama_cpp.plan import ENGINE, Planner
from capcheck_llama_cpp.releases import releases
from capcheck_llama_cpp.table import TABLE
from capcheck_llama_cpp.writing import write


class LlamaCpp(Engine):
    """llama.cpp's server from build 1600, and what is built on it."""

    name = ENGINE
    names: tuple[str, ...] = (
        "llama-cpp", "llama_cpp", "llamacpp", "llama-server", "llama-cpp-python", "ik_llama.cpp",
    )  # fmt: skip

    @property
    def options(self) -> OptionTable:
        """The table of every build."""
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One build, or one for each accounting era."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """`hf-repo`, or the file of `model`."""
        return names.model_name(deployment)

    def precision(self, deployment: Deployment) -> Value[str] | None:
        """The type in the file's name, or after the repository's."""
        return names.precision(deployment)

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return Planner(site).plan()

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """See `Engine.ledger`."""
        from capcheck_llama_cpp.memory import ledger

        return ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        """See `Engine.kv`."""
        from capcheck_llama_cpp.pages import layout

        return layout(case)

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        from capcheck_llama_cpp.legality import supports

        return supports(case)

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        """See `Engine.write`."""
        return write(change, deployment)

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        """See `Engine.launch`."""
        return launching.launch(words, image)

    def image(self, reference: str) -> Image | None:
        """See `Engine.image`."""
        return launching.image(reference)

    def facts(self, case: Case) -> Mapping[str, Any]:
        """What the constants are selected by: the era, flash attention, what mixes tokens."""
        from capcheck_llama_cpp.layout import build_of

        flash = case.plan.extra["flash"].either(None)
        model = case.model.either(None)
        hybrid = model is not None and any(
            one.cache is not None and one.cache.kind == "state" for one in model.architecture.layers
        )
        part = case.accelerator.either(None)
        return {
            "build": build_of(case),
            "fork": case.release.foreign,
            "flash": flash,
            "hybrid": hybrid,
            "unified": part is not None and part.memory_class == "unified",
        }

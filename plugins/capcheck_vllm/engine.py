"""The vLLM engine plugin."""

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
from capcheck.option_reader import OptionReader
from capcheck_vllm import launching, memory, pages
from capcheck_vllm.plan import Planner
from capcheck_vllm.releases import releases
from capcheck_vllm.sampling import sampler
from capcheck_vllm.table import TABLE
from capcheck_vllm.writing import write


class Vllm(Engine):
    """vLLM 0.6 to 0.33."""

    name = "vllm"
    names = ("vllm-openai",)

    @property
    def options(self) -> OptionTable:
        """The table of every release."""
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release, or one for each accounting era."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """`model`, or the word after `serve`."""
        reader = OptionReader(deployment, TABLE, None)
        return deployment.text(*reader.path("model")) or deployment.text(*reader.path("model_tag"))

    def online_quantization(self, deployment: Deployment) -> Value[str] | None:
        """The `quantization` option."""
        reader = OptionReader(deployment, TABLE, None)
        return deployment.text(*reader.path("quantization"))

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return Planner(site).plan()

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """See `Engine.ledger`."""
        return memory.ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        """See `Engine.kv`."""
        stage = memory.worst_stage(case)
        return pages.layout(case, stage.number, stage.sizes)

    def load_peak(self, case: Case, t: Terms) -> float | None:
        """See `Engine.load_peak`."""
        return memory.load_peak(case, t)

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        from capcheck_vllm.legality import supports

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
        """Generation, sampler, whether nothing is sampled, and whether memory is the CPU's, too."""
        v1 = bool(case.plan.extra["v1"].either(True))
        return {
            "generation": "v1" if v1 else "v0",
            "sampler": sampler(case, v1),
            "pooling": bool(case.plan.extra["pooling"].either(False)),
            "unified": self._unified(case),
        }

    def _unified(self, case: Case) -> bool:
        part = case.accelerator.either(None)
        return part is not None and part.memory_class == "unified"

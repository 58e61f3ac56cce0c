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
from capcheck_vllm.table import TABLE
from capcheck_vllm.writing import write


class Vllm(Engine):
    """vLLM 0.6 to 0.33."""

    name = "vllm"
    names = ("vllm-openai",)

    @property
    def options(self) -> OptionTable:
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        reader = OptionReader(deployment, TABLE, None)
        return deployment.text(*reader.path("model")) or deployment.text(*reader.path("model_tag"))

    def online_quantization(self, deployment: Deployment) -> Value[str] | None:
        reader = OptionReader(deployment, TABLE, None)
        return deployment.text(*reader.path("quantization"))

    def plan(self, site: Site) -> Plan:
        return Planner(site).plan()

    def ledger(self, case: Case, t: Terms) -> Ledger:
        return memory.ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        stage = memory.worst_stage(case)
        return pages.layout(case, stage.index, stage.sizes)

    def load_peak(self, case: Case, t: Terms) -> float | None:
        return memory.load_peak(case, t)

    def supports(self, case: Case) -> Iterable[Support]:
        from capcheck_vllm.legality import supports

        return supports(case)

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        return write(change, deployment)

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        return launching.launch(words, image)

    def image(self, reference: str) -> Image | None:
        return launching.image(reference)

    def facts(self, case: Case) -> Mapping[str, Any]:
        stated = case.plan.extra
        return {
            "generation": "v1" if stated["v1"].either(True) else "v0",
            "unified": self._unified(case),
        }

    def _unified(self, case: Case) -> bool:
        part = case.accelerator.either(None)
        return part is not None and part.memory_class == "unified"

"""The TensorRT-LLM engine plugin."""

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
from capcheck_tensorrt_llm import launching, memory, pages
from capcheck_tensorrt_llm.plan import Planner
from capcheck_tensorrt_llm.reading import Options
from capcheck_tensorrt_llm.releases import releases
from capcheck_tensorrt_llm.table import TABLE
from capcheck_tensorrt_llm.writing import write


class TensorRtLlm(Engine):
    """trtllm-serve 0.17 to 1.3: PyTorch, or an engine that is built at start."""

    name = "tensorrt-llm"
    names = ("tensorrt_llm", "trtllm", "trt-llm", "trtllm-serve")

    @property
    def options(self) -> OptionTable:
        """The table of every release."""
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release; 1.x where none is told."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """The word after `trtllm-serve`, or `model` of the YAML."""
        return Options(deployment, None).text("model")

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return Planner(site).plan()

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """See `Engine.ledger`."""
        return memory.ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        """See `Engine.kv`."""
        return pages.layout(case, memory.worst_stage(case))

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        from capcheck_tensorrt_llm.legality import supports

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
        """What runs the model, and the ranks of one stage."""
        extra = case.plan.extra
        return {"backend": extra["backend"].either(None), "ranks": extra["ranks"].either(None)}

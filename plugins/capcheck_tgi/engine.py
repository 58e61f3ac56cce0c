"""The Text Generation Inference engine plugin."""

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
from capcheck_tgi import launching, memory, pages
from capcheck_tgi.plan import Planner
from capcheck_tgi.reading import Options
from capcheck_tgi.releases import releases
from capcheck_tgi.table import TABLE
from capcheck_tgi.writing import write

FROM_CHECKPOINT = frozenset({"awq", "compressed-tensors", "exl2", "gptq", "marlin"})


class Tgi(Engine):
    """text-generation-launcher 1.0 to 3.3 and its own server."""

    name = "tgi"
    names = ("text-generation-inference", "text-generation-launcher")

    @property
    def options(self) -> OptionTable:
        """The table of every release."""
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release, or one for each accounting era."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """`--model-id`, MODEL_ID, or SageMaker's HF_MODEL_ID."""
        return Options(deployment, None).text("model_id")

    def online_quantization(self, deployment: Deployment) -> Value[str] | None:
        """The `quantize` option, where it packs a checkpoint that is not."""
        given = Options(deployment, None).text("quantize")
        if given is None or given.either("") in FROM_CHECKPOINT:
            return None
        return given

    def plan(self, site: Site) -> Plan:
        """See `Engine.plan`."""
        return Planner(site).plan()

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """See `Engine.ledger`."""
        return memory.ledger(case, t)

    def kv(self, case: Case) -> KvLayout:
        """See `Engine.kv`."""
        return pages.layout(case)

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        from capcheck_tgi.legality import supports

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
        """The attention kernel."""
        return {"attention": case.plan.extra["attention"].either(None)}

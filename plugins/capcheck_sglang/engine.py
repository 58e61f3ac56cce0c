"""The SGLang engine plugin."""

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
from capcheck_sglang import launching, memory, pool
from capcheck_sglang.plan import Planner
from capcheck_sglang.releases import releases
from capcheck_sglang.table import TABLE
from capcheck_sglang.writing import write


class SGLang(Engine):
    """SGLang 0.2.15 to 0.5.23."""

    name = "sglang"

    @property
    def options(self) -> OptionTable:
        """The table of every release."""
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release, or one for each accounting era."""
        return releases(text, why)

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """`model_path`."""
        reader = OptionReader(deployment, TABLE, None)
        return deployment.text(*reader.path("model_path"))

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
        return pool.layout(case, stage.number, stage.sizes)

    def load_peak(self, case: Case, t: Terms) -> float | None:
        """See `Engine.load_peak`."""
        return memory.load_peak(case, t)

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        from capcheck_sglang.legality import supports

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
        """Devices that tensor parallelism spans, and whether the experts' kernel is chosen."""
        reader = OptionReader(case.deployment, TABLE, case.release.version)
        return {
            "all_tensor": case.plan.extra["all_tensor"].either(None),
            "experts_kernel": reader.text("moe_runner_backend", "auto").either("auto"),
        }

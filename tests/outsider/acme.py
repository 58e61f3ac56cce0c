"""Acme's plugin: the A1 accelerator, the engine acme-serve, and a rule about network cards.

Everything here comes from the public API of capcheck and its physics. It is one module with two
files of data: `capcheck --plugin acme.py`, or installed by the pyproject.toml beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from capcheck import (
    ARGS,
    Case,
    Change,
    Deployment,
    Edit,
    Engine,
    Extension,
    Fail,
    Image,
    KvLayout,
    Launch,
    Ledger,
    Line,
    MemoryPolicy,
    Pass,
    Plan,
    Release,
    Result,
    Rule,
    Shelf,
    Site,
    Skip,
    Terms,
    Value,
    blank_plan,
    default,
    hookimpl,
    rule,
    unknown,
)
from capcheck.findings import Answer
from capcheck.physics.kv import KV_ELEMENT_BYTES, cache_bytes
from capcheck.words import Word

HERE = Path(__file__).parent
SHARE = 0.92  # of the visible memory, unless memory_share says otherwise
BLOCK_TOKENS = 32
OPTIONS = {
    "max_request_tokens": "context", "max_sequences": "slots", "tensor": "shards",
    "kv_dtype": "cache_dtype", "memory_fraction": "memory_share",
}  # fmt: skip
DTYPES = {"fp8": "fp8_e4m3", "bf16": "bf16"}
WORDS = {dtype: word for word, dtype in DTYPES.items()}


class AcmeServe(Engine):
    """acme-serve: a share of the visible memory for everything, pages of 32 tokens."""

    name = "acme-serve"
    names = ("acme_serve", "acmeserve")

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """Two eras: scratch space shrank with 2.0."""
        parts = (text or "").removeprefix("v").split(".")
        if text is not None and all(part.isdigit() for part in parts):
            return (Release(text, tuple(int(part) for part in parts)),)
        why = why or f"{text} is no release of acme-serve"
        return (
            Release("1.x", (1, 9), known=False, why=why),
            Release("2.x", (2, 3), known=False, why=why),
        )

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """The option `model`."""
        return deployment.text(*ARGS, "model")

    def plan(self, site: Site) -> Plan:
        """Options with acme-serve's defaults."""
        deployment, at = site.deployment, site.deployment.place_for(*ARGS)

        def count(name: str, otherwise: int) -> Value[int]:
            found = deployment.count(*ARGS, name)
            return found if found is not None else default(otherwise, at, "acme-serve default")

        share = deployment.share(*ARGS, "memory_share") or default(SHARE, at, "acme-serve default")
        one, off = default(1, at, "acme-serve has none"), default(False, at, "acme-serve has none")
        word = deployment.text(*ARGS, "cache_dtype")
        dtype = default("bf16", at, "acme-serve computes in bf16")
        return blank_plan(unknown(at, "acme-serve does not tell"))._replace(
            tensor=count("shards", 1), pipeline=one, data=one, expert=one, context=one,
            max_request_tokens=self._context(site), max_sequences=count("slots", 32),
            max_step_tokens=default(4096, at, "acme-serve default"), weight_dtype=dtype,
            kv_dtype=dtype if word is None else word.map(lambda text: DTYPES.get(text, text)),
            memory=share.map(lambda part: MemoryPolicy("fraction of total", part)),
            graphs=off, chunked_prefill=off, prefix_caching=off,
        )  # fmt: skip

    def _context(self, site: Site) -> Value[int]:
        given = site.deployment.count(*ARGS, "context")
        if given is not None:
            return given
        at = site.deployment.place_for(*ARGS)
        model = site.model.either(None)
        longest = model.architecture.max_positions if model is not None else None
        if longest is None:
            return unknown(at, "the model's full length is not known")
        return default(longest, at, "the model's full length")

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """Parameters in their dtype over the shards, and scratch space, inside the share."""
        visible = case.visible_bytes(t)
        share = case.plan.memory.get("memory_share").amount
        model = case.model.get("model")
        scheme = model.scheme.get("quantization")
        width = scheme.bits / 8 if scheme is not None else 2.0
        shards = case.plan.tensor.get("shards")
        weights = model.architecture.parameters * width / shards * t.read("acme.weights_factor")
        lines = (
            Line("parameters", weights, "load", inside_budget=True),
            Line("scratch", t.read("acme.scratch_bytes"), "profile", inside_budget=True),
        )
        return Ledger(visible, visible * share, lines, f"{share:.2f} of the device")

    def kv(self, case: Case) -> KvLayout:
        """Pages of 32 tokens over all layers."""
        caches = [layer.cache for layer in case.model.get("model").architecture.layers]
        width = KV_ELEMENT_BYTES[case.plan.kv_dtype.get("cache_dtype")]
        per_token = cache_bytes(caches, 1, 1, width) / case.plan.tensor.get("shards")
        return KvLayout(
            BLOCK_TOKENS, per_token * BLOCK_TOKENS, per_token,
            request_blocks=lambda tokens: ceil(tokens / BLOCK_TOKENS),
            logged_tokens=lambda blocks: blocks * BLOCK_TOKENS,
        )  # fmt: skip

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        """Changes in acme-serve's words."""
        name = OPTIONS.get(change.field)
        if name is None:
            return None
        text = WORDS.get(str(change.to), str(change.to))
        return Edit((*ARGS, name), text, f"{name}: {text}")

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        """`acme-serve MODEL ...`."""
        starts = bool(words) and words[0].text.rpartition("/")[2] == self.name
        return Launch(tuple(words[1:]), "model") if starts and image is None else None


SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: acme-70b
model: {id: meta-llama/Llama-3.1-70B-Instruct}
hardware: {accelerator: acme/a1-96gb, count: 2}
engine:
  name: acme-serve
  version: "2.1"
  args: {shards: 2, context: 8192}
x-acme: {nics: 1}
"""


@rule(
    "acme/nics",
    title="Two accelerators share a network card at most",
    why="A1 devices load their weights over the network: three behind one card take minutes.",
    fix="Ask for one network card for each two accelerators.",
    fails=SPEC.replace("count: 2", "count: 4").replace("shards: 2", "shards: 4"),
    passes=SPEC,
)
def nics(case: Case, t: Terms) -> Answer:
    """Devices of a node against x-acme.nics."""
    del t
    part = case.accelerator.get("accelerator")
    if part.vendor != "acme":
        return Skip("not on Acme's devices")
    count = case.deployment.count("hardware", "count")
    cards = case.deployment.count("x-acme", "nics")
    if count is None or cards is None:
        return Skip("x-acme.nics or hardware.count is not given")
    have, need = cards.get("x-acme.nics"), ceil(count.get("hardware.count") / 2)
    if have >= need:
        return Pass()
    message = f"{have} network cards for {count.get()} accelerators"
    return Fail(cards, message, f"{count.get()} / 2 = {need} > {have}", (f"nics: {need}",))


RULES: tuple[Rule, ...] = (nics,)
NICS: dict[str, Any] = {
    "type": "object",
    "title": "Acme",
    "description": "What only Acme's racks have.",
    "additionalProperties": False,
    "properties": {
        "nics": {"description": "Network cards of a node.", "type": "integer", "minimum": 1}
    },
}


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """acme/*"""
    return RULES


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*RULES)


@hookimpl
def capcheck_engines() -> Iterable[Engine]:
    """acme-serve."""
    return (AcmeServe(),)


@hookimpl
def capcheck_catalogues() -> Iterable[Shelf]:
    """The A1."""
    return (Shelf("accelerator", HERE / "acme_parts.jsonl", "acme"),)


@hookimpl
def capcheck_terms() -> Iterable[Path]:
    """What acme-serve takes, as measured."""
    return (HERE / "acme_terms.jsonl",)


@hookimpl
def capcheck_spec_extensions() -> Iterable[Extension]:
    """x-acme."""
    return (Extension("x-acme", NICS),)

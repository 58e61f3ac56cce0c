"""The engine-neutral vocabulary: what an engine plugin tells of a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from capcheck.hardware import Accelerator
from capcheck.values import Place, Value

if TYPE_CHECKING:
    from capcheck.case import Case, Model
    from capcheck.deployment import Deployment
    from capcheck.embedded import Word
    from capcheck.options import OptionTable
    from capcheck.terms import Terms

Version = tuple[int, ...]
Phase = Literal["load", "profile", "capture", "serve"]
OTHER = "other"  # communication buffers, workspaces, the driver's context


class Release(NamedTuple):
    """One release, or one accounting era of releases when the deployment does not tell."""

    text: str  # "0.11.0", or "0.20 to 0.26" for an era
    version: Version
    known: bool = True
    why: str = ""  # why it is not known
    foreign: bool = False  # somebody else's build: what it refuses is not known either
    # of an unknown release: it is one from the first on, before the second
    among: tuple[Version, Version] | None = None


class MemoryPolicy(NamedTuple):
    """How an engine takes device memory: a share of the total, of what is free, or bytes."""

    kind: Literal["fraction of total", "fraction of free", "static fraction", "bytes", "all"]
    amount: float


class Plan(NamedTuple):
    """What the engine will do with the options it was given, in neutral terms."""

    tensor: Value[int]
    pipeline: Value[int]
    data: Value[int]
    expert: Value[int]  # devices that share the experts; 1: experts are split like the rest
    context: Value[int]  # decode context parallel
    max_request_tokens: Value[int]
    max_sequences: Value[int]  # per data-parallel rank
    max_step_tokens: Value[int]
    weight_dtype: Value[str]  # of unquantized weights and activations
    kv_dtype: Value[str]
    memory: Value[MemoryPolicy]
    graphs: Value[bool]
    chunked_prefill: Value[bool]
    prefix_caching: Value[bool]
    draft: Value[str] | None  # a draft model's name, or "mtp"; None: no speculation
    draft_tokens: Value[int] | None
    extra: Mapping[str, Value[Any]]  # what only this engine has
    poll_steps: Value[int] | None = None  # steps between two looks for new requests; None: each
    host_weights: Value[bool] | None = None  # whether some weights stay on the host; None: none do

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.tensor.get() * self.pipeline.get() * self.data.get()


def blank_plan(lost: Value[Any]) -> Plan:
    """A plan of which nothing is known, because of `lost`: replace what an engine does know."""
    nothing: Value[Any] = Value((), lost.origin)
    return Plan(
        tensor=nothing, pipeline=nothing, data=nothing, expert=nothing, context=nothing,
        max_request_tokens=nothing, max_sequences=nothing, max_step_tokens=nothing,
        weight_dtype=nothing, kv_dtype=nothing, memory=nothing, graphs=nothing,
        chunked_prefill=nothing, prefix_caching=nothing, draft=None, draft_tokens=None, extra={},
    )  # fmt: skip


class Line(NamedTuple):
    """One entry of the memory ledger, bytes on the worst rank.

    The phase decides what it counts as: "load" is weights, drafts and adapters, "profile" the
    peak of one step, "capture" graphs, "serve" everything later. Names are the engine's own, but
    for `OTHER`: what is no tensor of the model.
    """

    name: str
    bytes: float
    phase: Phase
    inside_budget: bool
    note: str = ""


class Ledger(NamedTuple):
    """Where the memory of the worst device goes. Bytes."""

    visible: float
    budget: float
    lines: tuple[Line, ...]
    budget_words: str = ""  # "23.5 GiB x 0.90"
    pool: float | None = None  # what the engine allocates for the KV cache, where that is not
    # all that is left: a stated number of cells, tokens or bytes, or a share of the rest
    taken: float | None = None  # bytes of the device that are gone when the engine asks whether its
    # budget is free, and does not start when it is not; None: it does not ask

    @property
    def left(self) -> float:
        """Bytes that the budget leaves for the KV cache; negative when nothing is."""
        return self.budget - sum(line.bytes for line in self.lines if line.inside_budget)

    @property
    def kv(self) -> float:
        """Bytes of the KV cache as the engine sizes it; negative when nothing is left."""
        return self.left if self.pool is None else self.pool

    @property
    def outside(self) -> float:
        """Bytes taken outside the budget."""
        return sum(line.bytes for line in self.lines if not line.inside_budget)

    def bytes_of(self, name: str) -> float:
        """All lines of one name."""
        return sum(line.bytes for line in self.lines if line.name == name)

    def bytes_in(self, phase: Phase) -> float:
        """All lines of one phase, inside the budget or not."""
        return sum(line.bytes for line in self.lines if line.phase == phase)


class KvLayout(NamedTuple):
    """How the KV cache is paged on one rank."""

    block_tokens: int  # tokens of one block of the largest group
    block_bytes: float  # one block of the shared pool, over all the layers it holds
    bytes_per_token: float  # what one more token of one request takes, long context
    request_blocks: Callable[[int], int]  # blocks that one request of n tokens takes
    logged_tokens: Callable[[int], float]  # what the engine logs for n blocks
    words: str = ""  # "32 layers x 8 heads x 128 x 2 x 2 bytes"
    shortens: str = ""  # what the engine does, instead of stopping, when no request fits whole
    # Bytes that the engine asks for one request of n tokens before it starts; None: what it takes
    start: Callable[[int], float] | None = None

    def request_bytes(self, tokens: int) -> float:
        """What one request of so many tokens takes of the pool."""
        return self.request_blocks(tokens) * self.block_bytes

    def start_bytes(self, tokens: int) -> float:
        """What has to be left for one request of so many tokens, or the engine does not start."""
        return self.start(tokens) if self.start is not None else self.request_bytes(tokens)

    def blocks(self, available: float) -> int:
        """Whole blocks in `available` bytes."""
        return max(0, int(available // self.block_bytes)) if self.block_bytes else 0


class Change(NamedTuple):
    """A change in neutral terms: a plan field and what to set it to."""

    field: str
    to: Any


class Edit(NamedTuple):
    """The same change in the user's own words."""

    path: tuple[str, ...]  # where in the deployment: ("engine", "args", "max_num_seqs")
    text: str  # the value as written
    words: str  # "max-num-seqs: 256"


class Support(NamedTuple):
    """A legality that the engine decides: method, dtype, parallel layout."""

    rule: str  # whose finding it is: quantization/supported, sharding/divisible ...
    legal: bool | None  # None: it cannot be told, `message` says why
    at: Value[Any] | Place
    message: str = ""
    help: tuple[str, ...] = ()
    arithmetic: str = ""
    doubt: str = ""  # what keeps it from being an error


class Site(NamedTuple):
    """What there is to plan with: the deployment, and what of it could be resolved."""

    deployment: Deployment
    release: Release
    model: Value[Model]
    accelerator: Value[Accelerator]


class Launch(NamedTuple):
    """A command line that starts this engine: its arguments, and what the first word is."""

    arguments: tuple[Word, ...]
    positional: str = ""  # the option a positional word stands for


class Image(NamedTuple):
    """A container image of this engine. `version` None: the tag does not tell; `why` says so."""

    version: str | None
    why: str = ""
    starts_server: bool = True  # arguments alone are enough


class Engine:
    """An engine plugin: subclass, fill in, return an instance from `capcheck_engines`."""

    name: str = ""
    names: tuple[str, ...] = ()  # other spellings
    fallback: bool = False  # serves deployments that name no engine

    @property
    def options(self) -> OptionTable | None:
        """The option table; None when options are not known by release."""
        return None

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One release; or, unknown or a range: one per accounting era, at most eight."""
        raise NotImplementedError

    def model_name(self, deployment: Deployment) -> Value[str] | None:
        """The model that the engine's own options name; None when they name none."""
        return None

    def known_as(self, name: str) -> str:
        """What a model is called elsewhere: for engines with a library of their own."""
        return name

    def plan(self, site: Site) -> Plan:
        """Options and defaults by release, accelerator and model."""
        raise NotImplementedError

    def ledger(self, case: Case, t: Terms) -> Ledger:
        """The memory of the worst rank. Raises Unknown when an input is missing."""
        raise NotImplementedError

    def kv(self, case: Case) -> KvLayout:
        """Pages of the KV cache. Raises Unknown when an input is missing."""
        raise NotImplementedError

    def online_quantization(self, deployment: Deployment) -> Value[str] | None:
        """The quantization that the options ask for; None when they leave it to the checkpoint."""
        return None

    def precision(self, deployment: Deployment) -> Value[str] | None:
        """The word of `weights.precision` for the file that the options name; None: they do not."""
        return None

    def load_peak(self, case: Case, t: Terms) -> float | None:
        """Bytes that loading takes on the worst rank where it is more than serving; else None."""
        return None

    def supports(self, case: Case) -> Iterable[Support]:
        """Everything this engine's release decides about legality."""
        return ()

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        """A neutral change in the user's own words; None when this engine cannot do it."""
        return None

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        """Recognize a command line; None when it does not start this engine."""
        return None

    def image(self, reference: str) -> Image | None:
        """Recognize a container image; None when it is not this engine's."""
        return None

    def facts(self, case: Case) -> Mapping[str, Any]:
        """Facts that this engine's terms are selected by, besides the common ones."""
        return {}


class Platform:
    """An engine on one vendor's hardware: what differs. Either side may ship it."""

    engine: str = ""
    vendor: str = ""

    def plan(self, plan: Plan, site: Site) -> Plan:
        """Change the defaults that differ on this hardware."""
        return plan

    def lines(self, case: Case, t: Terms) -> Iterable[Line]:
        """Ledger lines that only this hardware has."""
        return ()

    def supports(self, case: Case) -> Iterable[Support]:
        """What this hardware forbids or lacks."""
        return ()

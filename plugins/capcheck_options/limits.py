"""Rules of options against each other, the model and the place they run in."""

from __future__ import annotations

from capcheck import Case, Fail, Margin, Pass, Rule, Skip, Terms, Value, rule
from capcheck.findings import Answer
from capcheck_options.names import CHAT, NO_ENGINE
from capcheck_options.patience import patience
from capcheck_options.spelling import advice
from capcheck_options.written import release_of

# Rule of thumb: each pair takes 7 to 10 MB, and a fast link spares most of two or three devices.
CROWDED = 4


def _respelled(case: Case, answer: Answer) -> Answer:
    """The engine's refusals with its options spelled as the user spells them."""
    table = case.engine.options
    if table is None or isinstance(answer, Margin | Fail | Pass | Skip):
        return answer
    release = release_of(case)
    fails = []
    for fail in answer:
        like = fail.at.origin.word if isinstance(fail.at, Value) else ""
        message, *help = (advice(text, like, table, release) for text in (fail.message, *fail.help))
        fails.append(fail._replace(message=message, help=tuple(help)))
    return tuple(fails)


@rule(
    "options/conflict",
    title="Options do not contradict each other",
    why="Engines refuse batching limits and draft models that cannot work together.",
    fix="Change one of the two.",
    fails=CHAT.replace("max_num_seqs: 64", "max_num_seqs: 4096, max_num_batched_tokens: 2048"),
    passes=CHAT,
)
def conflict(case: Case, t: Terms) -> Answer:
    """What the engine refuses."""
    del t
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    return _respelled(case, case.legality("options/conflict"))


@rule(
    "options/context-limit",
    title="The context length is one that the model supports",
    why="Engines refuse a length above what the model's configuration promises.",
    fix="Lower the length, or declare the rope scaling that extends it.",
    fails=CHAT.replace("max_model_len: 8192", "max_model_len: 262144").replace(
        "l40s", "h100-sxm5-80gb"
    ),
    passes=CHAT,
)
def context_limit(case: Case, t: Terms) -> Answer:
    """What the engine refuses."""
    del t
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    return _respelled(case, case.legality("options/context-limit"))


@rule(
    "options/environment",
    title="The surroundings let the engine start and stay",
    why="A container's shared memory, a Service's name or a probe that is too short stop engines "
    "whose options are right.",
    fix="Mount a memory-backed /dev/shm, rename the Service, give start-up more time.",
    fails=CHAT.replace("max_model_len", "tensor_parallel_size: 2, max_model_len")
    .replace("count: 1", "count: 2") + "runtime: {shm: default}\n",
    passes=CHAT,
)  # fmt: skip
def environment(case: Case, t: Terms) -> Answer:
    """What the engine decides, /dev/shm for several devices, and time to load the weights."""
    del t
    if not case.deployment.has("runtime"):
        return Skip("nothing is said of what the server runs in")
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    answer = case.legality("options/environment")
    fails: list[Fail] = []
    if not isinstance(answer, Margin | Fail | Pass | Skip):
        fails += answer
    found = [one for one in (_shared_memory(case), patience(case)) if one is not None]
    fails += [one for one in found if isinstance(one, Fail)]
    if found and not fails:
        return Pass()
    return tuple(fails) if fails else answer


def _shared_memory(case: Case) -> Fail | Pass | None:
    """/dev/shm against the devices that meet there; None when nothing is said of it.

    Segments of 7 to 10 MB for each pair that has no fast link: two or three devices over one
    often live within a container's 64 MiB.
    """
    shm = case.deployment.text("runtime", "shm")
    if shm is None or not shm.known or not case.plan.tensor.known:
        return None
    size, part = case.plan.tensor.get(), case.accelerator.either(None)
    if size == 1 or shm.get() != "default":
        return Pass()
    fast = part is None or part.link.kind not in ("pcie", "none")
    few = fast and size < CROWDED
    needs = "may need" if few else "needs"
    return Fail(
        shm,
        f"tensor parallel {size} {needs} more /dev/shm than a container's 64 MiB",
        help=("mount an emptyDir with medium: Memory on /dev/shm",),
        risk=few,
    )


ALL: tuple[Rule, ...] = (conflict, context_limit, environment)

"""Neutral changes applied to a deployment, in its own words: what a remedy tries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from capcheck.deployment import Deployment, FieldPath
from capcheck.engine import Change, Edit, Engine
from capcheck.source import Node, Scalar
from capcheck.values import Origin, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capcheck.case import Case

COUNT: FieldPath = ("hardware", "count")
REPLICAS: FieldPath = ("replicas",)
IN_FLIGHT: FieldPath = ("workload", "concurrency")
SPREADING = frozenset({"tensor", "pipeline"})  # they may take more devices than there are


def edit_of(engine: Engine, change: Change, deployment: Deployment) -> Edit | None:
    """A change in the user's words: the engine's options, or the hardware that is declared."""
    if change.field == "devices":
        return _set(deployment, COUNT, change.to)
    if change.field == "replicas":
        return _set(deployment, REPLICAS, change.to)
    return engine.write(change, deployment)


def _set(deployment: Deployment, path: FieldPath, count: int) -> Edit:
    """A number under the name that it is written with: `nvidia.com/gpu: 2`."""
    have = deployment.fields.get(path)
    word = have.origin.word if have is not None and have.origin.kind == "written" else ""
    return Edit(path, str(count), f"{word or path[-1]}: {count}")


def _shared(deployment: Deployment, many: int) -> Edit | None:
    """Requests in flight on each of so many replicas, when they share what is declared now.

    None where no concurrency is declared: a rate is the whole deployment's already.
    """
    flight = deployment.number(*IN_FLIGHT)
    have = deployment.count(*REPLICAS)
    if flight is None or not flight.known or (have is not None and not have.known):
        return None
    in_all = flight.get() * (max(1, have.get()) if have is not None else 1)
    return _set(deployment, IN_FLIGHT, max(1, math.ceil(in_all / many)))


def applied(deployment: Deployment, edit: Edit) -> Deployment:
    """A copy with one field set, at the place where it is or would be written."""
    at = deployment.place_for(*edit.path)
    have = deployment.fields.get(edit.path)
    word = edit.words.split()[0].rstrip(":") if edit.words else edit.path[-1]
    origin = have.origin if have else Origin("written", at, word=word)
    value: Value[Node] = Value((Scalar(edit.text, "text", "plain", at),), origin)
    return deployment.with_fields([(edit.path, value)])


def edited(case: Case, changes: Iterable[Change]) -> tuple[Deployment, tuple[Edit, ...]] | None:
    """The deployment with all changes, and the edits that make it; None when one has no words.

    Parallel sizes that take more devices than are declared take them: that is an edit, too. More
    replicas share the requests in flight.
    """
    deployment = case.deployment
    edits = []
    spreads = False
    for change in changes:
        edit = edit_of(case.engine, change, deployment)
        if edit is None:
            return None
        share = _shared(deployment, change.to) if change.field == "replicas" else None
        for one in filter(None, (edit, share)):
            edits.append(one)
            deployment = applied(deployment, one)
        spreads |= change.field in SPREADING
    more = _more_devices(case, deployment) if spreads else None
    if more is not None:
        edits.append(more)
        deployment = applied(deployment, more)
    return deployment, tuple(edits)


def _more_devices(case: Case, deployment: Deployment) -> Edit | None:
    """The count that the parallel sizes take, when it is more than what is declared."""
    count = deployment.count(*COUNT)
    if count is None or not count.known:
        return None
    nodes = deployment.count("hardware", "nodes")
    per_node = max(1, (nodes.either(1) if nodes else 1) or 1)
    try:
        plan = case.engine.plan(case.site._replace(deployment=deployment))
        needed = -(-plan.devices // per_node)
    except Unknown:
        return None
    if needed <= count.get():
        return None
    return _set(deployment, COUNT, needed)

"""How many pods and devices one engine spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capcheck import ARGS, Value, derived, unknown
from capcheck.launch import node_of
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar, as_integer
from capcheck.words import Word
from capcheck_kubernetes.commands import Container, Run
from capcheck_kubernetes.devices import Devices, devices
from capcheck_kubernetes.nodes import child, items
from capcheck_kubernetes.workloads import Workload

NODES_OPTION = "nnodes"
JOINED_BY = "RAY_ADDRESS"  # a variable that makes the server part of a cluster that runs already
# Options that say that other pods hold a part of the same engine.
SPREAD_OPTIONS = frozenset({
    "node_rank", "headless", "data_parallel_address", "data_parallel_rank",
    "data_parallel_size_local", "data_parallel_start_rank", "dist_init_addr",
})  # fmt: skip


class Extent(NamedTuple):
    """Devices on each node, the nodes of one engine, copies of it, and the pod on such a node."""

    pod: MappingNode
    devices: Devices
    nodes: Value[Node] | None
    replicas: Value[Node] | None


def number_of(value: Value[Node] | None) -> int | None:
    """A known whole number."""
    node = value.either(None) if value is not None else None
    return as_integer(node) if isinstance(node, Scalar) else None


def extent(container: Container, run: Run) -> Extent:
    """What one engine of the workload takes."""
    workload = container.workload
    alone = Extent(container.pod, devices(container.node), None, workload.replicas)
    if workload.kind == "LeaderWorkerSet":
        return _of_group(alone, workload)
    nodes = run.started.fields.get((*ARGS, NODES_OPTION))
    if nodes is not None:
        return alone._replace(nodes=nodes, replicas=_engines(workload, nodes))
    if JOINED_BY in container.environment.values or spreads(run):
        why = "other pods may hold a part of the same engine"
        return alone._replace(nodes=unknown(run.started.place, why))
    return alone


def spreads(run: Run) -> bool:
    """Whether the commands or options join pods to one engine."""
    if any(path[:2] == ARGS and path[2] in SPREAD_OPTIONS for path in run.started.fields):
        return True
    return any(_joins(command.words) for command in run.commands)


def _joins(words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    script = any(text.endswith("/multi-node-serving.sh") for text in texts)
    return script or ("start" in texts and any(text.rpartition("/")[2] == "ray" for text in texts))


def _engines(workload: Workload, nodes: Value[Node]) -> Value[Node] | None:
    """The engines of a set of pods that `nodes` of them share."""
    pods, each = number_of(workload.replicas), number_of(nodes)
    if workload.kind != "StatefulSet" or workload.replicas is None:
        return workload.replicas
    place = workload.replicas.place
    if pods is None or each is None or each < 1 or pods % each:
        return unknown(place, "how many engines the pods form is not known", "replicas")
    return derived(node_of(pods // each, place), place, f"{pods} pods, {each} for each engine")


def _of_group(alone: Extent, workload: Workload) -> Extent:
    """A leader and its workers are one engine; a leader without devices only directs it."""
    size, worker = workload.size, workload.worker
    if alone.pod is not workload.pod.spec:
        why = "the group's leader starts no engine that is known"
        return alone._replace(nodes=unknown(alone.pod.place, why))
    alone = alone._replace(nodes=size)
    if worker is None or worker.spec is alone.pod or size is None or number_of(size) == 1:
        return alone
    others = [one for one in _containers(worker.spec) if devices(one).asked]
    if not others:
        return alone
    theirs = devices(others[0])
    if not alone.devices.asked:
        return alone._replace(pod=worker.spec, devices=theirs, nodes=_workers(size))
    if len(others) > 1 or number_of(theirs.number) != number_of(alone.devices.number):
        own = alone.devices.number
        why = "the leader and the workers have different numbers of devices"
        lost: Value[Node] = unknown(own.place, why, own.origin.word)
        return alone._replace(devices=alone.devices._replace(number=lost))
    return alone


def _containers(pod: Node) -> list[MappingNode]:
    return [one for one in items(child(pod, "containers")) if isinstance(one, MappingNode)]


def _workers(size: Value[Node]) -> Value[Node]:
    """The pods of a group without its leader."""
    pods = number_of(size)
    if pods is None:
        return size
    why = f"{pods} pods, of which the leader has no devices"
    return derived(node_of(pods - 1, size.place), size.place, why)

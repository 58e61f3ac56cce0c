"""Where each kind of workload keeps its pods, and how many of them there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capcheck import Place, Value, derived, unknown
from capcheck.source import Mapping, Node, Scalar
from capcheck_kubernetes.nodes import child, count_value, items, text

APPS = ("apps", "extensions")
GROUPS: dict[str, tuple[str, ...]] = {
    "Deployment": APPS,
    "StatefulSet": APPS,
    "ReplicaSet": APPS,
    "DaemonSet": APPS,
    "Job": ("batch",),
    "Pod": ("",),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io",),
}


class Pod(NamedTuple):
    """A pod's specification and what stands on the pod itself."""

    spec: Mapping
    annotations: Node | None


class Workload(NamedTuple):
    """One object that runs pods. `size`: the pods of one replica, where the object says so."""

    kind: str
    name: str
    namespace: str | None
    place: Place
    root: Node
    pod: Pod
    worker: Pod | None  # of a leader's group
    replicas: Value[Node] | None
    size: Value[Node] | None


def kind_of(root: Node) -> str | None:
    """The kind of a workload that is read here; None for every other document."""
    kind, version = text(child(root, "kind")), text(child(root, "apiVersion"))
    if kind is None or version is None:
        return None
    group, slash, _ = version.partition("/")
    return kind if (group if slash else "") in GROUPS.get(kind, ()) else None


def objects(root: Node) -> Iterator[Node]:
    """The document's objects: itself, or the items of a List."""
    if text(child(root, "kind")) == "List" and text(child(root, "apiVersion")) == "v1":
        yield from items(child(root, "items"))
    else:
        yield root


def workloads(root: Node) -> Iterator[Workload]:
    """The workloads of a document that have a pod."""
    for one in objects(root):
        kind = kind_of(one)
        if kind is not None:
            found = _group(one) if kind == "LeaderWorkerSet" else _single(one, kind)
            if found is not None:
                yield found


def _pod(template: Node | None) -> Pod | None:
    spec = child(template, "spec")
    if not isinstance(spec, Mapping):
        return None
    return Pod(spec, child(template, "metadata", "annotations"))


def _name(root: Node) -> tuple[str, Place]:
    name = child(root, "metadata", "name") or child(root, "metadata", "generateName")
    found = text(name)
    if name is not None and found:
        return found, name.place
    kind = child(root, "kind")
    return text(kind) or "", kind.place if kind is not None else root.place


def _workload(
    root: Node,
    kind: str,
    pod: Pod,
    worker: Pod | None = None,
    replicas: Value[Node] | None = None,
    size: Value[Node] | None = None,
) -> Workload:
    name, place = _name(root)
    namespace = text(child(root, "metadata", "namespace"))
    return Workload(kind, name, namespace, place, root, pod, worker, replicas, size)


def _count(root: Node, *keys: str) -> Value[Node] | None:
    node = child(root, *keys)
    return None if node is None else count_value(node, keys[-1])


def _single(root: Node, kind: str) -> Workload | None:
    pod = _pod(root if kind == "Pod" else child(root, "spec", "template"))
    if pod is None:
        return None
    replicas: Value[Node] | None = None
    if kind == "DaemonSet":
        replicas = unknown(root.place, "a DaemonSet runs one for each node")
    elif kind == "Job":
        replicas = _count(root, "spec", "parallelism")
    elif kind != "Pod":
        replicas = _count(root, "spec", "replicas")
    return _workload(root, kind, pod, replicas=replicas)


def _group(root: Node) -> Workload | None:
    group = child(root, "spec", "leaderWorkerTemplate")
    worker = _pod(child(group, "workerTemplate"))
    leader = _pod(child(group, "leaderTemplate")) or worker
    if group is None or leader is None:
        return None
    size = _count(group, "size") or _alone(group)
    replicas = _count(root, "spec", "replicas")
    return _workload(root, "LeaderWorkerSet", leader, worker, replicas, size)


def _alone(group: Node) -> Value[Node]:
    """A group without a size is its leader alone."""
    one: Node = Scalar("1", "integer", "plain", group.place)
    return derived(one, group.place, "a group without a size has one pod")

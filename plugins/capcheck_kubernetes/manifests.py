"""Reads the workloads of Kubernetes manifests: one deployment for each engine's container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from capcheck import ENV, Desk, Document, Draft, Format, Place, Value, unknown
from capcheck.deployment import FieldPath
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node
from capcheck_kubernetes import config_files
from capcheck_kubernetes.accelerators import Choice, accelerator
from capcheck_kubernetes.commands import Container, Run, run, word_problems
from capcheck_kubernetes.devices import visible
from capcheck_kubernetes.environment import environment
from capcheck_kubernetes.groups import Extent, extent, number_of
from capcheck_kubernetes.nodes import child, entries, items, key_place, text
from capcheck_kubernetes.runtime import runtime
from capcheck_kubernetes.surroundings import Surroundings
from capcheck_kubernetes.workloads import Workload, kind_of, objects, workloads

# Annotations that give a pod a share of a device.
SHARING_ANNOTATIONS = frozenset({"gpu-fraction", "gpu-memory", "runai/gpu-fraction"})

COUNT: FieldPath = ("hardware", "count")
Fields = dict[FieldPath, Value[Node]]


class _Server(NamedTuple):
    container: Container
    run: Run


class Kubernetes(Format):
    """Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, Pod, LeaderWorkerSet and List."""

    name = "kubernetes"
    title = "Kubernetes workloads that run an engine"

    def claims(self, document: Document) -> bool:
        """Whether the document holds a workload, whatever it runs."""
        return any(kind_of(one) is not None for one in objects(document.root))

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The containers that start a known engine; nothing is said of any other."""
        around = Surroundings(desk)
        for workload in workloads(desk.document.root):
            servers = _servers(workload, around)
            for server in servers:
                yield _draft(workload, server, around, alone=len(servers) == 1)


def _servers(workload: Workload, around: Surroundings) -> list[_Server]:
    """The servers of the pod; in a group, of the workers where the leader starts none."""
    found = list(_servers_of(workload.pod.spec, workload, around))
    worker = workload.worker
    if not found and worker is not None and worker.spec is not workload.pod.spec:
        found = list(_servers_of(worker.spec, workload, around))
    return found


def _servers_of(pod: MappingNode, workload: Workload, around: Surroundings) -> Iterator[_Server]:
    for node in items(child(pod, "containers")):
        if not isinstance(node, MappingNode):
            continue
        variables = environment(node, workload, around, _given(workload))
        container = Container(node, pod, workload, variables)
        found = run(container, around)
        if found is not None:
            yield _Server(container, found)


def _given(workload: Workload) -> dict[str, str | None]:
    """Variables that the orchestrator sets by itself."""
    if workload.kind != "LeaderWorkerSet":
        return {}
    size = number_of(workload.size)
    return {
        "LWS_GROUP_SIZE": str(size) if size is not None else None,
        "LWS_LEADER_ADDRESS": None,
        "LWS_WORKER_INDEX": None,
    }


def _draft(workload: Workload, server: _Server, around: Surroundings, *, alone: bool) -> Draft:
    container, started = server.container, server.run.started
    found = extent(container, server.run)
    place = key_place(found.pod, "nodeSelector") or key_place(found.pod, "affinity")
    choice = accelerator(found.pod, place or found.pod.place, around.desk.catalogue)
    fields: Fields = {(*ENV, name): value for name, value in container.environment.values.items()}
    fields.update(started.fields)
    fields.update(_hardware(workload, found, choice, server))
    fields[COUNT] = visible(fields[COUNT], fields)
    fields.update(runtime(container.node, workload, container.pod, around))
    replicas = _replicas(workload, found, around)
    if replicas is not None:
        fields[("replicas",)] = replicas
    name = text(child(container.node, "name")) or "container"
    draft = Draft(
        name=workload.name if alone else f"{workload.name}/{name}",
        format=Kubernetes.name,
        place=workload.place,
        fields=fields,
        places={**_places(workload, container.node), **started.places},
        problems=(*choice.problems, *word_problems(container.node)),
    )
    return config_files.joined(draft, container, started.engine.name, around)


def _hardware(workload: Workload, found: Extent, choice: Choice, server: _Server) -> Fields:
    number, share = found.devices.number, found.devices.share or _share(workload)
    if server.run.started.servers > 1:
        why = f"the container starts {server.run.started.servers} servers"
        number = unknown(number.place, why, number.origin.word)
    named = choice.value
    if share:
        named = Value((), number.origin._replace(why=share))
    fields: Fields = {("hardware", "accelerator"): named, COUNT: number}
    if found.nodes is not None:
        fields[("hardware", "nodes")] = found.nodes
    return fields


def _share(workload: Workload) -> str:
    """Why an annotation says that the devices are not whole ones."""
    for key, _, _ in entries(workload.pod.annotations):
        if key in SHARING_ANNOTATIONS:
            return f"{key}: a share of a device"
    return ""


def _replicas(workload: Workload, found: Extent, around: Surroundings) -> Value[Node] | None:
    scaler = around.autoscaler(workload)
    if scaler:
        place = found.replicas.place if found.replicas is not None else workload.place
        return unknown(place, f"{scaler} sets the number of replicas", "replicas")
    return found.replicas


def _places(workload: Workload, container: Node) -> dict[FieldPath, Place]:
    """Where what is missing would be written."""
    head = key_place(container, "name") or container.place
    args = key_place(container, "args") or key_place(container, "command") or head
    hardware = key_place(container, "resources") or head
    return {
        (): workload.place,
        ("model",): args,
        ("engine",): head,
        ("engine", "args"): args,
        ("engine", "env"): key_place(container, "env") or head,
        ("engine", "version"): key_place(container, "image") or head,
        ("hardware",): hardware,
        ("replicas",): workload.place,
        ("runtime",): head,
    }

"""What the orchestrator gives a container besides devices: /dev/shm, patience, variables."""

from __future__ import annotations

from collections.abc import Mapping

from capcheck import Origin, Place, Value, derived, unknown
from capcheck.deployment import FieldPath
from capcheck.launch import node_of
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Sequence
from capcheck.unrendered import unrendered_in, unresolved_why
from capcheck_kubernetes.config_maps import mounted_volume
from capcheck_kubernetes.nodes import boolean, child, integer, scalar, text
from capcheck_kubernetes.surroundings import Surroundings
from capcheck_kubernetes.workloads import Workload

PROBE_DEFAULTS = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3}
SHM = "/dev/shm"


def runtime(
    container: Node, workload: Workload, pod: Node, around: Surroundings
) -> Mapping[FieldPath, Value[Node]]:
    """The fields below `runtime`."""
    fields: dict[FieldPath, Value[Node]] = {("runtime", "shm"): shared_memory(container, pod)}
    budget = startup_seconds(container)
    if budget is not None:
        fields[("runtime", "startup_seconds")] = budget
    fields[("runtime", "service_links")] = _service_links(pod, container.place)
    names = around.services(workload)
    if names:
        place = names[0].place
        origin = Origin("written", place, word="Service")
        fields[("runtime", "services")] = Value((Sequence(names, place),), origin)
    return fields


def shared_memory(container: Node, pod: Node) -> Value[Node]:
    """The size of /dev/shm; `memory` is all of the node's, `default` the container runtime's."""
    volume = mounted_volume(SHM, container, pod)
    if volume is None:
        host = child(pod, "hostIPC")
        if host is not None and boolean(host):
            return Value((node_of("memory", host.place),), Origin("written", host.place))
        why = f"nothing is mounted at {SHM}"
        return derived(node_of("default", container.place), container.place, why)
    limit = scalar(child(volume, "emptyDir", "sizeLimit"))
    if limit is None:
        return Value((node_of("memory", volume.place),), Origin("written", volume.place, word=SHM))
    lost = unrendered_in(limit)
    if lost:
        return unknown(limit.place, unresolved_why(lost), "sizeLimit")
    return Value((limit,), Origin("written", limit.place, word="sizeLimit"))


def startup_seconds(container: Node) -> Value[Node] | None:
    """How long a container may take before it is restarted; None when nothing restarts it."""
    for name in ("startupProbe", "livenessProbe"):
        probe = child(container, name)
        if isinstance(probe, MappingNode):
            return _budget(probe, name)
    return None


def _budget(probe: Node, name: str) -> Value[Node]:
    amounts = dict(PROBE_DEFAULTS)
    for key in amounts:
        node = child(probe, key)
        number = integer(node) if node is not None else amounts[key]
        if number is None or number < 0:
            at = node.place if node is not None else probe.place
            return unknown(at, f"{key} is not a number of seconds or tries", name)
        amounts[key] = number
    delay, period, tries = amounts.values()
    seconds = node_of(delay + tries * period, probe.place)
    return Value((seconds,), Origin("written", probe.place, word=name))


def _service_links(pod: Node, at: Place) -> Value[Node]:
    node = child(pod, "enableServiceLinks")
    if node is None:
        return derived(node_of(True, at), at, "enableServiceLinks is not set")
    on = boolean(node)
    if on is None:
        return unknown(node.place, f"{text(node)} is not true or false", "enableServiceLinks")
    return Value(
        (node_of(on, node.place),), Origin("written", node.place, word="enableServiceLinks")
    )

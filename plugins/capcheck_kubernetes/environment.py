"""A container's environment variables, as far as the files tell them."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Origin, Value, unknown
from capcheck.embedded import kubernetes_variables
from capcheck.source import Node, Scalar
from capcheck.unrendered import expressions_in, unresolved_why
from capcheck_kubernetes.config_maps import Mounted, all_entries, entry, missing_why
from capcheck_kubernetes.nodes import child, items, scalar, text
from capcheck_kubernetes.surroundings import Surroundings
from capcheck_kubernetes.workloads import Workload


class Environment(NamedTuple):
    """Variables by name. `texts` is what commands expand: None where the value is not known."""

    values: dict[str, Value[Node]]
    texts: dict[str, str | None]

    def add(self, name: str, value: Value[Node]) -> None:
        """Sets a variable; the last of several counts."""
        self.values[name] = value
        node = value.either(None)
        self.texts[name] = node.text if isinstance(node, Scalar) else None


def environment(
    container: Node, workload: Workload, around: Surroundings, given: dict[str, str | None]
) -> Environment:
    """`envFrom`, then `env`; `given` are variables that the orchestrator itself sets."""
    made = Environment({}, dict(given))
    for source in items(child(container, "envFrom")):
        name = text(child(source, "configMapRef", "name"))
        prefix = text(child(source, "prefix")) or ""
        if name is not None:
            for key, held in all_entries(name, workload, around):
                made.add(prefix + key, _held(held, name, source, prefix + key, workload, around))
    for one in items(child(container, "env")):
        name = text(child(one, "name"))
        if name:
            made.add(name, _value(one, name, made.texts, workload, around))
    return made


def _held(
    held: Mounted | None, holder: str, at: Node, name: str, workload: Workload, around: Surroundings
) -> Value[Node]:
    """A value that stands in a ConfigMap; what it holds is not expanded."""
    if held is None:
        return unknown(at.place, missing_why(holder, workload, around), name)
    content = held.content
    origin = Origin("written", content.place, via=(at.place,), word=name)
    lost = expressions_in(content.text) if "{{" in content.text else ()
    if lost:
        return Value((), origin._replace(why=unresolved_why(lost)))
    return Value((content,), origin)


def _value(
    one: Node, name: str, texts: dict[str, str | None], workload: Workload, around: Surroundings
) -> Value[Node]:
    source = child(one, "valueFrom")
    if source is not None:
        return _from(source, name, workload, around)
    node = child(one, "value")
    if node is None:
        return Value((Scalar("", "text", "plain", one.place),), Origin("written", one.place))
    content = scalar(node)
    if content is None:
        return unknown(node.place, f"{name} is not a text", name)
    expanded, unresolved = kubernetes_variables(content.text, texts)
    lost = (*unresolved, *expressions_in(content.text))
    if lost:
        return unknown(node.place, unresolved_why(lost), name)
    return Value((content._replace(text=expanded),), Origin("written", content.place, word=name))


def _from(source: Node, name: str, workload: Workload, around: Surroundings) -> Value[Node]:
    """A value that stands elsewhere: only a ConfigMap of the run can be read."""
    reference = child(source, "configMapKeyRef")
    if reference is None:
        for kind, why in (("secretKeyRef", "a secret"), ("fieldRef", "the pod's own fields")):
            if child(source, kind) is not None:
                return unknown(source.place, f"{name} comes from {why}", name)
        return unknown(source.place, f"{name} comes from outside the files", name)
    holder, key = text(child(reference, "name")), text(child(reference, "key"))
    if holder is None or key is None:
        return unknown(reference.place, f"{name} names no entry of a ConfigMap", name)
    held = entry(holder, key, workload, around)
    return _held(held, holder, reference, name, workload, around)

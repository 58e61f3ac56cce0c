"""Which accelerator a pod's node selection names, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from capcheck import MIB, Catalogue, Origin, Place, Value, alternatives, unknown
from capcheck.launch import unrendered_in, unresolved_why
from capcheck.source import Node, Scalar
from capcheck_kubernetes.nodes import child, entries, items, scalar, text

# Labels that name a part, the most trusted first.
PART_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "gpu.nvidia.com/model",
    "machine.cluster.vke.volcengine.com/gpu-name",
    "k8s.amazonaws.com/accelerator",
)
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# Labels that may name a part, a vendor or a pool of somebody's own: used when the catalogue
# knows the name, else no more than a hint.
VAGUE_LABELS = (
    "kubernetes.azure.com/accelerator",
    "gpu.nvidia.com/class",
    "karpenter.k8s.aws/instance-family",
    "eks.amazonaws.com/instance-family",
    "cloud.google.com/machine-family",
    "agentpool",
    "accelerator",
)
SHARING_LABELS = (
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.config",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-gpu-partition-size",
)
# MiB of one device. On its own it names no part; it tells parts of one name apart.
MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
MEMORY_REACH = 0.15  # drivers report less than the nominal size, and sizes are rounded
WHOLE_DEVICE_WORDS = frozenset({"none", "all-disabled"})
TRUST = {key: rank for rank, key in enumerate((*PART_LABELS, *INSTANCE_LABELS, *VAGUE_LABELS))}

Problem = tuple[str, str, Place]


class Named(NamedTuple):
    """A label that a node must carry, with the values it may have."""

    key: str
    names: tuple[str, ...]
    place: Place
    lost: tuple[str, ...] = ()  # templates in the values


class Choice(NamedTuple):
    """The accelerator, and contradictions found on the way."""

    value: Value[Node]
    problems: tuple[Problem, ...] = ()


def _label(key: str, values: Sequence[Node], place: Place) -> Named:
    names = tuple(one.text.strip() for one in map(scalar, values) if one is not None)
    lost = tuple(expression for one in values for expression in unrendered_in(one))
    return Named(key, names, place, lost)


def _expressions(node: Node | None) -> Iterator[Named]:
    """Labels that match expressions give values for; `Exists` and `NotIn` name nothing."""
    for one in items(node):
        key, values = text(child(one, "key")), child(one, "values")
        if key is not None and values is not None and text(child(one, "operator")) == "In":
            yield _label(key.strip(), items(values), values.place)


def requirements(pod: Node) -> tuple[tuple[Named, ...], ...]:
    """What the pod's node must be like: alternatives of labels that must all be there."""
    selector = tuple(
        _label(key, (value,), value.place) for key, value, _ in entries(child(pod, "nodeSelector"))
    )
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = items(child(pod, "affinity", "nodeAffinity", required, "nodeSelectorTerms"))
    if not terms:
        return (selector,)
    return tuple((*selector, *_expressions(child(term, "matchExpressions"))) for term in terms)


def accelerator(pod: Node, at: Place, catalogue: Catalogue | None) -> Choice:
    """The accelerator of the pod's node. Terms of an affinity are alternatives."""
    choices = [_choose(labels, at, catalogue) for labels in requirements(pod)]
    problems = tuple(problem for choice in choices for problem in choice.problems)
    lost = next((choice.value for choice in choices if choice.value.unknown), None)
    if lost is not None:
        return Choice(lost, problems)
    nodes = {
        option.text: option
        for choice in choices
        for option in choice.value.options
        if isinstance(option, Scalar)
    }
    return Choice(alternatives(nodes.values(), choices[0].value.origin), problems)


def _choose(labels: Sequence[Named], at: Place, catalogue: Catalogue | None) -> Choice:
    """What the labels of one term say together."""
    for label in labels:
        if label.key in SHARING_LABELS and not WHOLE_DEVICE_WORDS.issuperset(label.names):
            why = f"{label.key}: a share of a device, of unknown size"
            return Choice(unknown(label.place, why, label.key))
    telling = sorted((one for one in labels if one.key in TRUST), key=lambda one: TRUST[one.key])
    named = [one for one in telling if one.names and not one.lost]
    if catalogue is not None:
        sizes = [one for one in labels if one.key in MEMORY_LABELS and not one.lost]
        return _agree(named, telling, sizes, at, catalogue)
    sure = [one for one in named if one.key not in VAGUE_LABELS]
    return Choice(_value(sure[0], sure[0].names) if sure else _nothing(telling, at))


def _nothing(telling: Sequence[Named], at: Place) -> Value[Node]:
    for label in telling:
        if label.lost:
            return unknown(label.place, unresolved_why(label.lost), label.key)
    return unknown(at, "no node selector names an accelerator")


def _value(label: Named, names: Iterable[str]) -> Value[Node]:
    origin = Origin("written", label.place, word=label.key)
    return alternatives((Scalar(name, "text", "plain", label.place) for name in names), origin)


def _ids(label: Named, catalogue: Catalogue) -> tuple[str, ...]:
    found = (one for name in label.names for one in catalogue.accelerators(name, label.key).ids)
    return tuple(dict.fromkeys(found))


def _agree(
    named: Sequence[Named],
    telling: Sequence[Named],
    sizes: Sequence[Named],
    at: Place,
    catalogue: Catalogue,
) -> Choice:
    """The part that all labels allow; labels that exclude each other are a conflict."""
    known = [(label, ids) for label in named if (ids := _ids(label, catalogue))]
    if not known:
        return Choice(_unheard_of(named, telling, at))
    for label, _ in known:
        if any(catalogue.accelerators(name, label.key).shared for name in label.names):
            return Choice(_value(label, label.names))  # the core knows what shares are worth
    first, common = known[0]
    for label, ids in known[1:]:
        both = tuple(one for one in common if one in ids)
        if not both:
            pair = " and ".join(f"{one.key}: {' or '.join(one.names)}" for one in (first, label))
            problem = ("spec/conflict", f"{pair} are not one accelerator", label.place)
            lost: Value[Node] = unknown(label.place, "labels contradict each other", label.key)
            return Choice(lost, (problem,))
        common = both
    common = tuple(one for one in common if _fits(one, sizes, catalogue)) or common
    for label, ids in known:
        if len(ids) == len(common) and _plainly(label, catalogue) == common:
            return Choice(_value(label, label.names))
    return Choice(_value(first, common))


def _fits(identity: str, sizes: Iterable[Named], catalogue: Catalogue) -> bool:
    """Whether a part has one of the memory sizes that each label asks for."""
    have = catalogue.accelerator(identity).nominal_bytes
    return all(
        any(abs(float(name) * MIB - have) <= MEMORY_REACH * have for name in label.names)
        for label in sizes
        if label.names and all(name.isdecimal() for name in label.names)
    )


def _plainly(label: Named, catalogue: Catalogue) -> tuple[str, ...]:
    """What the names mean to somebody who does not know which label they are values of."""
    return _ids(label._replace(key=""), catalogue)


def _unheard_of(named: Sequence[Named], telling: Sequence[Named], at: Place) -> Value[Node]:
    """A part's name stays, for the core to suggest what was meant; others name no part."""
    for label in named:
        if label.key in PART_LABELS:
            return _value(label, label.names)
    for label in named:
        if label.key in INSTANCE_LABELS:
            why = f"the instance type {' or '.join(label.names)} is not in the catalogue"
            return unknown(label.place, why, label.key)
    return _nothing(telling, at)

"""How many accelerators a container is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from capcheck import ENV, Place, Value, derived, unknown
from capcheck.deployment import FieldPath
from capcheck.launch import node_of
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar, as_integer
from capcheck_kubernetes.nodes import child, count_value, entries, integer

WHOLE_DEVICES = frozenset({
    "nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "habana.ai/gaudi", "gpu.intel.com/i915",
    "gpu.intel.com/xe", "huawei.com/Ascend910", "huawei.com/Ascend910B",
})  # fmt: skip
NEURON = re.compile(r"aws\.amazon\.com/neuron(?:core|device)?")
SHARES = re.compile(
    r"nvidia\.com/(?:mig-.+|gpu\.shared|gpumem(?:-percentage)?|gpucores|vgpu.*)"
    r"|volcano\.sh/vgpu-.+|aliyun\.com/gpu-.+|tencent\.com/vcuda-.+|k8s\.amazonaws\.com/vgpu"
    r"|gpu\.intel\.com/(?:millicores|memory\.max|tiles)"
)
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
VENDORS = re.compile(r"(?:nvidia|amd)\.com/.+|gpu\.intel\.com/.+|habana\.ai/.+")


class Devices(NamedTuple):
    """Accelerators of one container; `share` says why they are not whole ones."""

    number: Value[Node]
    share: str = ""
    asked: bool = True  # False: the container asks for none


def devices(container: MappingNode) -> Devices:
    """What the limits grant; the requests where there are no limits."""
    resources = child(container, "resources")
    at = resources.place if resources is not None else container.place
    for part in ("limits", "requests"):
        found = [
            (key, value, place)
            for key, value, place in entries(child(resources, part))
            if _special(key) and integer(value) != 0
        ]
        # Beside devices, a vendor's other names are network cards and drivers.
        known = [one for one in found if _told(one[0])]
        if found:
            return _devices(known or found)
    if child(resources, "claims") is not None:
        why = "a resource claim grants the devices"
        return Devices(unknown(at, why, "resources.claims"))
    return Devices(unknown(at, "the container asks for no accelerator"), asked=False)


def _told(key: str) -> bool:
    return bool(key in WHOLE_DEVICES or NEURON.fullmatch(key) or SHARES.fullmatch(key))


def _special(key: str) -> bool:
    return _told(key) or VENDORS.fullmatch(key) is not None


def _devices(found: list[tuple[str, Node, Place]]) -> Devices:
    """Whole devices are counted; of anything else the number of devices is not known."""
    for key, value, _ in found:
        if SHARES.fullmatch(key):
            return Devices(count_value(value, key), f"{key}: a share of a device")
    if len(found) > 1:
        names = " and ".join(key for key, _, _ in found)
        return Devices(unknown(found[0][2], f"several kinds of device: {names}", found[0][0]))
    key, value, _ = found[0]
    if NEURON.fullmatch(key):
        return Devices(unknown(value.place, "Neuron devices hold several cores each", key))
    if key not in WHOLE_DEVICES:
        return Devices(unknown(value.place, f"{key} is not a resource that is known here", key))
    return Devices(count_value(value, key))


def visible(number: Value[Node], fields: Mapping[FieldPath, Value[Node]]) -> Value[Node]:
    """The devices that the server's own environment lets it see of those it is given."""
    for name in VISIBLE:
        value = fields.get((*ENV, name))
        if value is None:
            continue
        shown, given = value.either(None), number.either(None)
        if not isinstance(shown, Scalar):
            return Value((), value.origin)
        listed = [one for one in shown.text.split(",") if one.strip()]
        given_number = as_integer(given) if isinstance(given, Scalar) else None
        if listed and given_number is not None and len(listed) < given_number:
            return derived(node_of(len(listed), value.place), value.place, f"{name} lists them")
    return number

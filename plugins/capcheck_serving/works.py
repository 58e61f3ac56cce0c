"""What one device of a case reads and computes: the work of its model under its layout."""

from __future__ import annotations

from capcheck import Accelerator, Architecture, Case, Scheme, Unknown
from capcheck.architecture import Tensor
from capcheck.packing import Packed
from capcheck.physics.kv import KV_ELEMENT_BYTES
from capcheck.physics.work import Layout, Machine, Storage, Work, work_of
from capcheck.values import unknown
from capcheck_serving.constants import Packing, compute_of, sixteen_bit

WIDTHS = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}


def _scheme_of(case: Case, tensor: Tensor, scheme: Scheme | None) -> Scheme | None:
    if scheme is None or not tensor.linear or not tensor.into:
        return None
    return case.workshop.packing.of_module(scheme, 0, tensor.parts[0].name, tensor.role)


def _stored_bytes(case: Case, tensor: Tensor, scheme: Scheme | None, width: float) -> float:
    own = _scheme_of(case, tensor, scheme)
    if own is None:
        return tensor.elements * (4.0 if tensor.dtype == "fp32" else width)
    outs = tuple(part.out for part in tensor.parts)
    packed = Packed(outs, tensor.into, tensor.copies, width, "", tensor.split)
    return sum(case.workshop.packing.allocations(own, packed))


def _layout(case: Case) -> Layout:
    plan = case.plan
    return Layout(
        tensor=plan.tensor.get("tensor_parallel_size"),
        data=plan.data.get("data_parallel_size"),
        expert=max(1, plan.expert.get("expert parallel")),
        pipeline=plan.pipeline.get("pipeline_parallel_size"),
        context=max(1, plan.context.get()),
    )


def work(case: Case) -> Work:
    """What one device reads and computes. Raises Unknown."""
    key = ("serving work", id(case))
    cache = case.workshop.cache
    if key not in cache:
        cache[key] = (_work(case), case)
    made: Work = cache[key][0]
    return made


def _work(case: Case) -> Work:
    held = case.plan.host_weights
    if held is not None and held.either(True):
        why = "weights on the host are read over its link, which is not modelled"
        raise Unknown(held.because(why) if held.known else held, "latency")
    graphs = case.plan.graphs
    if graphs.origin.kind == "written" and graphs.either(True) is False:
        why = "without CUDA graphs the host sets the pace, which is not modelled"
        raise Unknown(graphs.because(why), "latency")
    model = case.model.get("model")
    return work_of_model(case, model.architecture, model.scheme.get("quantization"))


def work_of_model(case: Case, model: Architecture, scheme: Scheme | None) -> Work:
    """What one device reads and computes of some model. Raises Unknown."""
    part = case.accelerator.get("accelerator")
    width = WIDTHS.get(case.plan.weight_dtype.get("dtype"), 2.0)
    if not {"bf16", "fp16"} & set(part.flops):
        place = case.accelerator.place
        raise Unknown(unknown(place, f"the 16-bit peak of {part.name} is not known"))

    read = case.terms().read
    half = read("serving.half_sums") > 0.0

    def stored(tensor: Tensor) -> float:
        return _stored_bytes(case, tensor, scheme, width)

    def peak(tensor: Tensor) -> float:
        own = _scheme_of(case, tensor, scheme)
        weight, activation = (own.weight, own.activation) if own else ("bf16", "")
        return compute_of(weight, activation, part.flops, half)[1]

    layout = _layout(case)
    link = _link_rate(part, layout)
    devices = layout.expert_devices * layout.pipeline
    if devices > 1 and not link:
        raise Unknown(unknown(case.accelerator.place, f"the link of {part.name} is not known"))
    machine = Machine(part.bandwidth, sixteen_bit(part.flops), link)
    storage = Storage(stored, peak, kv_bytes(case), group_reads=read("serving.group_reads"))
    return work_of(model, storage, layout, machine)


def _link_rate(part: Accelerator, layout: Layout) -> float:
    """Bytes/s one way between a replica's devices: PCIe where a bridge does not join them all."""
    pcie = part.pcie_bytes_per_second or 0.0
    if part.link.optional and layout.expert_devices > part.link.domain and pcie:
        return pcie
    return part.link.bytes_per_second or pcie


def kv_bytes(case: Case) -> float:
    """Bytes of one cached element, of several possible dtypes the first. Raises Unknown."""
    stated = case.plan.kv_dtype
    dtype = stated.options[0] if stated.options else stated.get("KV dtype")
    return KV_ELEMENT_BYTES.get(dtype, 1.0)


def packings(case: Case) -> tuple[Packing, Packing, float]:
    """How dense weights and experts are stored and multiplied, and the bits of a KV element."""
    model = case.model.get("model")
    part = case.accelerator.get("accelerator")
    scheme = model.scheme.get("quantization")
    found = []
    for roles in (("mlp", "attention"), ("expert",)):
        tensors = [
            tensor
            for layer in model.architecture.layers
            for tensor in layer.tensors
            if tensor.role in roles and tensor.linear
        ]
        own = _scheme_of(case, tensors[0], scheme) if tensors else None
        weight, activation = (own.weight, own.activation) if own else ("bf16", "")
        compute = compute_of(weight, activation, part.flops)[0]
        if compute == "fp8" and own is not None and own.block is not None:
            compute = "fp8_block"
        found.append(Packing(own.bits if own else 16.0, compute))
    return found[0], found[1], 8.0 * kv_bytes(case)

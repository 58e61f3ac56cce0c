from __future__ import annotations

from typing import Any

import pytest
from formats_kit import catalogue, plain, why
from kubernetes_kit import GKE, PREFERRED, PRODUCT, TYPE, pod


def accelerator(*arguments: str, **more: Any) -> Any:
    return plain(pod(*arguments, **more), "hardware", "accelerator")


def has(key: str, *values: str, operator: str = "In") -> str:
    return f"{{key: {key}, operator: {operator}, values: [{', '.join(values)}]}}"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (PRODUCT, "NVIDIA-H100-80GB-HBM3"),
        (PRODUCT, "Tesla-T4"),
        (GKE, "nvidia-l4"),
        (GKE, "nvidia-tesla-a100"),
        ("cloud.google.com/gke-tpu-accelerator", "tpu-v6e-slice"),
        ("karpenter.k8s.aws/instance-gpu-name", "a10g"),
        ("eks.amazonaws.com/instance-gpu-name", "l40s"),
        ("gpu.nvidia.com/model", "H200"),
        ("machine.cluster.vke.volcengine.com/gpu-name", "NVIDIA-L20"),
        (TYPE, "g6.12xlarge"),
        ("beta.kubernetes.io/instance-type", "p5.48xlarge"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_labels_that_name_a_part(key: str, name: str, known: bool) -> None:
    found = accelerator(f'"{key}": {name}', known=known)
    assert found == name
    assert accelerator("", has(key, name), known=known) == name


def test_a_named_part_keeps_its_place_and_its_label() -> None:
    draft = pod(f'"{GKE}": nvidia-l4')
    value = draft.fields[("hardware", "accelerator")]
    assert (value.origin.word, value.place.line) == (GKE, 5)


def test_several_values_are_alternatives() -> None:
    assert accelerator("", has(GKE, "nvidia-l4", "nvidia-tesla-t4")) == [
        "nvidia-l4", "nvidia-tesla-t4",
    ]  # fmt: skip
    assert accelerator("", has(GKE, "nvidia-l4"), has(GKE, "nvidia-b200")) == [
        "nvidia-l4", "nvidia-b200",
    ]  # fmt: skip
    names = [f"a{number}" for number in range(9)]
    assert accelerator("", has(GKE, *names), known=False) == "?"


def test_a_term_that_names_none_leaves_it_open() -> None:
    draft = pod("", has(GKE, "nvidia-l4"), has("zone", "a"))
    assert why(draft, "hardware", "accelerator") == "no node selector names an accelerator"


@pytest.mark.parametrize(
    "term",
    [
        has(GKE, operator="Exists"),
        has(GKE, "nvidia-l4", operator="NotIn"),
        has("nvidia.com/gpu.memory", "24564"),
        has("nvidia.com/gpu.present", "'true'"),
        has("cloud.google.com/gke-nodepool", "l4-pool"),
        has("kubernetes.azure.com/accelerator", "nvidia"),
        has("agentpool", "gpu"),
        "5",
        "{key: [a], operator: In, values: 3}",
    ],
)
def test_what_names_no_part(term: str) -> None:
    assert accelerator("", term) == "?"


def test_preferences_name_nothing() -> None:
    assert accelerator("", has(GKE, "nvidia-l4"), rule=PREFERRED) == "?"


def test_labels_that_agree_are_one() -> None:
    assert accelerator(f'"{TYPE}": g5.12xlarge, "{PRODUCT}": NVIDIA-A10G') == "NVIDIA-A10G"
    # The instance types allow two parts, the other label one of them.
    found = accelerator(
        "",
        f"{has(TYPE, 'g5.12xlarge', 'g6.12xlarge')}, "
        f"{has('karpenter.k8s.aws/instance-gpu-name', 'a10g')}",
    )
    assert found == "a10g"
    # A name of several parts, cut down by the instance type.
    found = accelerator(f'"karpenter.k8s.aws/instance-gpu-name": a100, "{TYPE}": p4d.24xlarge')
    assert found == "p4d.24xlarge"


def test_a_vague_label_counts_where_the_catalogue_knows_it() -> None:
    assert accelerator("accelerator: nvidia-l4") == "nvidia-l4"
    assert accelerator("accelerator: gpu") == "?"


def test_memory_tells_parts_of_one_name_apart() -> None:
    name = '"karpenter.k8s.aws/instance-gpu-name": a100'
    both = catalogue().accelerators("a100").ids
    assert len(both) > 1
    memory = "karpenter.k8s.aws/instance-gpu-memory"
    found = accelerator(f'{name}, "{memory}": "40960"')
    assert found and all("40gb" in one for one in ([found] if isinstance(found, str) else found))
    assert accelerator(f'{name}, "{memory}": "7"') == accelerator(name)


def test_labels_that_contradict_each_other() -> None:
    draft = pod(f'"{TYPE}": g5.12xlarge, "{PRODUCT}": NVIDIA-L4')
    assert plain(draft, "hardware", "accelerator") == "?"
    assert [rule for rule, _, _ in draft.problems] == ["spec/conflict"]
    assert "NVIDIA-L4" in draft.problems[0][1]
    assert "g5.12xlarge" in draft.problems[0][1]


def test_names_that_nobody_knows() -> None:
    # The core says what may have been meant.
    assert accelerator(f'"{PRODUCT}": NVIDIA-L44') == "NVIDIA-L44"
    draft = pod(f'"{TYPE}": m7i.large')
    assert why(draft, "hardware", "accelerator") == (
        "the instance type m7i.large is not in the catalogue"
    )
    assert accelerator(f'"{TYPE}": m7i.large, "{PRODUCT}": NVIDIA-L4') == "NVIDIA-L4"


def test_a_template_is_unknown() -> None:
    draft = pod(f"\"{GKE}\": '{{{{ .Values.gpu }}}}'")
    assert why(draft, "hardware", "accelerator") == "{{ .Values.gpu }} is not resolved"


@pytest.mark.parametrize(
    "selector",
    [
        '"nvidia.com/gpu.sharing-strategy": time-slicing, "nvidia.com/gpu.product": NVIDIA-L4',
        '"cloud.google.com/gke-gpu-partition-size": 1g.5gb, "nvidia.com/gpu.product": NVIDIA-L4',
        '"nvidia.com/mig.config": all-1g.10gb, "nvidia.com/gpu.product": NVIDIA-L4',
    ],
)
def test_nodes_that_share_their_devices(selector: str) -> None:
    assert "a share of a device" in why(pod(selector), "hardware", "accelerator")


def test_a_label_that_speaks_of_shares_decides() -> None:
    name = "NVIDIA-A100-SXM4-40GB-SHARED"
    assert accelerator(f'"{TYPE}": p4d.24xlarge, "{PRODUCT}": {name}') == name
    assert accelerator(f'"{TYPE}": Standard_NV6ads_A10_v5') == "Standard_NV6ads_A10_v5"


def test_nodes_that_do_not_share() -> None:
    selector = '"nvidia.com/gpu.sharing-strategy": none, "nvidia.com/gpu.product": NVIDIA-L4'
    assert accelerator(selector) == "NVIDIA-L4"

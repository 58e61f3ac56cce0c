from __future__ import annotations

from typing import Any

import pytest
from formats_kit import arg, catalogue, marked, plain, read_all, read_one, why

from capcheck import Draft

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat, annotations: {ANNOTATIONS}}
spec:
  nodeSelector: {SELECTOR}
  affinity: {nodeAffinity: {RULE: {nodeSelectorTerms: [TERMS]}}}
  containers:
    - image: vllm/vllm-openai:v0.12.0
      args: [m]
      env: [ENV]
      resources: RESOURCES
"""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GKE = "cloud.google.com/gke-accelerator"
PRODUCT = "nvidia.com/gpu.product"
TYPE = "node.kubernetes.io/instance-type"


def pod(
    selector: str = "",
    *terms: str,
    rule: str = REQUIRED,
    resources: str = "{limits: {nvidia.com/gpu: 1}}",
    env: str = "",
    annotations: str = "",
    known: bool = True,
) -> Draft:
    listed = ", ".join(f"{{matchExpressions: [{term}]}}" for term in terms)
    text = (
        POD.replace("SELECTOR", selector)
        .replace("RULE", rule)
        .replace("TERMS", listed)
        .replace("RESOURCES", resources)
        .replace("ENV", env)
        .replace("ANNOTATIONS", annotations)
    )
    return read_one(text, shelves=catalogue() if known else None)


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
    assert why(draft, "hardware", "accelerator") == "no node selector names one"


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


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ("{limits: {nvidia.com/gpu: 2}}", 2),
        ("{limits: {nvidia.com/gpu: '8'}}", 8),
        ("{limits: {' nvidia.com/gpu ': ' 4 '}}", 4),
        ("{limits: {amd.com/gpu: 8, memory: 1Gi}}", 8),
        ("{limits: {google.com/tpu: 4}}", 4),
        ("{limits: {habana.ai/gaudi: 1}}", 1),
        ("{limits: {gpu.intel.com/xe: 2}}", 2),
        ("{limits: {memory: 1Gi}, requests: {nvidia.com/gpu: 2}}", 2),
        ("{limits: {nvidia.com/gpu: 2, nvidia.com/sriov-rdma: 1, rdma/ib: 1}}", 2),
        ("{limits: {nvidia.com/gpu: 2, amd.com/gpu: 1}}", "?"),
        ("{limits: {nvidia.com/A100: 2}}", "?"),
        ("{limits: {aws.amazon.com/neuron: 16}}", "?"),
        ("{limits: {nvidia.com/gpu: many}}", "?"),
        ("{limits: {nvidia.com/gpu: 0}}", "?"),
        ("{limits: {cpu: 4}}", "?"),
        ("{claims: [{name: gpu}]}", "?"),
        ("[]", "?"),
        ("3", "?"),
    ],
)
def test_how_many_devices(resources: str, count: object) -> None:
    assert plain(pod(resources=resources), "hardware", "count") == count


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/gpu.shared",
        "nvidia.com/gpumem",
        "tencent.com/vcuda-core",
    ],
)
def test_shares_of_a_device(resource: str) -> None:
    draft = pod('"nvidia.com/gpu.product": NVIDIA-L4', resources=f"{{limits: {{{resource}: 1}}}}")
    assert why(draft, "hardware", "accelerator") == f"{resource}: a share of a device"


def test_a_fraction_by_annotation() -> None:
    draft = pod('"nvidia.com/gpu.product": NVIDIA-L4')
    assert plain(draft, "hardware", "accelerator") == "NVIDIA-L4"
    text = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: "
        "{metadata: {annotations: {gpu-fraction: '0.5'}}, spec: {containers: "
        "[{image: 'vllm/vllm-openai:v0.12.0', args: [m]}], "
        "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}}}}\n"
    )
    assert why(read_one(text), "hardware", "accelerator") == "gpu-fraction: a share of a device"


def test_devices_that_the_server_does_not_see() -> None:
    limits = "{limits: {nvidia.com/gpu: 4}}"
    seen = pod(resources=limits, env="{name: CUDA_VISIBLE_DEVICES, value: '0,1'}")
    assert plain(seen, "hardware", "count") == 2
    all_of_them = pod(resources=limits, env="{name: CUDA_VISIBLE_DEVICES, value: '0,1,2,3'}")
    assert plain(all_of_them, "hardware", "count") == 4
    secret = "{name: CUDA_VISIBLE_DEVICES, valueFrom: {secretKeyRef: {name: a, key: b}}}"
    assert plain(pod(resources=limits, env=secret), "hardware", "count") == "?"


GROUP = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    leaderTemplate:
      spec:
        nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
        containers:
          - name: leader
            image: vllm/vllm-openai:v0.8.5
            command:
              - sh
              - -c
              - "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader
                 --ray_cluster_size=$(LWS_GROUP_SIZE);
                 python3 -m vllm.entrypoints.openai.api_server --model m -tp 8
                 -pp $(LWS_GROUP_SIZE)"
            resources: {limits: {nvidia.com/gpu: 8}}
    workerTemplate:
      spec:
        nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h200-141gb}
        containers:
          - name: worker
            image: vllm/vllm-openai:v0.8.5
            command: [sh, -c, "bash multi-node-serving.sh worker --a=$(LWS_LEADER_ADDRESS)"]
            resources: {limits: {nvidia.com/gpu: 8}}
"""


def hardware(draft: Draft) -> tuple[Any, Any, Any]:
    return (
        plain(draft, "hardware", "count"),
        plain(draft, "hardware", "nodes"),
        plain(draft, "replicas"),
    )


def test_a_leader_and_its_workers() -> None:
    draft = read_one(GROUP)
    assert hardware(draft) == (8, 4, 2)
    assert arg(draft, "pipeline_parallel_size") == "4"
    assert plain(draft, "hardware", "accelerator") == "nvidia-h100-80gb"
    assert marked(draft, GROUP, "hardware", "nodes") == "4"


def test_a_leader_that_only_directs() -> None:
    bare = "            resources: {limits: {nvidia.com/gpu: 8}}\n"
    draft = read_one(GROUP.replace(bare, "", 1))
    assert hardware(draft) == (8, 3, 2)
    assert plain(draft, "hardware", "accelerator") == "nvidia-h200-141gb"
    nowhere = read_one(GROUP.replace(bare, ""))
    assert hardware(nowhere) == ("?", 4, 2)


def test_a_leader_unlike_its_workers() -> None:
    draft = read_one(GROUP.replace("gpu: 8}}", "gpu: 4}}", 1))
    assert why(draft, "hardware", "count") == (
        "the leader and the workers have different numbers of devices"
    )
    alone = GROUP.replace("gpu: 8}}", "gpu: 4}}", 1).replace("size: 4", "size: 1")
    assert hardware(read_one(alone)) == (4, 1, 2)


def test_groups_of_another_shape() -> None:
    assert hardware(read_one(GROUP.replace("    size: 4\n", ""))) == (8, 1, 2)
    assert hardware(read_one(GROUP.replace("size: 4", "size: '${N}'"))) == (8, "?", 2)
    # Without a leader's template the leader is one of the workers.
    head, _, rest = GROUP.partition("    leaderTemplate:\n")
    same = head + "    workerTemplate:\n" + rest[: rest.index("    workerTemplate:")]
    assert hardware(read_one(same)) == (8, 4, 2)


def test_a_server_in_the_workers() -> None:
    text = GROUP.replace("python3 -m vllm.entrypoints.openai.api_server", "python3 route.py")
    assert read_all(text) == []
    text = text.replace('"bash multi-node-serving.sh worker', '"vllm serve m; x')
    draft = read_one(text)
    assert why(draft, "hardware", "nodes") == "the group's leader starts no engine that is known"


SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - image: vllm/vllm-openai:v0.12.0
          command: [vllm, serve, m, -tp, "16", --nnodes, NODES]
          resources: {limits: {nvidia.com/gpu: 8}}
"""


@pytest.mark.parametrize(
    ("nodes", "kind", "found"),
    [
        ("'2'", "StatefulSet", (8, "2", 1)),
        ("'1'", "StatefulSet", (8, "1", 2)),
        ("'3'", "StatefulSet", (8, "3", "?")),
        ("$(N)", "StatefulSet", (8, "?", "?")),
        ("'2'", "Deployment", (8, "2", 2)),
    ],
)
def test_pods_that_are_nodes_of_one_engine(nodes: str, kind: str, found: object) -> None:
    text = SET.replace("NODES", nodes).replace("StatefulSet", kind)
    assert hardware(read_one(text)) == found


@pytest.mark.parametrize("option", ["--headless", "--node-rank=1", "--data-parallel-address=x"])
def test_options_that_speak_of_other_pods(option: str) -> None:
    text = SET.replace("--nnodes, NODES", option)
    assert hardware(read_one(text)) == (8, "?", 2)


def test_pods_that_stand_alone() -> None:
    assert hardware(read_one(SET.replace("--nnodes, NODES", "--seed=1"))) == (8, None, 2)

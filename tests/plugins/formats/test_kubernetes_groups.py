from __future__ import annotations

from typing import Any

import pytest
from formats_kit import arg, marked, plain, read_all, read_one, why
from kubernetes_kit import pod

from capcheck import Draft


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


def test_a_server_that_joins_a_cluster() -> None:
    text = SET.replace("--nnodes, NODES", "--seed=1")
    env = "          env: [{name: RAY_ADDRESS, value: x}]\n"
    joined = text.replace("          resources", f"{env}          resources")
    assert hardware(read_one(joined)) == (8, "?", 2)


def test_pods_that_stand_alone() -> None:
    assert hardware(read_one(SET.replace("--nnodes, NODES", "--seed=1"))) == (8, None, 2)

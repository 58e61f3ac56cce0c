"""Whatever a manifest holds, reading it raises nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from formats_kit import FORMATS, catalogue, read_all
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capcheck_spec.spec_format import SpecFormat

KEYS = (
    "apiVersion", "kind", "metadata", "name", "namespace", "annotations", "spec", "template",
    "replicas", "leaderWorkerTemplate", "leaderTemplate", "workerTemplate", "size", "containers",
    "image", "command", "args", "env", "envFrom", "value", "valueFrom", "configMapKeyRef", "key",
    "configMapRef", "prefix", "resources", "limits", "requests", "claims", "nvidia.com/gpu",
    "nodeSelector", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms", "matchExpressions", "operator", "values", "nvidia.com/gpu.product",
    "volumes", "volumeMounts", "mountPath", "subPath", "configMap", "projected", "sources",
    "emptyDir", "medium", "sizeLimit", "startupProbe", "livenessProbe", "periodSeconds",
    "failureThreshold", "enableServiceLinks", "hostIPC", "items", "data", "path",
    "scaleTargetRef", "nvidia.com/gpu.memory", "parallelism",
)  # fmt: skip
TEXTS = (
    "", "x", "vllm/vllm-openai:v0.12.0", "vllm", "serve", "m", "sh", "-c", "bash", "--config",
    "vllm serve m --config /etc/x.yaml $A", "/etc/x.yaml", "/dev/shm", "$(A)", "${A}", "{{ a }}",
    "NVIDIA-L4", "In", "2", "-1", "8Gi", "v1", "apps/v1", "Deployment", "ConfigMap", "{", "'",
    "--max-model-len", "max_num_seqs: 1\nmodel: m", "../../x", "\u2028\u0000é😀", "--", "-tp",
)  # fmt: skip

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), st.sampled_from(TEXTS)
)
TREES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)
CONTAINER = st.fixed_dictionaries(
    {"image": st.sampled_from(["vllm/vllm-openai:v0.12.0", "x"]) | TREES},
    optional={key: TREES for key in KEYS if key != "image"},
)
POD = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINER, min_size=1, max_size=2) | TREES},
    optional={key: TREES for key in KEYS if key != "containers"},
)


def _read(documents: list[Any]) -> None:
    text = "\n---\n".join(json.dumps(one, default=str) for one in documents)
    for shelves in (None, catalogue()):
        for draft in read_all(text, shelves=shelves, formats=(*FORMATS, SpecFormat())):
            assert all(value.origin.place.file for value in draft.fields.values())
            unknown = [value for value in draft.fields.values() if value.unknown]
            assert all(value.origin.why for value in unknown)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pod=POD, worker=POD, more=TREES)
def test_workloads_of_anything(pod: Any, worker: Any, more: Any) -> None:
    for kind, version in (("Deployment", "apps/v1"), ("StatefulSet", "apps/v1")):
        _read([
            {"apiVersion": version, "kind": kind, "metadata": {"name": "a"},
             "spec": {"replicas": more, "template": {"spec": pod, "metadata": more}}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": more},
        ])  # fmt: skip
    group = {"size": more, "leaderTemplate": {"spec": pod}, "workerTemplate": {"spec": worker}}
    _read([
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
         "spec": {"leaderWorkerTemplate": group}},
    ])  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    tree=st.dictionaries(st.sampled_from(KEYS), TREES, max_size=6),
    kind=st.sampled_from(["Pod", "Deployment", "Job", "DaemonSet", "List", "LeaderWorkerSet"]),
)
def test_documents_of_anything(tree: Any, kind: str) -> None:
    groups = {"Pod": "v1", "List": "v1", "Job": "batch/v1"}
    version = groups.get(kind, "apps/v1")
    if kind == "LeaderWorkerSet":
        version = "leaderworkerset.x-k8s.io/v1"
    _read([{**tree, "kind": kind, "apiVersion": version}])
    _read([{**tree, "kind": "Deployment", "apiVersion": "capcheck/v1"}])
    _read([{"max_model_len": 1, "max_num_seqs": tree.get("spec"), "model": tree}])


WRONG = ("x", "5", "null", "[]", "{}", "[[[]]]", "{a: 1}", "[null, 3, {}]", "true", "!tag x")


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "key",
    ["containers", "command", "args", "env", "envFrom", "resources", "limits", "nodeSelector",
     "affinity", "volumes", "volumeMounts", "startupProbe", "image", "metadata", "replicas"],
)  # fmt: skip
def test_the_wrong_type_at_each_key(key: str, wrong: str) -> None:
    text = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 1
  template:
    spec:
      nodeSelector: {a: b}
      affinity: {}
      volumes: []
      containers:
        - image: vllm/vllm-openai:v0.12.0
          command: [vllm, serve, m]
          args: [--seed, "1"]
          env: []
          envFrom: []
          volumeMounts: []
          startupProbe: {}
          resources:
            limits: {nvidia.com/gpu: 1}
"""
    lines = []
    skipping = -1
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if 0 <= skipping < depth:
            continue
        skipping = -1
        name = line.strip().removeprefix("- ").partition(":")[0]
        if name == key:
            line = line[: line.index(key)] + f"{key}: {wrong}"
            skipping = depth
        lines.append(line)
    read_all("\n".join(lines) + "\n")
    read_all("\n".join(lines) + "\n", shelves=catalogue())

"""A pod whose hardware is filled in."""

from __future__ import annotations

from formats_kit import catalogue, read_one

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

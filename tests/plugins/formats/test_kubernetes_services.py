"""Services that Kubernetes writes variables of, and those of which it does not."""

from __future__ import annotations

import pytest
from formats_kit import plain, read_one

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
    - {name: server, image: "vllm/vllm-openai:v0.12.0", args: [--model, org/m]}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: vllm}\nspec: SPEC\n"


@pytest.mark.parametrize("spec", ["{clusterIP: None}", "{type: ExternalName, externalName: a.b}"])
def test_a_service_without_an_address_writes_no_variables(spec: str) -> None:
    draft = read_one(POD, others={"k8s/s.yaml": SERVICE.replace("SPEC", spec)})
    assert plain(draft, "runtime", "services") is None


@pytest.mark.parametrize("spec", ["{}", "{clusterIP: 10.0.0.7}", "{type: NodePort}"])
def test_a_service_with_an_address_does(spec: str) -> None:
    draft = read_one(POD, others={"k8s/s.yaml": SERVICE.replace("SPEC", spec)})
    assert plain(draft, "runtime", "services") == ["vllm"]

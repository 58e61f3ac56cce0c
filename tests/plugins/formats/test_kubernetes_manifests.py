from __future__ import annotations

from typing import Any

import pytest
from formats_kit import HOME, arg, documents_of, marked, plain, read_all, read_one, why

from capcheck.launch import OPEN_ARGS
from capcheck_kubernetes import capcheck_formats

CHAT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: chat
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: proxy
          image: nginx:1
        - name: server
          image: vllm/vllm-openai:v0.11.0
          args:
            - --model=org/m
            - --max-model-len
            - "8192"
          env:
            - {name: VLLM_USE_V1, value: "1"}
          resources:
            limits:
              nvidia.com/gpu: "2"
"""


def pod(server: str, rest: str = "", kind: str = "Pod") -> str:
    """A pod of one container, in flow style."""
    head = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: chat}}\n"
    return f"{head}spec: {{containers: [{{name: server, {server}}}]{rest and ', ' + rest}}}\n"


def of_pod(server: str, rest: str = "", **more: Any) -> Any:
    return read_one(pod(server, rest), **more)


def test_a_deployment_from_end_to_end() -> None:
    draft = read_one(CHAT)
    assert (draft.name, draft.format) == ("chat", "kubernetes")
    assert (draft.place.line, draft.place.column) == (4, 9)
    assert plain(draft, "engine", "name") == "vllm"
    assert plain(draft, "engine", "version") == "0.11.0"
    assert draft.fields[("engine", "version")].origin.word == "image"
    assert marked(draft, CHAT, "engine", "version") == "0.11.0"
    assert arg(draft, "model") == "org/m"
    assert arg(draft, "max_model_len") == "8192"
    assert marked(draft, CHAT, "engine", "args", "model") == "org/m"
    assert marked(draft, CHAT, "engine", "args", "max_model_len") in ("8192", '"8192"')
    assert plain(draft, "engine", "env", "VLLM_USE_V1") == "1"
    assert plain(draft, "hardware", "count") == 2
    assert plain(draft, "replicas") == 3
    assert why(draft, "hardware", "accelerator") == "no node selector names an accelerator"
    assert draft.places[("engine", "args")].line == 14
    assert draft.places[("engine", "env")].line == 18
    assert draft.problems == ()


@pytest.mark.parametrize(
    ("kind", "version"),
    [("StatefulSet", "apps/v1"), ("ReplicaSet", "apps/v1"), ("Deployment", "extensions/v1beta1")],
)
def test_kinds_with_a_template(kind: str, version: str) -> None:
    text = CHAT.replace("apps/v1", version).replace("kind: Deployment", f"kind: {kind}")
    assert plain(read_one(text), "replicas") == 3


def test_a_daemon_set_has_as_many_as_there_are_nodes() -> None:
    draft = read_one(CHAT.replace("kind: Deployment", "kind: DaemonSet"))
    assert why(draft, "replicas") == "a DaemonSet runs one for each node"


def test_a_job_and_a_pod() -> None:
    text = CHAT.replace("apps/v1", "batch/v1").replace("kind: Deployment", "kind: Job")
    assert plain(read_one(text.replace("replicas:", "parallelism:")), "replicas") == 3
    assert plain(of_pod("image: vllm/vllm-openai:v0.11.0, args: [--model, m]"), "replicas") is None


def test_a_list_holds_several() -> None:
    items = "".join(
        f"- apiVersion: v1\n  kind: Pod\n  metadata: {{name: {name}}}\n"
        "  spec: {containers: [{image: 'vllm/vllm-openai:v0.12.0', args: [m]}]}\n"
        for name in "ab"
    )
    drafts = read_all(f"apiVersion: v1\nkind: List\nitems:\n{items}- kind: Service\n")
    assert [draft.name for draft in drafts] == ["a", "b"]


@pytest.mark.parametrize(
    "header",
    [
        "apiVersion: v1\nkind: Service", "apiVersion: capcheck/v1\nkind: Deployment",
        "apiVersion: serving.knative.dev/v1\nkind: Service", "kind: Deployment",
        "apiVersion: v1\nkind: Deployment", "apiVersion: example.com/v1\nkind: Pod",
        "apiVersion: v1\nkind: List\nitems: [{kind: Pod}]",
    ],
)  # fmt: skip
def test_other_documents_are_not_claimed(header: str) -> None:
    reader = next(iter(capcheck_formats()))
    assert not any(reader.claims(document) for document in documents_of(header + "\n"))


def test_nothing_is_said_of_pods_without_an_engine() -> None:
    assert read_all(pod("image: nginx")) == []
    assert read_all(pod("image: vllm/vllm-openai:v0.11.0, command: [sleep, infinity]")) == []
    assert read_all(CHAT.replace("args:", "x:").replace("image: vllm/vllm", "image: x/y")) == []


def test_several_servers_of_a_pod_are_named_after_their_containers() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: two}\nspec:\n  containers:\n"
        "  - {name: a, image: 'vllm/vllm-openai:v0.12.0', args: [m]}\n"
        "  - {name: b, image: 'vllm/vllm-openai:v0.12.0', args: [n]}\n"
    )
    assert [draft.name for draft in read_all(text)] == ["two/a", "two/b"]


def test_an_image_alone_starts_its_server() -> None:
    draft = of_pod("image: vllm/vllm-openai:v0.11.0")
    assert plain(draft, "engine", "name") == "vllm"
    assert arg(draft, "model") is None


def test_a_positional_model_needs_a_recent_image() -> None:
    assert arg(of_pod("image: 'vllm/vllm-openai:v0.12.0', args: [org/m]"), "model") == "org/m"
    old = of_pod("image: 'vllm/vllm-openai:v0.11.0', args: [org/m, --seed, '1']")
    assert arg(old, "model") is None
    assert arg(old, "org/m") is True  # for options/unknown, at its place
    assert arg(old, "seed") == "1"


def test_a_script_with_exec_and_continued_lines() -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
    - image: vllm/vllm-openai:v0.11.0
      command: ["/bin/bash", "-lc"]
      args:
        - |
          set -euo pipefail
          export VLLM_ATTENTION_BACKEND=FLASHINFER
          exec vllm serve "$MODEL" \\
            --served-model-name $(NAME) \\
            --max-model-len ${LEN:-4096} \\
            $EXTRA
      env:
        - {name: MODEL, value: org/m}
        - {name: NAME, value: chat}
"""
    draft = read_one(text)
    assert arg(draft, "model") == "org/m"
    assert arg(draft, "served_model_name") == ["chat"]
    assert arg(draft, "max_model_len") == "4096"
    assert why(draft, "engine", "args", "max_model_len") == "the default of ${LEN}"
    assert plain(draft, "engine", "env", "VLLM_ATTENTION_BACKEND") == "FLASHINFER"
    assert plain(draft, *OPEN_ARGS) == "?"
    assert marked(draft, text, "engine", "args", "model") == '"$MODEL"'


@pytest.mark.parametrize(
    "command",
    [
        "[sh, -c, 'vllm serve m --seed 1']",
        "[/bin/bash, -euo, pipefail, -c, 'vllm serve m --seed 1']",
        "[/usr/bin/env, bash, -c, 'vllm serve m --seed 1']",
        "[tini, --, sh, -c, 'vllm serve m --seed 1', ignored]",
        "[vllm, serve, m, --seed, '1']",
        "[python3, -m, vllm.entrypoints.cli.main, serve, m, --seed=1]",
    ],
)
def test_ways_to_write_a_command(command: str) -> None:
    draft = of_pod(f"image: 'vllm/vllm-openai:v0.11.0', command: {command}")
    assert (arg(draft, "model"), arg(draft, "seed")) == ("m", "1")


@pytest.mark.parametrize("args", ["[sh, -c, vllm serve m]", "[vllm, serve, m]"])
def test_an_image_without_an_entry_point_runs_its_args(args: str) -> None:
    assert arg(of_pod(f"image: 'rocm/vllm:latest', args: {args}"), "model") == "m"
    assert arg(of_pod(f"image: 'mycorp/llm:1', args: {args}"), "model") == "m"


def test_several_commands_before_the_server() -> None:
    draft = of_pod(
        "image: 'vllm/vllm-openai:v0.8.5', command: [sh, -c, "
        "'pip install vllm==0.9.2 && ray start --head; vllm serve m -tp 16']"
    )
    assert plain(draft, "engine", "version") == "0.9.2"
    assert arg(draft, "tensor_parallel_size") == "16"
    # Other pods may have joined: nobody can say what there is.
    assert why(draft, "hardware", "nodes") == "other pods may hold a part of the same engine"


def test_two_servers_in_a_container_share_its_devices() -> None:
    draft = of_pod(
        "image: 'vllm/vllm-openai:v0.11.0', command: [sh, -c, 'vllm serve a & vllm serve b'], "
        "resources: {limits: {nvidia.com/gpu: 2}}"
    )
    assert why(draft, "hardware", "count") == "the container starts 2 servers"


def test_templates_in_strings_are_unknown() -> None:
    draft = read_one(
        CHAT.replace("org/m", "{{ .Values.model }}")
        .replace('"8192"', "'${LEN}'")
        .replace('gpu: "2"', "gpu: '{{ .Values.gpus }}'")
        .replace("replicas: 3", "replicas: '{{ .Values.replicas }}'")
        .replace(":v0.11.0", ":{{ .Values.tag }}")
        .replace('value: "1"', "value: '{{ .Values.v1 }}'")
    )
    for path in (
        ("engine", "args", "model"), ("engine", "args", "max_model_len"), ("engine", "version"),
        ("hardware", "count"), ("replicas",), ("engine", "env", "VLLM_USE_V1"),
    ):  # fmt: skip
        assert plain(draft, *path) == "?", path
        assert "not resolved" in why(draft, *path)


def test_a_script_with_templates_and_kubernetes_variables() -> None:
    draft = of_pod(
        "image: 'vllm/vllm-openai:v0.11.0', env: [{name: LEN, value: '64'}], command: [sh, -c, "
        "'vllm serve {{ .m }} --max-model-len $(LEN) --seed {{ $(LEN) }} --port $(P)']"
    )
    assert why(draft, "engine", "args", "model") == "{{ .m }} is not resolved"
    assert arg(draft, "max_model_len") == "64"
    assert why(draft, "engine", "args", "seed") == "{{ $(LEN) }} is not resolved"
    assert arg(draft, "port") == "?"


@pytest.mark.parametrize("replicas", ["0", "many", "1.5", "[1]"])
def test_replicas_that_are_no_number_of_servers_are_unknown(replicas: str) -> None:
    text = CHAT.replace("replicas: 3", f"replicas: {replicas}")
    assert plain(read_one(text), "replicas") == "?"


SCALER = """\
apiVersion: {version}
kind: {kind}
metadata: {{name: scaler}}
spec: {{scaleTargetRef: {{{target}}}, minReplicas: 1, maxReplicas: 9}}
"""


@pytest.mark.parametrize(
    ("kind", "target", "scaled"),
    [
        ("HorizontalPodAutoscaler", "kind: Deployment, name: chat", True),
        ("ScaledObject", "name: chat", True),
        ("HorizontalPodAutoscaler", "kind: StatefulSet, name: chat", False),
        ("HorizontalPodAutoscaler", "kind: Deployment, name: other", False),
    ],
)
def test_an_autoscaler_sets_the_replicas(kind: str, target: str, scaled: bool) -> None:
    other = SCALER.format(version="x/v1", kind=kind, target=target)
    draft = read_one(CHAT, others={"k8s/scaler.yaml": other})
    assert plain(draft, "replicas") == ("?" if scaled else 3)
    elsewhere = read_one(CHAT, others={"other/scaler.yaml": other})
    assert plain(elsewhere, "replicas") == 3


def test_ids_of_the_format() -> None:
    reader = next(iter(capcheck_formats()))
    assert reader.name == "kubernetes"
    assert HOME.endswith(".yaml")

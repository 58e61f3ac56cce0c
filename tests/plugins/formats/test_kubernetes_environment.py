from __future__ import annotations

from formats_kit import arg, marked, plain, read_one, why

from capcheck.launch import OPEN_ARGS

APP = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  volumes:
    - {name: conf, configMap: {name: conf}}
    - {name: scripts, configMap: {name: conf, items: [{key: start.sh, path: go.sh}]}}
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}
  containers:
    - name: server
      image: vllm/vllm-openai:v0.12.0
COMMAND
      envFrom:
        - {prefix: P_, configMapRef: {name: conf}}
        - {secretRef: {name: keys}}
      env:
        - {name: MODEL, value: org/m}
        - {name: NAME, value: "$(MODEL)-chat"}
        - {name: RAW, value: "$$(MODEL)"}
        - {name: LATER, value: "$(NOT_YET)"}
        - {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: LENGTH, valueFrom: {configMapKeyRef: {name: conf, key: length}}}
        - {name: GONE, valueFrom: {configMapKeyRef: {name: conf, key: gone}}}
        - {name: ELSEWHERE, valueFrom: {configMapKeyRef: {name: others, key: x}}}
        - {name: EMPTY}
      volumeMounts:
        - {name: conf, mountPath: /etc/vllm}
        - {name: scripts, mountPath: /scripts}
        - {name: shm, mountPath: /dev/shm}
"""
CONF = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data:
  length: "8192"
  raw: $(MODEL)
  text: "{{ .Values.x }}"
  vllm.yaml: |
    max-num-seqs: 7
    gpu_memory_utilization: 0.8
    max_model_len: 1024
    speculative_config:
      num_speculative_tokens: 4
  start.sh: |
    exec vllm serve $MODEL --port $1 --seed ${SEED:-5}
  list.yaml: "[1, 2]"
  two.yaml: |
    seed: 1
    ---
    seed: 2
"""
SERVE = "      args: [$(NAME), --max-model-len, $(LENGTH), --seed, $(TOKEN)]"


def app(command: str = SERVE) -> str:
    return APP.replace("COMMAND", command)


CONFS = {"k8s/conf.yaml": CONF}


def test_variables_and_where_they_come_from() -> None:
    draft = read_one(app(), others=CONFS)
    assert arg(draft, "model") == "org/m-chat"
    assert arg(draft, "max_model_len") == "8192"
    assert plain(draft, "engine", "env", "RAW") == "$(MODEL)"
    assert plain(draft, "engine", "env", "EMPTY") == ""
    assert plain(draft, "engine", "env", "P_length") == "8192"
    assert plain(draft, "engine", "env", "P_raw") == "$(MODEL)"  # Kubernetes leaves it so
    length = draft.fields[("engine", "env", "LENGTH")].origin
    assert (length.place.file, length.place.line) == ("k8s/conf.yaml", 5)
    assert length.via[0].file == "k8s/app.yaml"


def test_variables_that_nobody_can_tell() -> None:
    draft = read_one(app(), others=CONFS)
    reasons = {
        "LATER": "${NOT_YET} is not resolved",
        "TOKEN": "TOKEN comes from a secret",
        "IP": "IP comes from the pod's own fields",
        "CPU": "CPU comes from outside the files",
        "GONE": "ConfigMap conf has no such text",
        "ELSEWHERE": "ConfigMap others is not among the files read",
        "P_text": "{{ .Values.x }} is not resolved",
    }
    for name, reason in reasons.items():
        assert why(draft, "engine", "env", name) == reason
    assert arg(draft, "seed") == "?"
    assert why(draft, "engine", "args", "seed") == "${TOKEN} is not resolved"


def test_which_of_several_config_maps() -> None:
    other = CONF.replace("8192", "4096")
    # The workload's own file is nearest.
    draft = read_one(f"{app()}---\n{other}", others=CONFS)
    assert arg(draft, "max_model_len") == "4096"
    # Two that differ are one too many; where they agree there is no doubt.
    draft = read_one(app(), others={**CONFS, "k8s/more.yaml": other})
    assert why(draft, "engine", "env", "LENGTH") == (
        "ConfigMap conf stands in several files, differently"
    )
    assert plain(draft, "engine", "env", "P_raw") == "$(MODEL)"
    # Another folder, another namespace: not the same object.
    draft = read_one(app(), others={"other/conf.yaml": CONF})
    assert plain(draft, "engine", "env", "LENGTH") == "?"
    spaced = CONF.replace("{name: conf}", "{name: conf, namespace: a}")
    assert plain(read_one(app(), others={"k8s/c.yaml": spaced}), "engine", "env", "LENGTH") == "?"
    here = app().replace("{name: chat}", "{name: chat, namespace: a}")
    draft = read_one(here, others={"far/c.yaml": spaced})
    assert plain(draft, "engine", "env", "LENGTH") == "8192"


def test_the_engines_own_file_in_a_config_map() -> None:
    args = "      args: [m, --config, /etc/vllm/vllm.yaml, --max-model-len, '2048']"
    draft = read_one(app(args), others=CONFS)
    assert arg(draft, "max_num_seqs") == 7
    assert arg(draft, "gpu_memory_utilization") == 0.8
    assert arg(draft, "speculative_config", "num_speculative_tokens") == 4
    assert arg(draft, "max_model_len") == "2048"  # the command line wins
    assert OPEN_ARGS not in draft.fields
    origin = draft.fields[("engine", "args", "max_num_seqs")].origin
    assert (origin.place.file, origin.place.line, origin.place.column) == ("k8s/conf.yaml", 9, 19)
    assert origin.word == "max-num-seqs"
    assert origin.via[0].file == "k8s/app.yaml"
    assert [lost.path[-1] for lost in draft.overridden] == ["max_model_len"]
    assert draft.name == "chat"


def test_a_file_that_cannot_be_had_leaves_the_options_open() -> None:
    for path in ("/models/vllm.yaml", "/etc/vllm/gone.yaml", "/etc/vllm/list.yaml", "$(TOKEN)"):
        draft = read_one(app(f"      args: [m, --config, {path}]"), others=CONFS)
        assert plain(draft, *OPEN_ARGS) == "?", path
    draft = read_one(app("      args: [m, --config, /etc/vllm/two.yaml]"), others=CONFS)
    assert plain(draft, *OPEN_ARGS) == "?"
    draft = read_one(app("      args: [m, --config, /etc/vllm/vllm.yaml]"))
    assert "--config names a file that is not read" in why(draft, *OPEN_ARGS)


def test_a_script_in_a_config_map() -> None:
    draft = read_one(app("      command: [bash, /scripts/go.sh, '81']"), others=CONFS)
    assert (arg(draft, "model"), arg(draft, "port"), arg(draft, "seed")) == ("org/m", "81", "5")
    assert marked(draft, CONF, "engine", "args", "model") == "$MODEL"
    assert draft.fields[("engine", "args", "model")].place.file == "k8s/conf.yaml"
    draft = read_one(app("      command: [/scripts/go.sh]"), others=CONFS)
    assert arg(draft, "port") == "?"


def test_sub_paths_and_projected_volumes() -> None:
    text = app("      args: [m, --config, /conf/engine.yaml]").replace(
        "{name: conf, mountPath: /etc/vllm}",
        "{name: conf, mountPath: /conf/engine.yaml, subPath: vllm.yaml}",
    )
    assert arg(read_one(text, others=CONFS), "max_num_seqs") == 7
    text = text.replace(
        "{name: conf, configMap: {name: conf}}",
        "{name: conf, projected: {sources: [{secret: {name: s}}, {configMap: {name: conf}}]}}",
    )
    assert arg(read_one(text, others=CONFS), "max_num_seqs") == 7


def test_shared_memory() -> None:
    assert plain(read_one(app()), "runtime", "shm") == "8Gi"
    for before, after, shown in (
        (", sizeLimit: 8Gi", "", "memory"),
        ("emptyDir: {medium: Memory, sizeLimit: 8Gi}", "hostPath: {path: /dev/shm}", "memory"),
        ("mountPath: /dev/shm", "mountPath: /cache", "default"),
        ("sizeLimit: 8Gi", "sizeLimit: '{{ .Values.shm }}'", "?"),
    ):
        assert plain(read_one(app().replace(before, after)), "runtime", "shm") == shown
    host = app().replace("spec:\n", "spec:\n  hostIPC: true\n").replace("/dev/shm}", "/x}")
    assert plain(read_one(host), "runtime", "shm") == "memory"


def test_how_long_a_server_may_take_to_start() -> None:
    def budget(probes: str) -> object:
        text = app().replace("      envFrom:", f"{probes}      envFrom:")
        return plain(read_one(text), "runtime", "startup_seconds")

    startup = (
        "      startupProbe: {initialDelaySeconds: 5, periodSeconds: 20, failureThreshold: 60}\n"
    )
    liveness = "      livenessProbe: {initialDelaySeconds: 300, httpGet: {port: 1}}\n"
    assert budget(startup + liveness) == 5 + 20 * 60
    assert budget(liveness) == 300 + 10 * 3
    assert budget("      readinessProbe: {periodSeconds: 1}\n") is None
    assert budget("      startupProbe: {periodSeconds: '{{ .p }}'}\n") == "?"
    assert budget("      startupProbe: 5\n") is None
    assert budget("") is None


def test_services_and_their_links() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\n"
    others = {
        "k8s/a.yaml": service.replace("NAME", "vllm"),
        "k8s/b.yaml": service.replace("NAME", "vllm"),
        "k8s/c.yaml": service.replace("NAME", "web"),
        "k8s/d.yaml": service.replace("NAME", "far, namespace: b"),
        "other/e.yaml": service.replace("NAME", "elsewhere"),
    }
    draft = read_one(app(), others=others)
    assert plain(draft, "runtime", "services") == ["vllm", "web"]
    assert plain(draft, "runtime", "service_links") is True
    assert draft.fields[("runtime", "service_links")].origin.kind == "derived"
    for written, read in (("false", False), ("true", True), ("'{{ x }}'", "?")):
        text = app().replace("spec:\n", f"spec:\n  enableServiceLinks: {written}\n", 1)
        assert plain(read_one(text), "runtime", "service_links") == read
    assert plain(read_one(app()), "runtime", "services") is None

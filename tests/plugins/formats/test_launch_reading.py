from __future__ import annotations

from typing import Any

import pytest
from formats_kit import ENGINES, words

from capcheck import Place
from capcheck.embedded import whole_text
from capcheck.installs import installed
from capcheck.launch import OPEN_ARGS, Started, argument_path, node_of, read_commands
from capcheck.source import Scalar, to_plain
from capcheck.unrendered import (
    expressions_in,
    marked,
    script_commands,
    unrendered_in,
    unresolved_why,
)
from capcheck.words import Word

IMAGE = "vllm/vllm-openai:v0.11.0"
AT = Place("run.sh")


def script(text: str, image: str | None = IMAGE, **variables: str | None) -> Started | None:
    commands = script_commands(whole_text(text, "run.sh"), text, variables)
    reference = Word(image, AT, expressions_in(image)) if image is not None else None
    return read_commands(ENGINES, commands, reference)


def value(started: Started | None, *path: str) -> Any:
    assert started is not None
    found = started.fields.get(path)
    if found is None:
        return None
    return to_plain(found.options[0]) if found.known else f"? {found.origin.why}"


def option(started: Started | None, *path: str) -> Any:
    return value(started, "engine", "args", *path)


def version(started: Started | None) -> Any:
    return value(started, "engine", "version")


def test_the_engine_its_release_and_its_options() -> None:
    started = script("vllm serve org/m -tp 2 --max_model_len=32k --enforce-eager")
    assert value(started, "engine", "name") == "vllm"
    assert version(started) == "0.11.0"
    assert option(started, "model") == "org/m"
    assert option(started, "tensor_parallel_size") == "2"
    assert option(started, "max_model_len") == "32k"
    assert option(started, "enforce_eager") is True
    assert started is not None
    origin = started.fields[("engine", "args", "tensor_parallel_size")].origin
    assert (origin.word, origin.place.column) == ("-tp", 22)


def test_json_is_taken_apart_and_dotted_names_add_to_it() -> None:
    started = script(
        """vllm serve m --speculative-config '{"method": "ngram", "num_speculative_tokens": 4}'"""
        " --compilation-config.level 3 --limit-mm-per-prompt '{}'"
    )
    assert option(started, "speculative_config", "method") == "ngram"
    assert option(started, "speculative_config", "num_speculative_tokens") == 4
    assert option(started, "compilation_config", "level") == "3"
    assert option(started, "limit_mm_per_prompt") == {}


def test_the_last_of_an_option_counts_whole() -> None:
    started = script(
        """vllm serve m --max-num-seqs 4 --max-num-seqs 8 --speculative-config '{"a": 1}'"""
        """ --speculative-config '{"b": 2}'"""
    )
    assert option(started, "max_num_seqs") == "8"
    assert option(started, "speculative_config", "a") is None
    assert option(started, "speculative_config", "b") == 2


def test_broken_json_stays_text() -> None:
    assert option(script("vllm serve m --speculative-config '{a}'"), "speculative_config") == "{a}"


def test_a_prefix_is_looked_up_in_the_images_release() -> None:
    line = "vllm serve m --max-num-s 4"
    assert option(script(line, "vllm/vllm-openai:v0.11.0"), "max_num_seqs") == "4"
    assert option(script(line, "vllm/vllm-openai:v0.30.0"), "max_num_seqs") is None  # ambiguous


def test_unresolved_words() -> None:
    started = script("vllm serve $MODEL --seed ${SEED:-3} --port $PORT $EXTRA", PORT=None)
    assert option(started, "model") == "? ${MODEL} is not resolved"
    assert option(started, "seed") == "3"
    assert started is not None
    assert started.fields[("engine", "args", "seed")].origin.why == "the default of ${SEED}"
    assert option(started, "port") == "? ${PORT} is not resolved"
    assert value(started, *OPEN_ARGS) == "? ${EXTRA} is not resolved"


def test_a_list_with_an_unresolved_item_is_unknown() -> None:
    started = script("vllm serve m --served-model-name a $B")
    assert option(started, "served_model_name") == "? ${B} is not resolved"


def test_a_positional_model_wins_and_is_no_option_of_the_old_server() -> None:
    assert option(script("vllm serve org/a --model org/b"), "model") == "org/a"
    old = script("python3 -m vllm.entrypoints.openai.api_server org/a --seed 1")
    assert option(old, "model") is None
    assert option(old, "org/a") is True


def test_the_environment_that_the_command_brings() -> None:
    started = script("export HF_HOME=/x; VLLM_USE_V1=0 vllm serve m")
    assert value(started, "engine", "env", "HF_HOME") == "/x"
    assert value(started, "engine", "env", "VLLM_USE_V1") == "0"
    started = script("env -u A VLLM_USE_V1=0 vllm serve m")
    assert value(started, "engine", "env", "VLLM_USE_V1") == "0"
    started = script("env VLLM_USE_V1=0 TOKEN=$T vllm serve m")
    assert value(started, "engine", "env", "VLLM_USE_V1") == "0"
    assert value(started, "engine", "env", "TOKEN") == "? ${T} is not resolved"


def test_branches_that_differ_are_unknown_where_they_do() -> None:
    started = script(
        'if [ "$ROLE" = a ]; then vllm serve m --seed 1 --port 80; '
        "else vllm serve m --seed 2 --headless; fi"
    )
    assert option(started, "model") == "m"
    assert option(started, "seed") == "? the branches of the script differ"
    assert option(started, "port") == "? the branches of the script differ"
    assert option(started, "headless") == "? the branches of the script differ"
    assert started is not None
    assert started.servers == 1


def test_servers_are_counted() -> None:
    assert (found := script("vllm serve a & vllm serve b; wait")) is not None
    assert found.servers == 2
    assert (found := script("vllm serve a || vllm serve b")) is not None
    assert found.servers == 1


def test_nothing_known_is_started() -> None:
    assert script("nginx; sleep 5") is None
    assert script("", None) is None
    assert read_commands(ENGINES, (), None, whole=False) is None
    assert read_commands(ENGINES, (), Word("nginx", AT), whole=False) is None


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (None, "no image is named"),
        ("mycorp/llm:1", "the image mycorp/llm:1 does not tell the release"),
        ("vllm/vllm-openai:latest", "the image's tag latest is not a release"),
        ("vllm/vllm-openai:${TAG}", "${TAG} is not resolved"),
    ],
)
def test_why_a_release_is_not_known(image: str | None, why: str) -> None:
    assert version(script("vllm serve m", image)) == f"? {why}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pip install vllm==0.10.2", "0.10.2"),
        ("pip3 install -U 'vllm[audio]==0.10.2' --extra-index-url https://x/whl/cu128", "0.10.2"),
        ("python3 -m pip install vllm===0.10.2.post1", "0.10.2.post1"),
        ("uv pip install ray vllm==0.10.2", "0.10.2"),
        ("pip install vllm==0.9.0; pip install vllm==0.10.2", "0.10.2"),
        ("pip install vllm", "? vllm is not pinned to one release"),
        ("pip install 'vllm>=0.9'", "? vllm>=0.9 is not pinned to one release"),
        ("pip install 'vllm==0.10.*'", "? vllm==0.10.* is not pinned to one release"),
        ("pip install vllm==$V", "? ${V} is not resolved"),
        (
            "pip install git+https://github.com/vllm-project/vllm.git@main",
            "? git+https://github.com/vllm-project/vllm.git@main does not tell the release",
        ),
        (
            "pip install https://x/vllm-0.10.2-cp38-abi3-linux.whl",
            "? https://x/vllm-0.10.2-cp38-abi3-linux.whl does not tell the release",
        ),
        ("pip install vllm-flash-attn==2.6 transformers==4.5", "0.11.0"),
        ("pip install -r requirements.txt", "0.11.0"),
        ("pip list; echo install vllm==1", "0.11.0"),
    ],
)
def test_what_a_command_installs_wins_over_the_image(line: str, found: str) -> None:
    assert version(script(f"{line}; vllm serve m")) == found


def test_nothing_is_installed() -> None:
    assert installed((), ("vllm",)) is None


def test_options_paths() -> None:
    assert argument_path("max-model-len") == ("engine", "args", "max_model_len")
    assert argument_path("a-b.c") == ("engine", "args", "a_b", "c")


def test_plain_data_as_nodes() -> None:
    data = {"a": [1, 2.5, True, None, "x"], "b": {}}
    assert to_plain(node_of(data, AT)) == data


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("org/model", ()),
        ("${A}-$B", ("${A}", "$B")),
        ("{{ .Values.a }}x{% if b %}", ("{{ .Values.a }}", "{% if b %}")),
        ('{"a": {"b": 1}}', ()),
        ("$$A", ()),
        ("costs 5$", ()),
        ("{{ $x }}", ("{{ $x }}",)),
    ],
)
def test_expressions_of_templates(text: str, found: tuple[str, ...]) -> None:
    assert expressions_in(text) == found
    assert unrendered_in(Scalar(text, "text", "plain", AT)) == found
    assert marked(Word(text, AT)).unresolved == found


def test_why_names_what_is_missing() -> None:
    assert unresolved_why(["A"]) == "${A} is not resolved"
    assert unresolved_why(["A", "{{ b }}"]) == "${A}, {{ b }} are not resolved"
    assert unresolved_why(["$(nproc)"]) == "$(nproc) is not resolved"
    assert unresolved_why(['"']) == "a quote is never closed"


def test_an_expression_in_a_script_is_one_word() -> None:
    text = "vllm serve {{ .Values.model.id }} --port '{{ .p }}' {{- if .more }} --seed {{ .s }}"
    started = script(text)
    assert option(started, "model") == "? {{ .Values.model.id }} is not resolved"
    assert option(started, "port") == "? {{ .p }} is not resolved"
    assert option(started, "seed") == "? {{ .s }} is not resolved"
    assert value(started, *OPEN_ARGS) == "? {{- if .more }} is not resolved"
    command = script_commands(whole_text(text, "run.sh"), text, {})[0]
    assert [word.text for word in command.words][:3] == ["vllm", "serve", "{{ .Values.model.id }}"]


def test_words_of_lists_are_read_as_they_are() -> None:
    from capcheck.launch import command_of

    command = command_of(words("vllm", "serve", "m", "--x", "a b"), AT)
    started = read_commands(ENGINES, (command,), None)
    assert option(started, "x") == "a b"

"""The deployment schema: what it holds, and what a draft is told that does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from capcheck import schemas_home
from capcheck.deployment import Draft, flatten, places_of
from capcheck.schema import (
    BadExtension,
    Extension,
    Problem,
    Validator,
    check_extension,
    deployment_schema,
    problems,
)
from capcheck.schema_instance import MEASURE_WORDS, MEASURES
from capcheck.schema_tree import SchemaTree
from capcheck.source import Node, read_documents
from capcheck.terms import term_of
from capcheck.values import Place, Value, unknown, written

HEADER = "apiVersion: capcheck/v1\nkind: Deployment\n"


def draft_of(text: str, *, own: bool = True) -> Draft:
    """A draft as a reader of our format makes it; not `own`: as one of a foreign format."""
    (root,) = read_documents(text, "a.yaml").roots
    fields = flatten(root)
    return Draft("a", "f", Place("a.yaml"), fields, places_of(root), root=root if own else None)


def found_in(body: str, *extensions: Extension) -> tuple[Problem, ...]:
    return problems(draft_of(HEADER + body), extensions)


def only(body: str, *extensions: Extension) -> Problem:
    found = found_in(body, *extensions)
    assert len(found) == 1, found
    return found[0]


def marked(body: str, problem: Problem) -> str:
    """The text that a problem marks."""
    place = problem.place
    line = (HEADER + body).splitlines()[place.line - 1]
    assert place.end_line == place.line
    return line[place.column - 1 : place.end_column - 1]


# the schemas themselves

NAMES = ("config", "deployment", "report", "terms")


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_sound_draft_07(name: str) -> None:
    schema = schemas_home.read_schema(name)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(schema)


def test_locator_lists_what_it_reads() -> None:
    assert set(NAMES) <= set(schemas_home.schema_names())


def test_locator_prefers_the_packaged_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "capcheck"
    (package / "_schemas").mkdir(parents=True)
    monkeypatch.setattr(schemas_home, "__file__", str(package / "schemas_home.py"))
    assert schemas_home.root() == package / "_schemas"
    (package / "_schemas").rmdir()
    assert schemas_home.root() == tmp_path / "schemas"


def _properties(schema: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        for word in ("properties", "patternProperties"):
            for name, below in schema.get(word, {}).items():
                yield f"{at}.{name}", below
                yield from _properties(below, f"{at}.{name}")
        for word in ("items", "additionalProperties"):
            yield from _properties(schema.get(word), at)
        for name, below in schema.get("definitions", {}).items():
            yield from _properties(below, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: str) -> None:
    fields = dict(_properties(schemas_home.read_schema(name)))
    assert len(fields) > 5
    bare = [
        path
        for path, one in fields.items()
        if len(one.get("description", "")) < 10 and "$ref" not in one
    ]
    assert bare == []


def test_measures_are_of_known_kinds_and_take_text() -> None:
    leaves = [
        (path, one)
        for path, one in _properties(schemas_home.read_schema("deployment"))
        if "x-measure" in one
    ]
    assert len(leaves) > 15
    for path, one in leaves:
        assert one["x-measure"] in MEASURES, path
        assert {"number", "string"} <= set(one["type"]), path
    assert set(MEASURES) == set(MEASURE_WORDS)


def _examples(schema: Any, tree: SchemaTree) -> Iterator[tuple[Any, Any]]:
    if isinstance(schema, dict):
        yield from ((schema, one) for one in schema.get("examples", ()))
        for below in schema.values():
            yield from _examples(below, tree)
    elif isinstance(schema, list):
        for below in schema:
            yield from _examples(below, tree)


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_valid(name: str) -> None:
    schema = schemas_home.read_schema(name)
    count = 0
    for part, example in _examples(schema, SchemaTree(schema)):
        rooted = {**part, "definitions": schema.get("definitions", {})}
        assert list(Draft7Validator(rooted).iter_errors(example)) == [], example
        count += 1
    assert count > 3


def test_whole_example_of_a_deployment_has_no_problem() -> None:
    (example,) = schemas_home.read_schema("deployment")["examples"]
    assert problems(draft_of(json.dumps(example))) == ()


def test_terms_schema_agrees_with_the_reader() -> None:
    schema = schemas_home.read_schema("terms")
    record = {
        "name": "x", "when": {"release": ">=0.20,<0.26", "memory_class": ["hbm3"], "moe": True},
        "low": 1, "mid": 2, "high": 3, "unit": "s", "cases": 4, "dated": "2026-11-30",
        "source": "measured", "kind": "factor", "group": "g",
    }  # fmt: skip
    validator = Draft7Validator(schema)
    assert list(validator.iter_errors(record)) == []
    assert term_of(record, "test").when
    for key in schema["required"]:
        lacking = {name: value for name, value in record.items() if name != key}
        assert list(validator.iter_errors(lacking))
        with pytest.raises(Exception, match=key):
            term_of(lacking, "test")


# what fits

FULL = """
name: llama
from: other.yaml#Deployment/x
model: {id: a/b, config: ./config.json, revision: 1.10, weights: {precision: fp8}}
hardware: {accelerator: [a, b], count: 2, nodes: "1"}
engine:
  name: vllm
  version: 0.10
  config: ./vllm.yaml
  args: {tensor_parallel_size: 2, compilation_config: {level: 3}, flag: ~, list: [1, {a: b}]}
  env: {A: 1, B: "x"}
replicas: 3
workload:
  class: mixed
  prompt_tokens: {mean: 900.5, min: 1, p50: 800, p90: 4k, p95: 6e3, p99: 8K, p999: 9K, max: 32K}
  output_tokens: 1e3
  concurrency: 20
  request_rate: {mean: 240/min, peak: 9/s}
  burstiness: 0.5
  prefix_hit_rate: 30%
  acceptance_rate: .7
  start: steady
objectives: {ttft: {mean: 1, p99: 800ms}, tpot: {p50: 40ms, p999: 1m30s}}
evaluation: {anything: [1]}
fallback: other
runtime: {shm: 16GiB, startup_seconds: 10min, service_links: yes, services: [a]}
x-acme: {free: [form]}
"""


def test_everything_that_the_format_has_fits() -> None:
    assert found_in(FULL) == ()


def test_empty_parts_fit() -> None:
    assert found_in("model:\nhardware: {}\nobjectives:\n  ttft:\n") == ()


def test_numbers_that_yaml_takes_for_text_fit() -> None:
    assert found_in("workload: {prompt_tokens: 70.6e3, concurrency: 1e2}\n") == ()


@pytest.mark.parametrize("version", ["0.10", "017", "2024-01-01", "1_0", "on", "0x10", "1:30"])
def test_a_text_field_keeps_its_text(version: str) -> None:
    assert found_in(f"engine: {{version: {version}}}\n") == ()


def test_header_of_foreign_formats_is_not_asked_for() -> None:
    assert problems(draft_of("model: {id: x}\n", own=False)) == ()


def test_unknown_values_are_left_out() -> None:
    draft = draft_of(HEADER)
    lost: Value[Node] = unknown(Place("a.yaml"), "nobody knows", "count")
    fields = {**draft.fields, ("hardware", "count"): lost, ("engine", "more"): lost}
    assert problems(draft._replace(fields=fields)) == ()


def test_values_under_an_application_tag_are_left_out() -> None:
    assert found_in("replicas: !reset many\n") == ()


# unknown keys

UNKNOWN = [
    ("modle: {id: a}\n", "modle", "unknown key 'modle'", "did you mean model?"),
    ("modle:\n", "modle", "unknown key 'modle'", "did you mean model?"),
    ("engine: {nmae: {}}\n", "nmae", "unknown key 'nmae' in engine", "did you mean name?"),
    (
        "concurrency: 3\n",
        "concurrency",
        "unknown key 'concurrency'",
        "did you mean workload.concurrency?",
    ),
    (
        "concurency: 3\n",
        "concurency",
        "unknown key 'concurency'",
        "did you mean workload.concurrency?",
    ),
    ("hardware: {gpus: 2}\n", "gpus", "unknown key 'gpus' in hardware", "did you mean count?"),
    ("qps: 4/s\n", "qps", "unknown key 'qps'", "did you mean workload.request_rate?"),
    (
        "hardware: {count: 2, gpus: 2}\n",
        "gpus",
        "unknown key 'gpus' in hardware",
        "count is already given",
    ),
    ("Workload: {}\n", "Workload", "unknown key 'Workload'", "did you mean workload?"),
    (
        "workload: {promptTokens: 3}\n",
        "promptTokens",
        "unknown key 'promptTokens' in workload",
        "did you mean prompt_tokens?",
    ),
    (
        "objectives: {ttft: {p98: 1s}}\n",
        "p98",
        "unknown key 'p98' in objectives.ttft",
        "objectives.ttft takes mean, p50, p90, p95, p99, p999",
    ),
    (
        "hardware: {colour: red}\n",
        "colour",
        "unknown key 'colour' in hardware",
        "hardware takes accelerator, count, nodes, in_use, host_memory, shared_with",
    ),
]


@pytest.mark.parametrize(("body", "mark", "message", "help"), UNKNOWN)
def test_unknown_key(body: str, mark: str, message: str, help: str) -> None:
    problem = only(body)
    assert problem.rule == "spec/unknown-key"
    assert problem.message == message
    assert marked(body, problem) == mark
    assert problem.help == help


def test_open_parts_take_any_key() -> None:
    assert found_in("engine: {args: {modle: 1}, env: {modle: 1}}\nevaluation: {modle: 1}\n") == ()


def test_each_unknown_key_is_a_problem_of_its_own() -> None:
    found = found_in("aaa: 1\nbbb: {}\nccc:\n")
    assert [one.message for one in found] == [f"unknown key '{k}'" for k in ("aaa", "bbb", "ccc")]
    assert [one.place.line for one in found] == [3, 4, 5]


# values that do not fit

WRONG = [
    (
        "model: meta/llama\n",
        "meta/llama",
        "model is 'meta/llama': expected a mapping",
        "write model: {id: meta/llama}",
    ),
    (
        "engine: vllm\n",
        "vllm",
        "engine is 'vllm': expected a mapping",
        "write engine: {name: vllm}",
    ),
    ("replicas: 0\n", "0", "replicas is 0: expected at least 1", ""),
    (
        "replicas: 2.5\n",
        "2.5",
        "replicas is 2.5: expected a whole number such as 32768, 32k or 32K",
        "",
    ),
    (
        'hardware: {count: "two"}\n',
        '"two"',
        "hardware.count is 'two': expected a whole number such as 32768, 32k or 32K",
        "",
    ),
    (
        "workload: {class: batched}\n",
        "batched",
        "workload.class is 'batched': expected interactive, batch or mixed",
        "did you mean batch?",
    ),
    (
        "workload: {request_rate: 4 per s}\n",
        "4 per s",
        "workload.request_rate is '4 per s': expected a rate such as 4/s, 240/min or 3/h",
        "",
    ),
    ("workload: {request_rate: 0}\n", "0", "workload.request_rate is 0: expected more than 0", ""),
    (
        "workload: {prefix_hit_rate: 130%}\n",
        "130%",
        "workload.prefix_hit_rate is '130%': expected a share between 0 and 1, such as 0.3 or 30%",
        "",
    ),
    (
        "workload: {prompt_tokens: [1, 2]}\n",
        "[1, 2]",
        "workload.prompt_tokens is a list: expected a whole number or a mapping",
        "",
    ),
    (
        "objectives: {tpot: 40ms}\n",
        "40ms",
        "objectives.tpot is '40ms': expected a mapping",
        "an objective names its percentile: tpot: {p50: 40ms}",
    ),
    (
        "objectives: {ttft: {p99: soon}}\n",
        "soon",
        "objectives.ttft.p99 is 'soon': expected a time such as 800ms, 1.5s or 2min",
        "",
    ),
    (
        "hardware: {accelerator: []}\n",
        "[]",
        "hardware.accelerator is an empty list: expected at least 1 item",
        "",
    ),
    (
        "hardware: {accelerator: [a, {b: c}]}\n",
        "{b: c}",
        "hardware.accelerator[1] is a mapping: expected text",
        "",
    ),
    ("hardware: {accelerator: [a, a]}\n", "[a, a]", "hardware.accelerator has one item twice", ""),
    (
        "hardware: {accelerator: [a, ~]}\n",
        "~",
        "hardware.accelerator[1] is empty: expected text",
        "",
    ),
    ("name: ''\n", "''", "name is '': expected at least 1 character", ""),
    ("from: [a]\n", "[a]", "from is a list: expected text", ""),
    (
        "runtime: {service_links: maybe}\n",
        "maybe",
        "runtime.service_links is 'maybe': expected true or false",
        "",
    ),
    (
        "runtime: {shm: 16 parsecs}\n",
        "16 parsecs",
        "runtime.shm is '16 parsecs': expected text that matches "
        "^(default|memory|[0-9][0-9.]* ?([kKmMgGtT]i?[bB]?|[bB])?)$",
        "default, memory, or a size such as 16GiB",
    ),
]


@pytest.mark.parametrize(("body", "mark", "message", "help"), WRONG)
def test_wrong_value(body: str, mark: str, message: str, help: str) -> None:
    problem = only(body)
    assert problem.rule == "spec/schema"
    assert problem.message == message
    assert problem.help == help
    assert marked(body, problem) == mark


def test_a_mapping_that_should_be_none_is_marked_at_its_key() -> None:
    body = "replicas: {a: 1}\n"
    problem = only(body)
    assert problem.message == "replicas is a mapping: expected a whole number"
    assert marked(body, problem) == "replicas"


def test_long_and_broken_text_is_shown_short() -> None:
    problem = only(f'workload: {{class: "{"x" * 500}"}}\n')
    assert len(problem.message) < 160
    problem = only('workload: {class: "a\\n  b"}\n')
    assert "\n" not in problem.message


def test_a_scalar_under_keys_of_another_layer_is_named() -> None:
    draft = draft_of(HEADER + "engine: {name: vllm}\n")
    node = draft.fields["engine", "name"].get()
    fields = {("engine",): written(node, Place("b.yaml")), **draft.fields}
    (problem,) = problems(draft._replace(fields=fields))
    assert problem.message == "engine is 'vllm': expected a mapping"
    assert problem.place.file == "b.yaml"


def test_places_are_those_of_the_file_that_says_it() -> None:
    draft = draft_of(HEADER + "replicas: 0\n")
    value = draft.fields["replicas",]
    moved = Value(value.options, value.origin._replace(place=Place("k8s.yaml", 7, 3, 7, 4)))
    (problem,) = problems(draft._replace(fields={**draft.fields, ("replicas",): moved}))
    assert problem.place == Place("k8s.yaml", 7, 3, 7, 4)


def test_every_alternative_must_be_readable() -> None:
    draft = draft_of(HEADER + "replicas: 1\nname: many\n")
    good, bad = draft.fields["replicas",], draft.fields["name",]
    both = Value((*good.options, *bad.options), good.origin)
    found = problems(draft._replace(fields={**draft.fields, ("replicas",): both}))
    assert [one.message for one in found] == [
        "replicas is 'many': expected a whole number such as 32768, 32k or 32K"
    ]


# what contradicts itself

SENSELESS = [
    (
        "workload: {prompt_tokens: {p50: 1k, p95: 999}}\n",
        "workload.prompt_tokens: p95 is less than p50",
    ),
    (
        "workload: {output_tokens: {min: 5, max: 4}}\n",
        "workload.output_tokens: max is less than min",
    ),
    (
        "workload: {output_tokens: {mean: 50, max: 40}}\n",
        "workload.output_tokens: max is less than mean",
    ),
    (
        "workload: {request_rate: {mean: 2/s, peak: 60/min}}\n",
        "workload.request_rate: peak is less than mean",
    ),
    ("objectives: {ttft: {p50: 1s, p99: 800ms}}\n", "objectives.ttft: p99 is less than p50"),
    (
        "workload: {prompts: 5}\n",
        "workload.prompts counts the requests of a burst, but start is not burst",
    ),
    (
        "workload: {start: burst}\n",
        "workload.start is burst, which needs prompts: how many requests start at once",
    ),
    (
        "workload: {start: burst, prompts: 9, request_rate: 4/s}\n",
        "workload.request_rate does not go with start: burst, which sends all at once",
    ),
    ("name: a\nfallback: a\n", "fallback names the deployment itself"),
]


@pytest.mark.parametrize(("body", "message"), SENSELESS)
def test_senseless(body: str, message: str) -> None:
    problem = only(body)
    assert (problem.rule, problem.message) == ("spec/schema", message)


def test_sensible_pairs_are_fine() -> None:
    assert found_in("workload: {concurrency: 5, request_rate: 1/s}\n") == ()
    assert found_in("workload: {start: burst, prompts: 100, concurrency: 10}\n") == ()
    assert found_in("objectives: {ttft: {mean: 2s, p50: 1s, p99: 1s}}\n") == ()
    assert found_in("objectives: {ttft: {p99: 1s}}\n") == ()


# plugins' parts

ACME = Extension(
    "x-acme",
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:acme",
        "type": "object",
        "additionalProperties": False,
        "required": ["rack"],
        "properties": {
            "rack": {"type": "string", "pattern": "^R[0-9]+$", "description": "Where it stands."},
            "power": {"type": ["number", "string"], "x-measure": "number", "maximum": 700},
            "nic": {"$ref": "#/definitions/nic"},
            "feed": {
                "oneOf": [
                    {"type": "string"},
                    {"type": "object", "properties": {"volts": {"type": "integer"}},
                     "required": ["volts"], "additionalProperties": False},
                ]
            },
            "since": {"type": "string", "format": "date"},
            "steps": {"type": "integer", "multipleOf": 8},
            "odd": {"not": {"const": "this"}, "description": "Anything but this."},
        },
        "definitions": {
            "nic": {"type": "object", "additionalProperties": False,
                    "properties": {"speed": {"type": "integer"}}},
        },
    },
)  # fmt: skip

ACME_WRONG = [
    ("x-acme: {rakc: R1}\n", ["unknown key 'rakc' in x-acme", "x-acme lacks rack"]),
    ("x-acme: {rack: 7}\n", ["x-acme.rack is 7: expected text that matches ^R[0-9]+$"]),
    ("x-acme: {rack: R1, power: 701}\n", ["x-acme.power is 701: expected at most 700"]),
    ("x-acme: {rack: R1, nic: {sped: 1}}\n", ["unknown key 'sped' in x-acme.nic"]),
    ("x-acme: {rack: R1, feed: [1]}\n", ["x-acme.feed is a list: expected text or a mapping"]),
    (
        "x-acme: {rack: R1, feed: {volts: x}}\n",
        ["x-acme.feed.volts is 'x': expected a whole number"],
    ),
    ("x-acme: {rack: R1, feed: {vlots: 3, volts: 1}}\n", ["unknown key 'vlots' in x-acme.feed"]),
    (
        "x-acme: {rack: R1, since: soon}\n",
        ["x-acme.since is 'soon': expected a date such as 2026-11-30"],
    ),
    ("x-acme: {rack: R1, steps: 9}\n", ["x-acme.steps is 9: expected a multiple of 8"]),
    ("x-acme: {rack: R1, odd: this}\n", ["x-acme.odd is 'this': not allowed here (not)"]),
    ("x-acme: hello\n", ["x-acme is 'hello': expected a mapping"]),
]


@pytest.mark.parametrize(("body", "messages"), ACME_WRONG)
def test_extension_is_checked(body: str, messages: list[str]) -> None:
    found = found_in(body, ACME)
    assert sorted(one.message for one in found) == sorted(messages)
    assert all(one.place.line == 3 for one in found)


def test_missing_field_is_explained_by_its_description() -> None:
    (problem,) = found_in("x-acme: {power: 1}\n", ACME)
    assert problem.help == "rack: where it stands."


def test_extension_fits() -> None:
    body = "x-acme: {rack: R1, power: 1e2, nic: {speed: 400}, feed: {volts: 230}, steps: 16}\n"
    assert found_in(body, ACME) == ()
    assert found_in("x-acme: {rack: R2, feed: a, since: 2026-11-30}\nx-other: 3\n", ACME) == ()


def test_evaluation_is_open_to_a_plugin() -> None:
    part = Extension("evaluation", {"type": "object", "additionalProperties": False})
    assert only("evaluation: {a: 1}\n", part).message == "unknown key 'a' in evaluation"


def test_the_schema_for_editors_holds_every_part() -> None:
    merged = deployment_schema([ACME])
    Draft7Validator.check_schema(merged)
    example = {"apiVersion": "capcheck/v1", "kind": "Deployment", "x-acme": {"rack": "R1"}}
    validator = Draft7Validator(merged)
    assert validator.is_valid(example)
    example["x-acme"] = {"rack": "R1", "nic": {"speed": "fast"}}
    assert not validator.is_valid(example)
    assert "x-acme" not in deployment_schema()["properties"]


BAD = [
    (Extension("acme", {}), "begins with x-"),
    (Extension("model", {}), "not open to plugins"),
    (Extension("x-", {}), "begins with x-"),
    (Extension("x-a", {"$ref": "https://example.com/s.json"}), "points outside"),
    (Extension("x-a", {"properties": {"b": {"$ref": "#/definitions/none"}}}), "leads nowhere"),
    (Extension("x-a", ["no"]), "not a mapping"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("extension", "match"), BAD)
def test_bad_extensions_are_refused(extension: Extension, match: str) -> None:
    with pytest.raises(BadExtension, match=match):
        deployment_schema([extension])


def test_extension_that_is_no_schema_is_refused() -> None:
    check_extension(ACME)
    with pytest.raises(BadExtension, match=r"x-a: properties\.b\.type is 'txt'"):
        check_extension(Extension("x-a", {"properties": {"b": {"type": "txt"}}}))


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "left": {"$ref": "#"}, "right": {"$ref": "#"}, "loop": {"$ref": "#/properties/loop"},
        },
    }  # fmt: skip
    body = "x-tree: {left: {right: {lft: 1}}}\n"
    part = Extension("x-tree", {**tree, "properties": {**tree["properties"], "loop": {}}})
    assert only(body, part).help == "did you mean left?"


# fields by path

PATHS = [
    (("hardware", "accelerator"), ""),
    (("engine", "args", "anything", "below"), ""),
    (("x-acme", "anything"), ""),
    (
        ("hardware", "acelerator"),
        "a deployment has no hardware.acelerator; did you mean accelerator?",
    ),
    (("gpu",), "a deployment has no gpu; did you mean hardware.accelerator?"),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_path_problem(path: tuple[str, ...], expected: str) -> None:
    assert Validator().path_problem(path) == expected


def test_one_validator_serves_many_drafts() -> None:
    validator = Validator([ACME])
    assert validator.problems(draft_of(HEADER + "x-acme: {rack: R1}\n")) == ()
    assert len(validator.problems(draft_of(HEADER + "x-acme: {rack: 1}\n"))) == 1
    assert validator.problems(draft_of(HEADER + "replicas: 3\n")) == ()

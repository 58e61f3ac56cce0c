"""The YAML of `trtllm-serve --config` (also --extra_llm_api_options): what it says wins."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from capcheck import ARGS, Desk, Document, Draft, Format, Place, Value, derived, flatten, places_of
from capcheck.deployment import FieldPath
from capcheck.launch import argument_path, node_of
from capcheck.source import Mapping, Node
from capcheck.unrendered import unrendered_in, unresolved_why
from capcheck_tensorrt_llm.table import TABLE

FILE_NAMES = ("*trtllm*.y*ml", "*tensorrt*llm*.y*ml", "*llm*api*.y*ml", "*llm*option*.y*ml")
OTHERS_KEYS = frozenset({"apiVersion", "kind", "services", "context_servers", "generation_servers"})

# Keys that no other engine's configuration has.
TELLING = frozenset({
    "cache_transceiver_config", "cuda_graph_config", "cuda_graph_padding_enabled",
    "enable_attention_dp", "enable_autotuner", "kv_cache_config", "moe_config",
    "moe_expert_parallel_size", "print_iter_log", "pytorch_backend_config", "use_cuda_graph",
})  # fmt: skip


def _is_configuration(root: Mapping, file: str) -> bool:
    """Whether the keys are mostly TensorRT-LLM's; one of its own, or the file's name, tells."""
    known: set[str] = set()
    foreign = 0
    for key, _ in root.entries:
        if key.text in OTHERS_KEYS:
            return False
        standing = TABLE.resolve(key.text, None, prefixes=False)
        if standing.option is not None:
            known.add(standing.option.name)
        else:
            foreign += 1
    name = PurePosixPath(file).name.casefold()
    named = any(fnmatchcase(name, pattern) for pattern in FILE_NAMES)
    return (named or bool(known & TELLING)) and len(known) > 0 and len(known) >= foreign


class TensorRtLlmConfig(Format):
    """A map of the LLM API's arguments. It names no release, and often no model."""

    name = "tensorrt-llm-config"
    title = "TensorRT-LLM's own options (trtllm-serve --config, --extra_llm_api_options)"
    engine_config = "tensorrt-llm"
    config_options = ("extra_llm_api_options", "config")
    overrules = True

    def claims(self, document: Document) -> bool:
        """Whether the keys are TensorRT-LLM's options."""
        root = document.root
        return isinstance(root, Mapping) and _is_configuration(root, document.file)

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The options as written; a document that is no mapping holds none."""
        document = desk.document
        root = document.root
        if not isinstance(root, Mapping):
            return ()
        place = root.entries[0][0].place if root.entries else root.place
        engine = derived(
            node_of("tensorrt-llm", place), place, "the file holds TensorRT-LLM's options"
        )
        return (
            Draft(
                name=PurePosixPath(document.file).stem,
                format=self.name,
                place=place,
                fields={("engine", "name"): engine, **_fields(root)},
                places=_places(root, place),
            ),
        )


def _fields(root: Mapping) -> dict[FieldPath, Value[Node]]:
    """Each option below engine.args: maps by their leaves, lists as a whole."""
    fields: dict[FieldPath, Value[Node]] = {}
    for key, node in root.entries:
        for path, value in flatten(node, (*ARGS, key.text), word=key.text).items():
            lost = unrendered_in(value.options[0])
            if lost:
                value = Value((), value.origin._replace(why=unresolved_why(lost)))
            fields[path] = value
    return fields


def _places(root: Mapping, place: Place) -> dict[FieldPath, Place]:
    """Where each key stands; what is missing would be written at the top."""
    places: dict[FieldPath, Place] = {(): place, ARGS: place}
    for key, node in root.entries:
        path = argument_path(key.text)
        places[path] = key.place
        places.update({(*path, *inner): at for inner, at in places_of(node).items() if inner})
    return places

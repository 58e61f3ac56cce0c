"""The core's own rules: what can be wrong with the input itself, and with a run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from capcheck.quantity import Severity


class Notice(NamedTuple):
    """The page of one of the core's rules. No check belongs to it: the core reports it itself."""

    id: str
    title: str
    why: str
    fix: str
    severity: Severity = "error"
    since: str = "0.1.0"
    aliases: tuple[str, ...] = ()

    @property
    def concern(self) -> str:
        """What it is about: `spec` or `capcheck`."""
        return self.id.partition("/")[0]


_ALL = (
    Notice(
        "spec/unreadable",
        "a file cannot be read",
        "A path that was asked for does not exist, is no file, may not be read or leads out of the"
        " checked tree. Nothing in it was checked.",
        "Correct the path or the file's permissions. Links that leave the tree are never followed.",
    ),
    Notice(
        "spec/encoding",
        "a file is not text",
        "Deployment files are text in UTF-8 or UTF-16. Other bytes would be read differently by"
        " each tool, or not at all.",
        "Save the file as UTF-8.",
    ),
    Notice(
        "spec/too-large",
        "a file is larger or deeper than is read",
        "Files come from strangers, so size, depth and the number of values are capped. What is"
        " beyond a cap was not checked.",
        "Split the file, or leave it out with `exclude` when it is no deployment.",
    ),
    Notice(
        "spec/yaml",
        "the text is not valid YAML",
        "Neither capcheck nor the engine or orchestrator can load the file.",
        "Correct the marked place. Often it is a tab, a missing blank behind a colon, or an"
        " indentation that differs from its neighbours.",
    ),
    Notice(
        "spec/json",
        "the text is not valid JSON",
        "The file's name says JSON, and programs that read it as JSON will refuse it.",
        "Correct the marked place: JSON has no comments and no comma before a closing bracket.",
    ),
    Notice(
        "spec/template",
        "a template is not rendered",
        "The text holds template expressions that only their own tool can fill in. capcheck"
        " evaluates nothing, so what depends on them is not known.",
        "Render the template (`helm template`, `kustomize build`) and check the result.",
        "warning",
    ),
    Notice(
        "spec/duplicate-key",
        "a key stands twice in one mapping",
        "Loaders silently keep one of the two values, most the last one, so the other line says"
        " something that is not so. Strict loaders refuse the file.",
        "Remove one of the two.",
    ),
    Notice(
        "spec/alias",
        "an alias cannot be resolved",
        "A YAML alias has no anchor, refers to itself, or expands to more values than is read.",
        "Define the anchor before its first use, or write the value out.",
    ),
    Notice(
        "spec/schema",
        "a value does not fit the schema",
        "A field of the deployment has a value that cannot mean anything there: of the wrong type,"
        " out of range, or against another field. What depends on it cannot be checked.",
        "Write what the finding says is expected. `capcheck schema` prints the whole schema, and"
        " editors complete and check fields with it.",
    ),
    Notice(
        "spec/unknown-key",
        "a key is not known",
        "A misspelt key is not read: the deployment is checked as if the line were not there, and"
        " takes a default that nobody chose.",
        "Correct the key, or move it to the part of the deployment that it belongs to. Options of"
        " the engine go under engine.args. Keys of your own begin with `x-`.",
    ),
    Notice(
        "spec/conflict",
        "a field is said twice, differently",
        "Two spellings or two files of the same rank say one thing in two ways. Which of them"
        " counts depends on the program that reads them.",
        "Remove one of them.",
    ),
    Notice(
        "spec/unresolved",
        "a value depends on something that the files do not hold",
        "A variable, a secret or a reference has no value in the checked files. It is unknown, not"
        " a default: checks that need it are skipped.",
        "Give the variable a value in the file, check the file that sets it too, or name the value"
        " with --assume.",
        "warning",
    ),
    Notice(
        "spec/unknown-model",
        "the model is not in the catalogue",
        "Without the model's architecture nothing can be said of weights, KV cache or latency:"
        " those checks are skipped.",
        "Correct the name, or give its config.json: `model.config: ./config.json`."
        " `capcheck models add` keeps it in a catalogue of your own.",
        "warning",
    ),
    Notice(
        "spec/model-config",
        "a config.json cannot be used",
        "The file is no model configuration, or of an architecture that no plugin knows. Checks"
        " that need the model are skipped.",
        "Take the config.json that the engine itself loads. For a new architecture a plugin can"
        " bring its family.",
        "warning",
    ),
    Notice(
        "spec/unknown-accelerator",
        "the accelerator is not in the catalogue",
        "Without the accelerator's memory, bandwidth and arithmetic those checks are skipped.",
        "Correct the name: `capcheck list accelerators` prints those that are known. A catalogue"
        " of your own can add one.",
        "warning",
    ),
    Notice(
        "spec/unknown-engine",
        "the engine is not known",
        "Options, defaults and memory accounting belong to an engine. Without it those checks are"
        " skipped.",
        "Correct the name: `capcheck list engines` prints those that are known. A plugin can add"
        " one.",
        "warning",
    ),
    Notice(
        "spec/link",
        "a linked file cannot be used",
        "The deployment takes part of what it says from another file, and that part is missing:"
        " checks would speak of another deployment than the one that runs.",
        "Correct the path; it is relative to the file that names it. `#Kind/name` picks one object"
        " of several.",
    ),
    Notice(
        "capcheck/plugin-error",
        "a plugin failed",
        "A plugin could not be loaded, raised, or left a rule without an answer. What it should"
        " have checked was not checked, so the run exits 2. This cannot be ignored.",
        "Report it to whoever ships the plugin, or run without it: --no-plugin NAME.",
    ),
    Notice(
        "capcheck/unused-ignore",
        "a suppression has nothing to suppress",
        "What it was written for is gone, or it names a rule that does not exist. Left in place it"
        " would hide the next such finding without anybody having decided so.",
        "Remove the rule from the comment, or the whole comment.",
        "warning",
    ),
    Notice(
        "capcheck/bare-ignore",
        "a suppression gives no reason, or names no rule",
        "Whoever reads it later cannot tell whether it still holds. It suppresses nothing until it"
        " names each rule and says why.",
        "Write `# capcheck: ignore[RULE] REASON` on the line or on the line above;"
        " `file-ignore[RULE] REASON` speaks of the whole file.",
        "warning",
    ),
    Notice(
        "capcheck/unclaimed",
        "no format reads the file",
        "The path was named on the command line, so somebody expects it to be checked, and it was"
        " not. Files that a walk finds are only counted.",
        "Correct the path, or add the header of a deployment: `apiVersion: capcheck/v1` and"
        " `kind: Deployment`. `capcheck list formats` prints what is read.",
    ),
    Notice(
        "capcheck/header",
        "a header is nearly a deployment's",
        "The file looks like a capcheck/v1 deployment, but its header is another: it would be"
        " passed over in silence.",
        "Write `apiVersion: capcheck/v1` and `kind: Deployment`.",
    ),
)

NOTICES: Mapping[str, Notice] = MappingProxyType({one.id: one for one in _ALL})

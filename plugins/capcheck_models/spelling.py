"""How deployments write a model's name: hub ids, revisions, paths, URLs, cache folders."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_NAME = 300

# Folders whose name says nothing about the model in them.
_GENERIC = frozenset(
    (
        "model", "models", "model-store", "modelstore", "model-cache", "models-cache", "weight",
        "weights", "checkpoint", "checkpoints", "ckpt", "ckpts", "snapshot", "snapshots",
        "latest", "main", "master", "final", "current", "default", "merged", "base", "hf",
        "huggingface", "hub", "mnt", "data", "workspace", "cache", ".cache", "pvc", "opt", "srv",
        "home", "root", "tmp", "var", "usr", "local", "share", "storage", "volume", "volumes",
        "nfs", "app", "repo", "repository", "llm", "llms", "gguf", "safetensors", "vllm",
        "ollama", "bucket", "inference",
    )
)  # fmt: skip
_MEANINGLESS = re.compile(r"^(?:v?\d{1,4}|[0-9a-f]{12,64}|\.{1,2}|~|)$")
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]{1,19})://")
_VARIABLE = re.compile(r"\$|\{\{|\{%|<[a-z]|%\w+%", re.IGNORECASE)
_HUB_SCHEMES = frozenset(("hf", "huggingface"))
_HUB_SITES = ("huggingface.co/", "www.huggingface.co/", "hf.co/")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


class Spelling(NamedTuple):
    """What a written name may mean, best first."""

    candidates: tuple[str, ...]  # "owner/name", or a name alone
    tag: str = ""  # after a colon: a revision, or a GGUF type
    path: bool = False  # inferred from a path: the folder may hold anything
    why: str = ""  # why there is no candidate


def spelled(name: str) -> Spelling:
    """Take a name apart. A name that holds a variable or names no model has no candidates."""
    text = name.strip().replace("\\", "/")
    if not text or len(text) > LONGEST_NAME:
        return Spelling((), why="no model is named" if not text else "too long for a name")
    if _VARIABLE.search(text):
        return Spelling((), why="the name holds a variable")
    found = _SCHEME.match(text.lower())
    rest = text[found.end() :] if found else text
    if found and found[1] in ("http", "https"):
        site = next((site for site in _HUB_SITES if rest.lower().startswith(site)), None)
        return _hub_id("/".join(rest[len(site) :].split("/")[:2])) if site else _path(rest)
    if found and found[1] in _HUB_SCHEMES:
        return _hub_id(rest)
    if found or _is_path(text):
        return _path(rest)
    return _hub_id(text)


def _is_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text.count("/") > 1 or ":/" in text


def _hub_id(text: str) -> Spelling:
    """`owner/name`, perhaps with a revision after @ or a tag after a colon."""
    bare, _, revision = text.partition("@")
    bare, _, tag = bare.rstrip("/").partition(":")
    if _named(bare.split("/")[-1]):
        return Spelling((bare,), tag or revision)
    return Spelling((), why=f"{text!r} does not name a model")


def _path(text: str) -> Spelling:
    """The last folder that says something; with its parent it may be a hub id."""
    parts = [part for part in text.split("/") if part]
    for part in reversed(parts):
        if part.startswith("models--") and part.count("--") >= 2:
            owner, name = part.split("--")[1:3]
            return Spelling((f"{owner}/{name}",), path=True)
    while parts and not _named(parts[-1]):
        parts.pop()
    if not parts:
        return Spelling((), path=True, why="the path does not name a model")
    last, _, tag = parts[-1].partition(":")
    if last.lower().endswith((".gguf", ".bin", ".safetensors")):
        last = _SHARD.sub("", last.rpartition(".")[0])
    candidates = [last]
    if len(parts) > 1:
        candidates.insert(0, f"{parts[-2]}/{last}")
    return Spelling(tuple(candidates), tag, path=True)


def _named(part: str) -> bool:
    word = part.lower()
    return word not in _GENERIC and _MEANINGLESS.match(word) is None

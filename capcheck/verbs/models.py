"""`capcheck models add PATH|ID`: a checkpoint's facts into the repository's own catalogue."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capcheck.catalogue import CatalogueError
from capcheck.checkpoint_files import Checkpoint, CheckpointError, read_checkpoint
from capcheck.cli import FAULT, OK, session_of, tell
from capcheck.config import UsageError
from capcheck.gguf_header import GgufHeader
from capcheck.hub import fetch, is_id
from capcheck.model_records import (
    Counted,
    counted,
    counted_gguf,
    difference,
    digest_of,
    record_of,
)
from capcheck.models import FoundModel
from capcheck.own_records import KIND, target_of, written
from capcheck.safetensors_header import (
    LfsPointer,
    SafetensorsError,
    StoredTensor,
    read_shards,
)
from capcheck.session import Session
from capcheck.verbs.reading import say

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[^/\s]+(?:/[^/\s]+)?")
_LONGEST = 200


class Material(NamedTuple):
    """All that is known of a checkpoint before a model is made of it."""

    checkpoint: Checkpoint
    tensors: Sequence[StoredTensor]
    name: str  # unless the user gives another
    source: str
    revision: str = ""


def _anywhere(file: Path) -> bool:
    """The user named the path: links in it lead where they lead, as in the hub's cache."""
    return file.exists()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _material(given: argparse.Namespace) -> Material:
    """From the path, or with --hub from the hub. Raises UsageError."""
    path = Path(given.model)
    if given.hub:
        if not is_id(given.model):
            raise UsageError(f"{given.model} is no id of the hub: expected owner/name")
        return _of_hub(given)
    if given.revision:
        raise UsageError("--revision is of the hub: it needs --hub")
    if _exists(path):
        return _of_path(path, given.model)
    if is_id(given.model):
        why = "there is no such folder, and nothing is fetched unasked"
        raise UsageError(f"{given.model}: {why}; --hub reads it from the Hugging Face hub")
    raise UsageError(f"{given.model}: no such file or folder")


def _tensors(folder: Path) -> Sequence[StoredTensor]:
    """What the headers tell; nothing where the weights were not checked out."""
    try:
        return read_shards(folder)
    except LfsPointer:
        return ()


def _of_path(path: Path, shown: str) -> Material:
    try:
        checkpoint = read_checkpoint(path, _anywhere)
        folder = path if path.is_dir() else path.parent
        is_gguf = "gguf" in checkpoint.config
        tensors = () if is_gguf else _tensors(folder)
    except (CheckpointError, SafetensorsError) as wrong:
        raise UsageError(f"{shown}: {wrong}") from wrong
    except OSError as wrong:
        raise UsageError(f"{shown}: {wrong.strerror or wrong}") from wrong
    first = checkpoint.files[0]
    name = first.name.removesuffix(first.suffix) if is_gguf else folder.resolve().name
    where = path.name if path.is_absolute() else os.path.normpath(path)
    names = [file.name for file in checkpoint.files]
    read = f"{where}: {'its header' if is_gguf else ', '.join(names)}"
    if tensors:
        read += ", the headers of its safetensors"
    return Material(checkpoint, tensors, re.sub(r"\s+", "-", name), Path(read).as_posix())


def _of_hub(given: argparse.Namespace) -> Material:
    with tempfile.TemporaryDirectory(prefix="capcheck-hub-") as folder:
        fetched = fetch(given.model, given.revision, Path(folder))
        try:
            checkpoint = read_checkpoint(Path(folder), _anywhere)
        except CheckpointError as wrong:
            raise UsageError(f"{given.model}: {wrong}") from wrong
    read = ", ".join(file.name for file in checkpoint.files)
    source = f"Hugging Face hub, {given.model}: {read}"
    if fetched.tensors:
        source += ", the headers of its safetensors"
    return Material(checkpoint, fetched.tensors, given.model, source, fetched.revision)


def _name(given: argparse.Namespace, material: Material, session: Session) -> str:
    """The record's id: as given, and spelled as the catalogue spells it, so that it wins."""
    name = given.name or material.name
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise UsageError(f"{name!r} is no name of a model: expected owner/name or a word")
    try:
        known = {one.lower(): one for one in session.catalogue.ids(KIND)}
    except CatalogueError as wrong:
        raise UsageError(str(wrong)) from wrong
    spelled: str = known.get(name.lower(), name)
    return spelled


def _counts(material: Material, found: FoundModel, session: Session) -> Counted:
    config = material.checkpoint.config
    header = config.get("gguf")
    if isinstance(header, GgufHeader):
        digest = digest_of(
            found.architecture.config, ((one.name, one.type, one.shape) for one in header.tensors)
        )
        return counted_gguf(header, found)._replace(digest=digest)
    packed = found.architecture.quantization
    scheme = session.packings.from_config(packed) if packed else None
    counts = counted(material.tensors, scheme, bool(packed))
    return counts._replace(digest=digest_of(config, material.tensors))


def _remarks(found: FoundModel, counts: Counted, session: Session) -> list[str]:
    """What the user should know of the record before trusting it."""
    lines = []
    if counts.parameters:
        lines.append(difference(found.architecture, counts.parameters))
    if not counts.bytes:
        lines.append("no safetensors are there: the record has no counts of what is stored")
    elif counts.parameters is None:
        lines.append("its weights are packed in a way that does not tell how many there are")
    packed = found.architecture.quantization
    if packed and session.packings.from_config(packed) is None:
        method = packed.get("quant_method", "of no named method")
        lines.append(
            f"the quantization {method!r} is not understood: state model.weights.precision"
        )
    return [*filter(None, lines), *found.architecture.doubts]


def run(given: argparse.Namespace) -> int:
    """Read, build, compare, write. Exit 2 when no record can be made."""
    session = session_of(given, given.to.parent if given.to else None)
    material = _material(given)
    name = _name(given, material, session)
    found = session.resolver.models.build(material.checkpoint.config, name)
    for fault in session.guard.errors:
        tell(f"plugin {fault.plugin}: {fault.message}")
    if isinstance(found, str):
        raise UsageError(f"{given.model} cannot be used: {found}")
    counts = _counts(material, found, session)
    if not material.tensors and "gguf" not in material.checkpoint.config:
        counts = counts._replace(parameters=None)
    record = record_of(
        name, found, counts, source=material.source, date=_today(), revision=material.revision
    )
    target, is_read = target_of(session.settings, session.root, given.to)
    shown = os.path.relpath(target)
    again = written(Path(shown), record, force=given.force)
    say(f"{name}: {'replaced in' if again else 'added to'} {shown}")
    sys.stdout.flush()
    for line in _remarks(found, counts, session):
        tell(f"{name}: {line}")
    if not is_read:
        tell(f"{shown} is not read by checks: name it in the configuration, catalogues.model")
    return FAULT if session.guard.errors else OK


def _today() -> str:
    """The day, or the one that a reproducible build is given."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(told), UTC) if told.isdecimal() else datetime.now(UTC)
    return now.date().isoformat()

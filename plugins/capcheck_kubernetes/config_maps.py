"""ConfigMaps of the run, and what pods take from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from capcheck import Document
from capcheck.source import Mapping, Node, Scalar
from capcheck_kubernetes.nodes import child, entries, items, scalar, text
from capcheck_kubernetes.surroundings import Surroundings
from capcheck_kubernetes.workloads import Workload


class Mounted(NamedTuple):
    """A ConfigMap's entry that a container sees as a file."""

    content: Scalar
    document: Document
    key: str


def _config_maps(
    name: str, workload: Workload, around: Surroundings
) -> list[tuple[Mapping, Document]]:
    """The data of the ConfigMaps of that name: those of the workload's own file, else all."""
    found = []
    for one, document in around.near(workload, "ConfigMap"):
        data = child(one, "data")
        if isinstance(data, Mapping) and text(child(one, "metadata", "name")) == name:
            found.append((data, document))
    near = [one for one in found if one[1].file == around.desk.document.file]
    return near or found


def entry(name: str, key: str, workload: Workload, around: Surroundings) -> Mounted | None:
    """One entry of a ConfigMap; None when there is none, or several that differ."""
    found = [
        (scalar(data.get(key)), document) for data, document in _config_maps(name, workload, around)
    ]
    texts = {content.text if content is not None else None for content, _ in found}
    if len(texts) != 1:
        return None
    content, document = found[0]
    return None if content is None else Mounted(content, document, key)


def missing_why(name: str, workload: Workload, around: Surroundings) -> str:
    """Why an entry of a ConfigMap cannot be told."""
    found = _config_maps(name, workload, around)
    if len(found) > 1:
        return f"ConfigMap {name} stands in several files, differently"
    if found:
        return f"ConfigMap {name} has no such text"
    return f"ConfigMap {name} is not among the files read"


class _Mount(NamedTuple):
    path: PurePosixPath
    volume: Node
    sub_path: str


def _mounts(container: Node, pod: Node) -> Iterator[_Mount]:
    volumes = {text(child(one, "name")): one for one in items(child(pod, "volumes"))}
    for one in items(child(container, "volumeMounts")):
        path, name = text(child(one, "mountPath")), text(child(one, "name"))
        if path is not None and name is not None and name in volumes:
            sub_path = text(child(one, "subPath")) or ""
            yield _Mount(PurePosixPath(path), volumes[name], sub_path)


def mounted_volume(path: str, container: Node, pod: Node) -> Node | None:
    """The volume that is mounted exactly at `path`."""
    wanted = PurePosixPath(path)
    return next((one.volume for one in _mounts(container, pod) if one.path == wanted), None)


def mounted_file(
    path: str, container: Node, pod: Node, workload: Workload, around: Surroundings
) -> Mounted | None:
    """The entry of a ConfigMap that the container sees at `path`; None for any other file."""
    wanted = PurePosixPath(path)
    reaching = [one for one in _mounts(container, pod) if wanted.is_relative_to(one.path)]
    if not reaching:
        return None
    mount = max(reaching, key=lambda one: len(one.path.parts))
    inside = str(wanted.relative_to(mount.path)) if wanted != mount.path else ""
    file = mount.sub_path if not inside else f"{mount.sub_path}/{inside}".lstrip("/")
    for source in (mount.volume, *items(child(mount.volume, "projected", "sources"))):
        held = child(source, "configMap")
        name = text(child(held, "name"))
        if name is None:
            continue
        found = entry(name, _key_of(held, file), workload, around)
        if found is not None:
            return found
    return None


def _key_of(held: Node | None, file: str) -> str:
    """The entry that a volume shows under the name `file`."""
    for item in items(child(held, "items")):
        if text(child(item, "path")) == file:
            return text(child(item, "key")) or file
    return file


def all_entries(
    name: str, workload: Workload, around: Surroundings
) -> Iterator[tuple[str, Mounted | None]]:
    """Every key of a ConfigMap; None where its text cannot be told."""
    keys = dict.fromkeys(
        key for data, _ in _config_maps(name, workload, around) for key, _, _ in entries(data)
    )
    for key in keys:
        yield key, entry(name, key, workload, around)

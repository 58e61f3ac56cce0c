"""The other objects of the run that belong to a workload."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath

from capcheck import Desk, Document
from capcheck.source import Node
from capcheck_kubernetes.nodes import child, scalar, text
from capcheck_kubernetes.workloads import Workload, objects

AUTOSCALERS = ("HorizontalPodAutoscaler", "ScaledObject")


def _folder(document: Document) -> PurePosixPath:
    return PurePosixPath(document.file).parent


class Surroundings:
    """The desk of a document, with the objects of all documents by kind."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @cached_property
    def _kinds(self) -> dict[str, list[tuple[Node, Document]]]:
        kinds: dict[str, list[tuple[Node, Document]]] = {}
        for document in self.desk.documents:
            for one in objects(document.root):
                kind = text(child(one, "kind"))
                if kind is not None:
                    kinds.setdefault(kind, []).append((one, document))
        return kinds

    def near(self, workload: Workload, kind: str) -> Iterator[tuple[Node, Document]]:
        """The objects of a kind in the workload's namespace.

        Objects without a namespace go to whichever one they are applied to: only those of one
        folder are taken to go together.
        """
        home = _folder(self.desk.document)
        for one, document in self._kinds.get(kind, ()):
            namespace = text(child(one, "metadata", "namespace"))
            if namespace == workload.namespace and (namespace or _folder(document) == home):
                yield one, document

    def autoscaler(self, workload: Workload) -> str:
        """Which object sets the number of replicas; "" when none does."""
        for kind in AUTOSCALERS:
            for one, _ in self.near(workload, kind):
                target = child(one, "spec", "scaleTargetRef")
                # KEDA takes a target without a kind for a Deployment.
                aimed = text(child(target, "kind")) or "Deployment"
                if aimed == workload.kind and text(child(target, "name")) == workload.name:
                    return f"{kind} {text(child(one, 'metadata', 'name')) or ''}".strip()
        return ""

    def services(self, workload: Workload) -> tuple[Node, ...]:
        """The names of the Services in the workload's namespace, each once.

        Kubernetes writes variables only of Services that have an address: none of a headless one
        (`clusterIP: None`) nor of an external name.
        """
        found: dict[str, Node] = {}
        for one, _ in self.near(workload, "Service"):
            name = scalar(child(one, "metadata", "name"))
            addressed = (
                text(child(one, "spec", "clusterIP")) != "None"
                and text(child(one, "spec", "type")) != "ExternalName"
            )
            if name is not None and text(child(one, "apiVersion")) == "v1" and addressed:
                found.setdefault(name.text, name)
        return tuple(found.values())

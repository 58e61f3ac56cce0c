"""Kubernetes workloads that run an inference engine."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Format, hookimpl


@hookimpl
def capcheck_formats() -> Iterable[Format]:
    """The reader of Deployments, StatefulSets, LeaderWorkerSets and the like."""
    from capcheck_kubernetes.manifests import Kubernetes

    return (Kubernetes(),)

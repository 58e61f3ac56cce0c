"""The accounting without an engine: weights, the full batch's KV cache, a share for the rest."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Engine, Estimate, hookimpl


@hookimpl
def capcheck_engines() -> Iterable[Engine]:
    """Serves deployments that name no engine."""
    from capcheck_generic.engine import Generic

    return (Generic(),)


@hookimpl
def capcheck_estimates() -> Iterable[Estimate]:
    """A planner's five figures, whatever the engine."""
    from capcheck_generic import estimates

    return estimates.ALL

"""Configurations that pack some named modules otherwise than the rest: mixed bits, mixed groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from capcheck.quantization import Scheme

from .patterns import fold
from .reading import Unread, integer, whole

_SIXTEEN = 16  # so many bits and more are no packing
_SPECIAL = frozenset("*+?[](){}|^$\\")


class Override(NamedTuple):
    """How one module, or those of a pattern, are packed."""

    pattern: str
    told: Mapping[str, Any]


def entries(config: Mapping[str, Any], key: str) -> tuple[Override, ...]:
    """The overrides of a mapping from names or expressions to settings."""
    listed = config.get(key)
    if not isinstance(listed, Mapping):
        return ()
    return tuple(
        Override(_pattern(str(name)), cast("Mapping[str, Any]", told))
        for name, told in listed.items()
        if isinstance(told, Mapping)
    )


def _pattern(name: str) -> str:
    """GPTQModel's rules start with `+:`; what is no plain name is an expression."""
    if name.startswith("+:"):
        return f"re:{name[2:]}"
    return f"re:{name}" if _SPECIAL & set(name) else name


def apply(scheme: Scheme, overrides: Iterable[Override]) -> Scheme:
    """The scheme with its overrides: a part for each kind of them, before the rest.

    Modules of sixteen bits are left out. Raises Unread for a width that is none.
    """
    kept: list[str] = []
    kinds: dict[tuple[int, int, bool, bool], list[str]] = {}
    own = (int(scheme.bits), scheme.group, scheme.zero_points, scheme.activation_order)
    for pattern, told in overrides:
        kind = _kind(scheme, told)
        if kind[0] >= _SIXTEEN:
            kept.append(pattern)
        elif kind != own:
            kinds.setdefault(kind, []).append(pattern)
    scheme = scheme._replace(excluded=(*scheme.excluded, *fold(kept)))
    if not kinds:
        return scheme
    rest = scheme._replace(excluded=())
    parts = [_part(rest, kind, patterns) for kind, patterns in kinds.items()]
    return scheme._replace(parts=(*parts, rest))


def _kind(scheme: Scheme, told: Mapping[str, Any]) -> tuple[int, int, bool, bool]:
    bits, group = whole(told, "bits"), whole(told, "group_size")
    if bits is not None and bits < 1:
        raise Unread(f"bits is {bits}, not a width in bits")
    zeros = scheme.zero_points if told.get("sym") is None else told.get("sym") is False
    order = scheme.activation_order if told.get("desc_act") is None else bool(told["desc_act"])
    return (
        bits if bits is not None else int(scheme.bits),
        scheme.group if group is None else max(group, 0),
        zeros,
        order,
    )


def _part(scheme: Scheme, kind: tuple[int, int, bool, bool], patterns: list[str]) -> Scheme:
    bits, group, zeros, order = kind
    return scheme._replace(
        weight=integer(bits),
        bits=bits,
        group=group,
        zero_points=zeros,
        activation_order=order,
        targets=fold(patterns),
        roles=(),
    )

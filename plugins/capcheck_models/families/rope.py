"""Rotary tables and the context length that a configuration promises."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Rope

from .config import Config

# Kinds whose factor leaves the promised length alone: the length is already the scaled one.
_ALREADY_SCALED = ("su", "longrope", "llama3", "default", "mrope", "proportional", "mllama4")
_YARN = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")
_LENGTH_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
_LONGEST = 10**9


class Scaling(NamedTuple):
    """One rope's parameters, whichever of the two spellings the configuration uses."""

    kind: str
    factor: float
    original: int  # positions before scaling; 0: not told
    theta: float
    partial: float  # share of the head that is rotated; 0: not told
    sections: bool  # split into time, height and width (M-RoPE)


def _scaling(c: Config, theta: float) -> Scaling:
    kind = c.word("rope_type", "type", default="default")
    return Scaling(
        kind=kind,
        factor=c.number("factor", 1.0),
        original=c.whole("original_max_position_embeddings", default=0),
        theta=c.number("rope_theta", theta),
        partial=c.number("partial_rotary_factor", 0.0),
        sections=c.has("mrope_section"),
    )


def scalings(c: Config) -> tuple[Scaling, ...]:
    """The distinct ropes: one, or one per kind of layer where they are told apart."""
    theta = c.number("rope_theta", 10000.0)
    if not c.has("rope_parameters", "rope_scaling"):
        return (_scaling(Config({}), theta),)
    told = c.section("rope_parameters", "rope_scaling")
    nested = [key for key in told.values if isinstance(told.values[key], dict)]
    if not nested:
        return (_scaling(told, theta),)
    return tuple(dict.fromkeys(_scaling(told.section(key), theta) for key in nested))


def _plain_positions(c: Config) -> int | None:
    overriding = c.optional("model_max_length", least=1)
    if overriding is not None:
        return overriding
    told = (c.optional(key, least=1) for key in _LENGTH_KEYS)
    return min((length for length in told if length is not None), default=None)


class Lengths(NamedTuple):
    """What one configuration promises, in tokens; None when it tells no length."""

    most: int | None  # every scaling factor applied
    most_without_yarn: int | None  # for engines that take the told length as already scaled
    start: int | None  # what is served when no length is asked for


def lengths(c: Config, model_type: str) -> Lengths:
    """Derive the context length as engines do (vLLM's rule; see `Lengths`).

    The smallest told length; `model_max_length` overrides it; linear, dynamic and yarn factors
    multiply it, yarn's over the original length. Gemma 3 tells the scaled length. A longrope
    model starts at its original length when no other is asked for.
    """
    plain = _plain_positions(c)
    if plain is None:
        return Lengths(None, None, None)
    most = without_yarn = start = plain
    if "gemma3" in model_type:
        return Lengths(most, without_yarn, start)
    for scaling in scalings(c):
        if scaling.kind == "longrope":
            start = c.whole("original_max_position_embeddings", default=plain, least=1)
        elif scaling.kind in _YARN:
            most = start = _scaled(scaling.original or plain, scaling.factor)
        elif scaling.kind not in _ALREADY_SCALED:
            most = without_yarn = start = _scaled(plain, scaling.factor)
    return Lengths(most, without_yarn, start)


def _scaled(length: int, factor: float) -> int:
    return max(1, min(int(length * factor), _LONGEST))


def _table(scaling: Scaling, positions: int, head_size: int, partial: float, c: Config) -> Rope:
    dimensions = int(head_size * min(scaling.partial or partial, 1.0))
    original = scaling.original or positions
    if scaling.kind in _YARN:
        positions = _scaled(original, scaling.factor)
    elif scaling.kind in ("linear", "dynamic", "ntk"):
        positions = _scaled(positions, scaling.factor)
    elif scaling.kind == "longrope":  # a short and a long table, one after the other
        positions += c.whole("original_max_position_embeddings", default=original)
    copies = 4 if scaling.sections else 1
    return Rope(positions, dimensions, copies, base=scaling.theta)


def ropes(c: Config, head_size: int, partial: float = 1.0) -> tuple[Rope, ...]:
    """The tables an engine keeps, one per distinct rope.

    `head_size` is the rotated width before `partial` (the share that is rotated unless the
    configuration tells one). M-RoPE tables hold four times the positions.
    """
    positions = _plain_positions(c)
    if positions is None or head_size == 0:
        return ()
    share = c.number("partial_rotary_factor", partial)
    tables = tuple(_table(scaling, positions, head_size, share, c) for scaling in scalings(c))
    if c.has("rope_local_base_freq"):  # Gemma 3: sliding layers turn at their own speed, unscaled
        local = c.number("rope_local_base_freq", 10000.0)
        tables += (Rope(positions, int(head_size * share), base=local),)
    return tables

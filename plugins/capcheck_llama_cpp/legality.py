"""What llama.cpp refuses when it starts: types of cached values, slots, what is excluded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capcheck import Case, Place, Support, Unknown
from capcheck.source import Scalar
from capcheck_llama_cpp import eras
from capcheck_llama_cpp.cells import BLOCKS, TYPE_BYTES
from capcheck_llama_cpp.layout import build_of, settings_of
from capcheck_llama_cpp.reading import Reading
from capcheck_llama_cpp.refusals import MOST, REFUSALS

CONFLICT, VALUE = "options/conflict", "options/value"
SLOT_LIMIT = 6160  # builds from here on refuse more than 256 sequences


def supports(case: Case) -> Iterable[Support]:
    """Everything that is decided at start. A check that lacks an input decides nothing."""
    found: list[Support] = []
    for check in (types, values_need_flash, bare_flash, head_sizes, slots, *REFUSALS):
        try:
            found += check(case)
        except Unknown:
            continue
    return found


def types(case: Case) -> Iterator[Support]:
    """Types that the cache can have."""
    settings = settings_of(case)
    for option, value in (
        ("cache-type-k", settings.key_type), ("cache-type-v", settings.value_type),
    ):  # fmt: skip
        word = value.get()
        if value.origin.kind == "written":
            known = ", ".join({"fp16": "f16", "fp32": "f32"}.get(one, one) for one in _types())
            message = f"{option}: {word} is no type of cached values"
            yield Support(VALUE, word in _types(), value, message, (f"use one of {known}",))


def _types() -> tuple[str, ...]:
    return ("fp32", "fp16", "bf16", *BLOCKS)


def values_need_flash(case: Case) -> Iterator[Support]:
    """Packed values are only read by flash attention."""
    settings = settings_of(case)
    value, flash = settings.value_type, settings.flash
    if value.get() not in BLOCKS:
        return
    message = f"cached values of type {value.get()} need flash attention, which is off"
    help = ("--flash-attn on",) if build_of(case) >= eras.OFFLOADS_ALL else ("--flash-attn",)
    yield Support(CONFLICT, flash.get(), value, message, help)


def bare_flash(case: Case) -> Iterator[Support]:
    """The flag of older builds: newer ones take the next word for its value."""
    flash = settings_of(case).flash
    written = flash.origin.word.startswith("-") and flash.origin.kind == "written"
    if written and build_of(case) >= eras.OFFLOADS_ALL and flash.place == _name_place(case):
        message = f"{flash.origin.word} takes a value since b{eras.OFFLOADS_ALL}: on, off or auto"
        yield Support(VALUE, False, flash, message, (f"{flash.origin.word} on",))


def _name_place(case: Case) -> Place | None:
    """Where the flag's name stands, if that is all that is written of it."""
    path = Reading(case.deployment, case.release.version).path("flash_attn")
    value = case.deployment.fields.get(path)
    plain = value.either(None) if value is not None else None
    alone = isinstance(plain, Scalar) and plain.type == "boolean"
    return value.place if value is not None and alone else None


def head_sizes(case: Case) -> Iterator[Support]:
    """Packed types come in blocks that a head's size must be whole ones of."""
    settings = settings_of(case)
    model = case.model.get("model").architecture
    caches = [one.cache for one in model.layers if one.cache is not None and one.cache.heads]
    for value, sizes in (
        (settings.key_type, {one.key for one in caches}),
        (settings.value_type, {one.value for one in caches if one.value}),
    ):
        block = BLOCKS.get(value.get())
        if block is None or value.get() not in TYPE_BYTES:
            continue
        odd = sorted(size for size in sizes if size % block)
        message = (
            f"{value.get()} stores blocks of {block}: a head of {', '.join(map(str, odd))} is none"
        )
        yield Support(VALUE, not odd, value, message, ("use f16 or bf16",))


def slots(case: Case) -> Iterator[Support]:
    """More sequences than a context can have."""
    parallel = settings_of(case).parallel
    told = parallel.origin.kind == "written" and parallel.get() < MOST  # else it is not even read
    if build_of(case) >= SLOT_LIMIT and told:
        message = f"parallel {parallel.get()}: a context has {eras.MOST_SLOTS} sequences at most"
        yield Support(VALUE, parallel.get() <= eras.MOST_SLOTS, parallel, message)

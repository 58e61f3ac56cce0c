"""The one line that shows where a device's memory goes."""

from __future__ import annotations

from capcheck import GIB, Band, Case, Ledger, Terms
from capcheck.measure import show_bytes

SMALL = 0.05 * GIB


def gib(value: float) -> str:
    """Bytes as GiB with one decimal."""
    return f"{value / GIB:.1f}"


def band_words(left: Band) -> str:
    """ " (1.1 ... 1.8)"; empty when the figure is exact."""
    return "" if left.is_exact else f" ({gib(left.low)} … {gib(left.high)})"


def ledger_words(ledger: Ledger) -> str:
    """23.5 GiB x 0.90 - 15.0 weights - 4.7 sampler (1,024 sequences) - 0.1 other."""
    words = [ledger.budget_words or show_bytes(ledger.budget)]
    small = 0.0
    for line in ledger.lines:
        if not line.inside_budget:
            continue
        if abs(line.bytes) < SMALL or line.name == "other":
            small += line.bytes
            continue
        name = line.note if line.name == "activation" and line.note else line.name
        words.append(f"- {gib(line.bytes)} {name}")
    if abs(small) >= SMALL / 2:
        words.append(f"{'-' if small >= 0 else '+'} {gib(abs(small))} other")
    return " ".join(words)


def left_for_kv(case: Case, t: Terms) -> float:
    """Bytes left for the KV cache on the worst device."""
    return case.ledger(t).kv

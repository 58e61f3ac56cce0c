"""What an estimate is made of: parts that add up to it, what binds it, what limits the load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from capcheck.case import Case


class Share(NamedTuple):
    """One part of an estimate, in the estimate's unit."""

    name: str  # in the reader's words: "weights", "KV cache", "prompts of others"
    amount: float


class Account(NamedTuple):
    """An estimate taken apart. The parts add up to its middle before residual factors."""

    parts: tuple[Share, ...] = ()
    binding: str = ""  # what would have to grow: "memory bandwidth", "compute"
    limit: str = ""  # what keeps requests waiting: "kv cache", "max sequences"; "" nothing
    limit_words: str = ""  # the same as the reader knows it: "max_num_seqs admits 64"

    @property
    def total(self) -> float:
        """The sum of the parts."""
        return sum(part.amount for part in self.parts)


Accounting = Callable[["Case"], Account]


def account_of(case: Case, name: str) -> Account | None:
    """The account of an estimate, scaled so that its parts add up to the estimate's middle.

    None where no plugin takes it apart. Raises Unknown as the estimate does.
    """
    made = case.workshop.estimates.get(name)
    if made is None or made.account is None:
        return None
    found = made.account(case)
    total = found.total
    if total <= 0:
        return found
    factor = case.value(name, case.terms()) / total
    parts = tuple(Share(part.name, part.amount * factor) for part in found.parts)
    return found._replace(parts=parts)


def rounded(amounts: list[float], digits: int) -> list[float]:
    """Figures rounded so that they add up to their rounded sum: the largest remainders go up."""
    unit = 10.0**-digits
    whole = [int(amount / unit + 1e-9) for amount in amounts]
    missing = round(sum(amounts) / unit) - sum(whole)
    order = sorted(range(len(amounts)), key=lambda index: whole[index] - amounts[index] / unit)
    for index in order[: max(missing, 0)]:
        whole[index] += 1
    return [one * unit for one in whole]


def sum_words(parts: tuple[Share, ...]) -> str:
    """Seconds in parts: `31.2 ms = 14.0 weights + 6.1 KV cache + ...`, the largest first.

    Parts that round to nothing are left out; what is shown adds up.
    """
    total = sum(part.amount for part in parts)
    size, unit, digits = (1.0, "s", 2) if total >= 1.0 else (1e-3, "ms", 1)
    figures = rounded([part.amount / size for part in parts], digits)
    shown = [(figure, part.name) for figure, part in zip(figures, parts, strict=True) if figure]
    shown.sort(key=lambda pair: -pair[0])
    added = " + ".join(f"{figure:.{digits}f} {name}" for figure, name in shown)
    return f"{sum(figures):.{digits}f} {unit} = {added}" if added else f"0 {unit}"

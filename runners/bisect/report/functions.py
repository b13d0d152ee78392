"""The functions that changed in commits that a bisect names, each against the commit before it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from history.rendering.profiles import labelled

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential

MIN_CHANGE_SHARE = 0.001
"""Of the largest change of a function: counts of functions that change less than this are left out."""

FunctionRow = tuple[str, float, float, float]
"""A name, what it needs for a query before and after, and the change: instructions, or µs."""


def function_rows(both: "Differential", most: int) -> Iterator[FunctionRow]:
    """Yield a row of all that is profiled, then those of at most `most` functions, largest change first."""
    whole = "client backend" if both.base.is_exact else "whole server"
    yield whole, both.base_total, both.contender_total, both.contender_total - both.base_total
    largest = max((abs(function.own_change) for function in both.functions), default=0.0)
    for function in both.functions[:most]:
        if both.base.is_exact and abs(function.own_change) < MIN_CHANGE_SHARE * largest:
            break
        yield labelled(function), function.base.own, function.contender.own, function.own_change

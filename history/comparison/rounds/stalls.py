"""Stalls of more than a second, counted in the rounds that both versions finished, each with its cause."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from history.comparison.finding import Bearing, Finding
from history.counts import counted
from history.stats.distributions import binomial_tail
from suites.accounting.activity import CAUSES, Activity, causes_of

SOURCE = "stalls"

MAX_CHANCE = 0.25
"""The probability of so unequal numbers, of stalls that come by chance, up to which they are told: one stall
against none says nothing."""

Runs = Mapping[tuple[str, str, int], int]
"""The ids of finished runs by step, version and round."""


def stalls(
    found: Mapping[int, Sequence[Activity]], runs: Runs, versions: tuple[str, str]
) -> Iterator[Finding]:
    """Yield the stalls of the steps in which base and contender, the `versions`, have not about equally many.

    `found` is what went on in runs, by id. The finding is only told: seconds with slow transactions, of which
    a stall is some, are judged by their counts.
    """
    base, contender = versions
    for step in dict.fromkeys(step for step, _, _ in runs):
        both = [
            number
            for name, version, number in runs
            if (name, version) == (step, contender) and (step, base, number) in runs
        ]
        old, new = (
            [cause for number in both for cause in causes_of(found.get(runs[step, version, number], ()))]
            for version in versions
        )
        if binomial_tail(max(len(old), len(new)), min(len(old), len(new)), 0.5) > MAX_CHANCE:
            continue
        text = f"{counted(len(new), 'stall')} of over a second, base {len(old)}"
        yield Finding(SOURCE, step, "", Bearing.TOLD, f"{text}: {_causes(new or old)}")


def _causes(causes: Sequence[str]) -> str:
    """Return how many stalls have which cause: `2 during a checkpoint, 1 unexplained`."""
    numbers = Counter(causes)
    told = [f"{numbers[name]} {words}" for name, words in CAUSES.items() if numbers[name]]
    return ", ".join([*told, f"{numbers['']} unexplained"] if numbers[""] else told)

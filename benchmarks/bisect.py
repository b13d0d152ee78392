"""How often a search names the right commit, and in what machine time, beside plain bisect.

`$TIDEMARK_BENCH_PARTS` chooses parts: `simulated` (one culprit, or none), `beyond` (commits that do not
compile, other noise, two steps, slopes) and `planted` (a git history of Postgres, on real builds). Without it
all of these run, but not `larger`: one among 251 commits, with builds that are not in the cache yet.
"""

import os
from collections.abc import Callable, Iterable, Mapping

from benchmarks.figures import Figure, report
from benchmarks.planted_bisect import larger_figures, planted_figures
from benchmarks.simulation.simulated_bisect import beyond_figures, simulated_figures
from build.errors import TidemarkError

PARTS: Mapping[str, Callable[[], Iterable[Figure]]] = {
    "simulated": simulated_figures,
    "beyond": beyond_figures,
    "planted": planted_figures,
    "larger": larger_figures,
}
"""Figures of each part, beside their targets."""

USUAL = "simulated beyond planted"
"""The parts that run without `$TIDEMARK_BENCH_PARTS`."""


def main() -> int:
    """Print the figures beside their targets; 0 when all are met, else 1."""
    asked = os.environ.get("TIDEMARK_BENCH_PARTS", USUAL).split()
    if unknown := [each for each in asked if each not in PARTS]:
        raise TidemarkError(
            f"bench bisect has no part '{unknown[0]}'", hint="there are: " + ", ".join(sorted(PARTS))
        )
    return report([figure for each in asked for figure in PARTS[each]()])

"""Accuracy and machine time of the search for a commit, compared with plain bisect.

`$TIDEMARK_BENCH_PARTS` selects parts: `simulated` (one culprit, or none), `beyond` (commits that do not
compile, other noise, two steps, slopes), `steps` (dips that are fixed, reverted improvements, several
culprits), `varying` (levels that no steps explain), `planted` (a git history of Postgres with real builds)
and `larger` (251 commits, with builds that are not in the cache), `counted`, `compiles` and `guided` (by
counts, see benchmarks/counting/exact_bisect.py). The default is the first five.
"""

from collections.abc import Callable, Iterable, Mapping

from benchmarks.counting import exact_bisect
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.planted_bisect import larger_figures, planted_figures
from benchmarks.simulation.bisects.simulated_bisect import beyond_figures, simulated_figures
from benchmarks.simulation.bisects.stepped_ranges import stepped_figures
from benchmarks.simulation.bisects.varying_ranges import varying_figures

PARTS: Mapping[str, Callable[[], Iterable[Figure]]] = {
    "simulated": simulated_figures,
    "beyond": beyond_figures,
    "steps": stepped_figures,
    "varying": varying_figures,
    "planted": planted_figures,
    "larger": larger_figures,
    **exact_bisect.PARTS,
}
"""Part -> function that returns its figures with their targets."""

DEFAULT_PARTS = ("simulated", "beyond", "steps", "varying", "planted")
"""The parts that run without `$TIDEMARK_BENCH_PARTS`."""


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    default = [part for part in PARTS if part in DEFAULT_PARTS]
    parts = chosen_parts("bisect", default, [part for part in PARTS if part not in default])
    return report([figure for part in parts for figure in PARTS[part]()])

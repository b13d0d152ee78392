"""Error rates of verdicts, the slow-downs that they detect, and the number of rounds they need.

There are simulations with noise of 2 %, and sessions on real servers, which take about an hour.
`$TIDEMARK_BENCH_PARTS` selects parts: simulated, equal, widths (with equal), planted. With `equal`, `record`
writes the rounds to benchmarks/simulation/noise.json, for the simulation.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.real_verdicts import bench_of, equal_figures, planted_figures
from benchmarks.simulation.simulated_verdicts import simulated_figures
from benchmarks.simulation.unkind_rounds import RECORDING
from build.home import locate
from runners.console import Lines

PARTS = ("simulated", "equal", "widths", "planted")


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    parts = chosen_parts("verdicts", PARTS, modifiers=("widths", "record"))
    figures: list[Figure] = []
    if {"equal", "planted"} & set(parts):
        figures += _real_figures(parts)
    if "simulated" in parts:
        figures += simulated_figures()
    return report(figures)


def _real_figures(parts: Sequence[str]) -> list[Figure]:
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.path) as folder:
        Path(folder).chmod(0o755)  # the user of the servers needs access to the build in it
        bench = bench_of(home, Lines(), Path(folder))
        if "equal" in parts:
            record = RECORDING if "record" in parts else None
            figures += equal_figures(bench, record, widths="widths" in parts)
        if "planted" in parts:
            figures += planted_figures(bench)
    return figures

"""The variation of rounds on this machine by the length of slices, comparing one build with itself.

The figures have no targets: they help to choose `slice_seconds` of a profile, as in decision 16.
"""

import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.output.figures import Figure
from benchmarks.real_builds.real_verdicts import BASE, PROFILE, TWIN, Bench, bench_of
from build.home import locate
from build.provide import provide
from build.request import BuildRequest
from runners.console import Lines

STEPS = ("update-index", "insert")
LENGTHS = (0.02, 0.05, 0.1, 0.5)
"""Lengths of slices in seconds."""
ROUNDS = 8


def length_figures() -> Iterator[Figure]:
    """Run one session per length, which takes about 15 minutes in total."""
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.path) as folder:
        bench = bench_of(home, Lines(), Path(folder))
        for length in LENGTHS:
            yield from _of_length(bench, length)


def _of_length(bench: Bench, seconds: float) -> list[Figure]:
    """Return the standard deviation of the log ratios of rounds in percent, per step."""
    profile = bench.suite.profile(PROFILE).model_copy(update={"slice_seconds": seconds})
    suite = bench.suite.model_copy(update={"profiles": {PROFILE: profile}})
    there = replace(bench, suite=suite)
    build = provide(BuildRequest(BASE), bench.home, bench.progress)
    uid = there.session(STEPS, TWIN, build, repetitions=ROUNDS)
    figures = []
    for step, logs in there.log_ratios(there.compared(uid, TWIN), TWIN).items():
        spread = 100 * statistics.stdev(logs)
        note = " ".join(f"{100 * log_ratio:+.1f}" for log_ratio in logs)
        figures.append(Figure(f"slices of {seconds:g} s, {step}: spread of rounds", spread, "%", note=note))
    return figures

"""The rivals' false changes, delays and F1 scores, at their defaults and tuned to Tidemark's false rate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rivals.scores import (
    Delay,
    Reports,
    Score,
    delay_of,
    false_share,
    finished_score,
    nightly_score,
)
from benchmarks.rivals.tools import RivalJob, answers, rows_of
from benchmarks.simulation.detection_series import CENSORED, KINDS, Stepped

MAX_FALSE = 2.0
"""Percent of quiet series-years that a rival's parameter may leave with a change."""

FIRST_LOOK = 10
"""Nights of a series before the first nightly look."""


@dataclass(frozen=True)
class Rival:
    """A tool with parameters: of looks at finished series and of nightly looks, for each kind of series.

    None where no parameter that was tried keeps the false rate.
    """

    name: str
    tool: str
    finished: Mapping[str, float | None]
    nightly: Mapping[str, float | None]
    tuned: bool
    quiet: int
    """Series without a step that it is asked about every night, and series with one step of each size."""

    stepped: int
    """Series with several steps that it is asked about every night."""


FINISHED_SERIES = 100
"""Series of each kind for looks at finished ones; of Potts 20."""


def _default(name: str, tool: str, parameter: float, quiet: int, stepped: int) -> Rival:
    everywhere = dict.fromkeys(KINDS, parameter)
    return Rival(f"{name}, default", tool, everywhere, everywhere, False, quiet, stepped)


def _tuned(
    name: str,
    tool: str,
    finished: Sequence[float | None],
    nightly: Sequence[float | None],
    quiet: int,
    stepped: int,
) -> Rival:
    whole = dict(zip(KINDS, finished, strict=True))
    every_night = dict(zip(KINDS, nightly, strict=True))
    return Rival(f"{name}, tuned", tool, whole, every_night, True, quiet, stepped)


RIVALS = (
    _default("Otava", "otava", 0.001, 16, 6),
    _default("KernelCPD linear", "kernel-linear", 2, 40, 16),
    _default("KernelCPD rbf", "kernel-rbf", 1, 16, 6),
    _default("asv Potts", "potts", 4, 2, 1),
    _tuned("Otava", "otava", (1e-4, None, 1e-7, 1e-6, 1e-10), (1e-6, None, 1e-8, 1e-7, 1e-18), 16, 6),
    _tuned("KernelCPD linear", "kernel-linear", (3, 45, 11, 15, 15), (8, None, 20, 15, None), 40, 16),
    _tuned("KernelCPD rbf", "kernel-rbf", (0.7, 0.6, 1.25, 2.5, 0.7), (1.25, 1.25, 2, 2.5, 1.25), 16, 6),
    _tuned("asv Potts", "potts", (4, 4, 4, 6, 4), (4, 6, 6, 6, 6), 2, 1),
)
"""Default: p of 0.001; 2 variances * log(n), Schwarz's; log(n) for the bounded kernel; beta of 4 log(n)/n.

Tuned: the first of a row of ever stricter parameters that left at most MAX_FALSE percent of a kind's quiet
series with a change, on seeds (900, kind), which no figure uses; of 200 finished series (Potts 40), and of 50
watched nightly (Otava, and KernelCPD rbf in the last two kinds, 30; Potts, in the first two only, 12).
"""


@dataclass(frozen=True)
class RivalScore:
    """What a rival did on one kind of series; None where it has no parameter that keeps the false rate.

    The nightly false rate of a tuned one is that of its tuning, and None here.
    """

    false_finished: float | None
    false_nightly: float | None
    finished: Score | None
    nightly: Score | None
    delays: Mapping[float, Delay] | None


@dataclass(frozen=True)
class Series:
    """The series of one kind that all tools get; rivals take the first of them."""

    quiet: list[list[float | None]]
    one_step: Mapping[float, Stepped]
    several: Stepped


def rivals_found(python: Path, kinds: Mapping[str, Series]) -> dict[tuple[str, str], RivalScore]:
    """What each of RIVALS did on each kind: rival's name and kind -> what was found."""
    jobs = {
        (rival.name, kind, *what): job
        for rival in RIVALS
        for kind, series in kinds.items()
        for what, job in _jobs(rival, kind, series).items()
    }
    said = dict(zip(jobs, answers(python, list(jobs.values())), strict=True))
    return {
        (rival.name, kind): _found(rival.name, kind, series, said)
        for rival in RIVALS
        for kind, series in kinds.items()
    }


def _jobs(rival: Rival, kind: str, series: Series) -> dict[tuple[str, float], RivalJob]:
    jobs = {}
    finished, nightly = rival.finished[kind], rival.nightly[kind]
    if finished is not None:
        whole = finished_series(rival)
        jobs["quiet", 0.0] = RivalJob(rival.tool, finished, series.quiet[:whole])
        jobs["several", 0.0] = RivalJob(rival.tool, finished, rows_of(series.several.values[:whole]))
    if nightly is not None:
        if not rival.tuned:  # what is tuned had its quiet years when it was tuned: they cost the most
            watched, start = series.quiet[: rival.quiet], [FIRST_LOOK] * rival.quiet
            jobs["quiet nightly", 0.0] = RivalJob(rival.tool, nightly, watched, start, stop_early=True)
        stepped = rows_of(series.several.values[: rival.stepped])
        jobs["several nightly", 0.0] = RivalJob(rival.tool, nightly, stepped, [FIRST_LOOK] * rival.stepped)
        for size, planted_step in series.one_step.items():
            steps = [step for (step,) in planted_step.steps[: rival.quiet]]
            cut = [
                row[: step + CENSORED]
                for row, step in zip(rows_of(planted_step.values[: rival.quiet]), steps, strict=True)
            ]
            jobs["one", size] = RivalJob(rival.tool, nightly, cut, steps, stop_early=True)
    return jobs


def finished_series(rival: Rival) -> int:
    """Series of each kind whose finished form the rival is asked about."""
    return FINISHED_SERIES if rival.tool != "potts" else 20


def _found(
    name: str, kind: str, series: Series, said: Mapping[tuple[str, str, str, float], Reports]
) -> RivalScore:
    def reports(what: str, size: float = 0.0) -> Reports | None:
        return said.get((name, kind, what, size))

    quiet, watched = reports("quiet"), reports("quiet nightly")
    several, nightly = reports("several"), reports("several nightly")
    steps = series.several.steps
    delays = {}
    for size, planted_step in series.one_step.items():
        alerts = reports("one", size)
        if alerts is not None:
            delays[size] = delay_of(planted_step.steps[: len(alerts)], alerts)
    return RivalScore(
        None if quiet is None else false_share(quiet),
        None if watched is None else false_share(watched),
        None if several is None else finished_score(steps[: len(several)], several),
        None if nightly is None else nightly_score(steps[: len(nightly)], nightly),
        delays or None,
    )

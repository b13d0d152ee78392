"""Change point detection: false changes, delays and speed.

The series are a year long, with noise of 2 % and steps of 0.75 to 5 standard deviations
(simulation/detection_series.py). The search is applied to finished series, and every night to the nights so
far. Years of noise that changes or has odd tails (simulation/odd_noise.py) are only watched night by night.
`$TIDEMARK_BENCH_PARTS` selects parts: own, odd, scale (teams of up to 3,000 series whose
suspects are confirmed, simulation/many_series.py), speed, finished (short and drifting ones,
simulation/finished_series.py), and `$TIDEMARK_BENCH_KINDS`, a pattern, the kinds of odd and causes by their
names. These parts run only when they are named: shares, false changes at smaller shares; unpromised, those of
kinds beyond the promise; causes, what moves most series of a box in histories that are judged
(simulation/boxes/shared_causes.py); choose, which chooses the numbers of the search anew
(tuning/parameter_search.py). Seeds are fixed: (kind, 0) without steps, (kind, 1, 100 * size) with one,
(kind, 2) with several, where kind is the index of the kind; those of the other parts begin as
parameters.toml of history/stats/change_points says.
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.simulation.boxes.shared_causes import cause_figures
from benchmarks.simulation.detection_series import (
    KINDS,
    NIGHTS,
    OTHER_KINDS,
    UNPROMISED,
    Array,
    Kind,
    Stepped,
    one_step,
    several_steps,
)
from benchmarks.simulation.finished_series import finished_figures
from benchmarks.simulation.many_series import (
    BOX_SERIES,
    confirmed_share,
    delays,
    false_suspects,
    sizes,
)
from benchmarks.simulation.odd_noise import BOX, NOT_TUNED_ON, SHARED, TUNED_ON
from benchmarks.simulation.scores import (
    Delay,
    Reports,
    delay_of,
    false_share,
    finished_score,
    nightly_score,
)
from benchmarks.tuning.parameter_search import JUDGED_SHARE, SIZES, choose_figures
from history.stats.change_points import (
    FALSE_SHARE,
    ChangePoint,
    SeriesWatch,
    find_changes_many,
    shared_moves,
    watch_many,
)
from history.stats.change_points.parameters import SEEDS

PARTS = ("own", "odd", "scale", "speed", "finished")

QUIET_SERIES = 5_000
"""Series without a step per kind: the standard error of a rate of 2 % is 0.2 %."""

STEPPED_SERIES = 2_000
SEVERAL_SERIES = 500

MAX_FALSE = 2.0
RUN_LENGTH = 50 * NIGHTS
"""Mean number of nights between false changes, for which the bound is computed."""

MAX_FALSE_ODD = 3.0
"""Percent of years of odd noise in which a change may be raised with JUDGED_SHARE."""

SHARES = (FALSE_SHARE, 0.005, 0.001)
"""What callers may ask the watch for: the share of quiet years in which anything may be raised."""

SHARES_SERIES = 20_000
"""Quiet years of each kind at each of the SHARES."""

SHARES_OF_BOUND = {"gaussian": 1.3, "t3": 1.6}

SCALES = (40, 300, 1000, 3000)
"""Series of one box, which share its false suspects."""

SCALE_SERIES = 600
SCALE_LIMITS = {2.0: 12.0, 3.0: 6.0}
"""Nights within which a step of so many standard deviations is to be confirmed, on average."""

LATER = (0, 10)
"""Nights after the one that raised a step, in which its size is looked at."""

TEAM = 3000
MAX_FALSE_ISSUES = 1.0
CONFIRMING_SESSIONS = 100_000
LASTING = 7
"""Nights after which a regression of 3 sigma is fixed."""

MIN_SPEED = 1.0
"""Target in million nights per second."""

MAX_MILLISECONDS = 0.2
LONG_SERIES = 1_000
TAKEN = 500


@dataclass(frozen=True)
class Series:
    """The series of one kind that have steps."""

    one_step: Mapping[float, Stepped]
    several: Stepped


@dataclass(frozen=True)
class Own:
    """Tidemark's results for one kind; delays by size, and reports for series with several steps."""

    false_finished: float
    false_nightly: float
    delays: Mapping[float, Delay]
    finished: Reports
    nightly: Reports


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    parts = chosen_parts("detection", PARTS, ("shares", "unpromised", "causes", "choose"))
    alone: Mapping[str, Callable[[], Iterator[Figure]]] = {
        "speed": speed_figures,
        "finished": finished_figures,
        "odd": odd_figures,
        "scale": scale_figures,
        "shares": share_figures,
        "unpromised": unpromised_figures,
        "choose": choose_figures,
        "causes": lambda: cause_figures(os.environ.get("TIDEMARK_BENCH_KINDS", "")),
    }
    figures = [figure for part, shown in alone.items() if part in parts for figure in shown()]
    if "own" in parts:
        for seed, (name, kind) in enumerate((KINDS | OTHER_KINDS).items()):
            print(f"{name}: {QUIET_SERIES} quiet series-years", flush=True)
            quiet = kind(np.random.default_rng((seed, 0)), (QUIET_SERIES, NIGHTS))
            series = _series(kind, seed)
            figures += own_figures(name, own_found(quiet, series), series, promised=name in KINDS)
    return report(figures)


def bound(size: float) -> float:
    """Return the lower bound of nights to detect a step of `size` standard deviations (Lorden 1971)."""
    return 2 * math.log(RUN_LENGTH) / size**2


def _series(kind: Kind, seed: int) -> Series:
    steps = {size: one_step(kind, (seed, 1, round(100 * size)), STEPPED_SERIES, size) for size in SIZES}
    return Series(steps, several_steps(kind, (seed, 2), SEVERAL_SERIES))


def own_found(quiet: Array, series: Series) -> Own:
    """Return the results of find_changes and of the nightly watch for the series of one kind."""
    several = series.several.values
    return Own(
        false_share(_finished(quiet)),
        false_share(_nightly(quiet)),
        {
            size: delay_of(stepped.steps, _nightly(stepped.values))
            for size, stepped in series.one_step.items()
        },
        _finished(several),
        _nightly(several),
    )


def _finished(values: Array) -> Reports:
    return [[(change.index, NIGHTS - 1) for change in changes] for changes in find_changes_many(values)]


def _nightly(values: Array, share: float = FALSE_SHARE) -> Reports:
    return [[_alert(change) for change in changes] for changes in watch_many(values, share)]


def _alert(change: ChangePoint) -> tuple[int, int]:
    if change.raised is None:
        raise AssertionError("the watch says when")
    return change.index, change.raised


def own_figures(name: str, own: Own, series: Series, promised: bool) -> Iterator[Figure]:
    """Yield false changes, delays and F1 of one kind, with targets if the kind is `promised`."""
    most = MAX_FALSE if promised else None
    yield Figure(f"{name}: false, nightly", own.false_nightly, "% of years", at_most=most)
    yield Figure(f"{name}: false, finished", own.false_finished, "% of years", at_most=most)
    for size, delay in own.delays.items():
        factor = SHARES_OF_BOUND.get(name)
        note = f"{delay.mean / bound(size):.2f} of the bound; median {delay.median:g}, "
        note += f"{delay.timely:.1f} % in time, {delay.series} series"
        limit = None if factor is None else factor * bound(size)
        yield Figure(f"{name}: delay of {size:g} sigma", delay.mean, "nights", at_most=limit, note=note)
    steps = series.several.steps
    yield Figure(f"{name}: F1, finished", finished_score(steps, own.finished).f1, "")
    yield Figure(f"{name}: F1, nightly", nightly_score(steps, own.nightly).f1, "")


def odd_figures() -> Iterator[Figure]:
    """Yield how many years of changing or odd noise have a change, at the judge's own setting.

    And what that setting costs: how late steps in steady noise are seen with it.
    """
    wanted = os.environ.get("TIDEMARK_BENCH_KINDS", "")
    for seed, (name, kind) in enumerate({**TUNED_ON, **NOT_TUNED_ON, **SHARED}.items()):
        if not re.search(wanted, name):
            continue
        values = kind(np.random.default_rng((SEEDS["odd"], seed)), (QUIET_SERIES, NIGHTS))
        if name in SHARED:
            for box in range(0, QUIET_SERIES, BOX):
                values[box : box + BOX, shared_moves(values[box : box + BOX]) != 0] = np.nan
        share = 100 * float(np.mean([bool(changes) for changes in watch_many(values, JUDGED_SHARE)]))
        note = "" if name in TUNED_ON else "not tuned on"
        yield Figure(f"{name}: false, nightly", share, "% of years", at_most=MAX_FALSE_ODD, note=note)
    for size in SIZES if re.search(wanted, "gaussian") else ():
        stepped = one_step(KINDS["gaussian"], (0, 1, round(100 * size)), STEPPED_SERIES, size)
        delay = delay_of(stepped.steps, _nightly(stepped.values, JUDGED_SHARE)).mean
        yield Figure(f"gaussian: delay of {size:g} sigma, as judged", delay, "nights")


def scale_figures() -> Iterator[Figure]:
    """Yield how late steps are confirmed in teams of 40 to 3,000 series, and how many false issues a year."""
    kinds = {"gaussian": KINDS["gaussian"], "t3": KINDS["t3"], "AR(1)": KINDS["AR(1)"], **OTHER_KINDS}
    wrong = confirmed_share(0.0, (SEEDS["scale"], 0), CONFIRMING_SESSIONS)
    for seed, (name, kind) in enumerate(kinds.items()):
        note = "not tuned on" if name in OTHER_KINDS else ""
        for series in SCALES:
            for size, limit in SCALE_LIMITS.items():
                nights = delays(kind, (SEEDS["scale"], seed, round(100 * size)), SCALE_SERIES, size, series)
                at_most = limit if name == "gaussian" else None
                title = f"{name}: {size:g} sigma, {series} series, confirmed"
                yield Figure(title, float(nights.mean()), "nights", at_most=at_most, note=note)
        for size, share, later in product(SCALE_LIMITS, (JUDGED_SHARE, 0.5 / TEAM), LATER):
            seeds = (SEEDS["scale"], seed, round(100 * size), 3)
            ratio, held = sizes(kind, seeds, SCALE_SERIES, size, share, later)
            title = f"{name}: {size:g} sigma, share {share:.2g}, {later} nights after it was raised"
            yield Figure(f"{title}: size", ratio, "of the truth", note=note)
            yield Figure(f"{title}: interval holds", 100 * held, "%", note=note)
        seen = delays(kind, (SEEDS["scale"], seed, 7), SCALE_SERIES, 3.0, BOX_SERIES, LASTING) <= LASTING
        yield Figure(f"{name}: 3 sigma for {LASTING} nights, confirmed", 100 * float(seen.mean()), "%")
        a_night = false_suspects(kind, (SEEDS["scale"], seed, 0), SCALE_SERIES, BOX_SERIES)
        yield Figure(f"{name}: suspects of a quiet night of a box", a_night, "", note=note)
        quiet = kind(np.random.default_rng((SEEDS["scale"], seed, 1)), (SHARES_SERIES, NIGHTS))
        raised = float(np.mean([bool(changes) for changes in watch_many(quiet, 0.5 / TEAM)]))
        issues = a_night * TEAM / BOX_SERIES * NIGHTS * wrong + raised * TEAM
        note = f"{wrong:.2g} of sessions, {raised * TEAM:.2g} by nights alone; {note}".rstrip("; ")
        most = MAX_FALSE_ISSUES if name in KINDS else None
        yield Figure(f"{name}: false issues a year of {TEAM}", issues, "", at_most=most, note=note)


def share_figures() -> Iterator[Figure]:
    """Yield how many quiet years have a change, for each share that a caller may ask for."""
    for seed, (name, kind) in enumerate(KINDS.items()):
        values = kind(np.random.default_rng((SEEDS["shares"], seed)), (SHARES_SERIES, NIGHTS))
        for asked in SHARES:
            share = 100 * float(np.mean([bool(changes) for changes in watch_many(values, asked)]))
            yield Figure(f"{name}: false, nightly, at {asked:g}", share, "% of years", at_most=100 * asked)


def unpromised_figures() -> Iterator[Figure]:
    """Yield how many quiet years have a change, nightly and finished, in kinds beyond the promise."""
    for seed, (name, kind) in enumerate(UNPROMISED.items()):
        quiet = kind(np.random.default_rng((SEEDS["unpromised"], seed)), (QUIET_SERIES, NIGHTS))
        yield Figure(f"{name}: false, nightly", false_share(_nightly(quiet)), "% of years")
        yield Figure(f"{name}: false, finished", false_share(_finished(quiet)), "% of years")


def speed_figures() -> Iterator[Figure]:
    """Yield the nights per second over many series, and the milliseconds for one more night of a long one."""
    rng = np.random.default_rng(1000)
    values = KINDS["gaussian"](rng, (QUIET_SERIES, NIGHTS))
    values[:, NIGHTS // 2 :] += 0.05  # so that there are changes to describe
    for name, look in (("finished series", find_changes_many), ("nightly watch", watch_many)):
        start = time.perf_counter()
        look(values)
        speed = values.size / (time.perf_counter() - start) / 1e6
        note = f"{QUIET_SERIES} series of {NIGHTS} nights with a step"
        yield Figure(f"speed: {name}", speed, "million nights/s", at_least=MIN_SPEED, note=note)
    watch = SeriesWatch()
    nights = KINDS["gaussian"](rng, (1, LONG_SERIES + TAKEN))[0]
    for value in nights[:LONG_SERIES]:
        watch.take(value)
    start = time.perf_counter()
    for value in nights[LONG_SERIES:]:
        watch.take(value)
    milliseconds = 1e3 * (time.perf_counter() - start) / TAKEN
    note = f"after {LONG_SERIES} nights"
    yield Figure("speed: one more night", milliseconds, "ms", at_most=MAX_MILLISECONDS, note=note)

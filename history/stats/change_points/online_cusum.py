"""Watching series night by night: a change is raised as soon as its evidence suffices, without hindsight.

For each of some sizes of step up and down a cumulative sum of log-likelihood ratios (CUSUM: Page, Biometrika
41, 1954; for several sizes Lorden, Annals of Mathematical Statistics 42, 1971) says how much likelier the
latest nights are with such a step than without, in nats. Noise is Student's t with the tails, scale and AR(1)
that the series has shown. docs/detection.md has the whole method, and what it promises.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.baseline import FIRST_NIGHTS, NEAR, Baseline
from history.stats.change_points.change_point import ChangePoint
from history.stats.change_points.localization import located
from history.stats.change_points.parameters import WATCH, WatchParameters
from history.stats.change_points.tails import MAX_DEGREES
from history.stats.distributions import student_quantile, student_tail

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGER = (1.4, 2.0)
"""Factors by which the noise may have grown."""

GROWN_WITHIN = 64
"""Latest nights at one of which it may have grown, each as probable as the others."""

LONGEST = 32
"""Latest nights at one of which the step may have been. A step that took longer is left to the usual rule."""

OWN_LONGEST = 12
"""The same for the series' own tails: they decide about the few nights that are far away, not about many."""

MIN_OWN = 0.5
"""Scales from the level up to which a night counts as what it is, whatever the tails."""

MAX_OWN = 30.0
"""Scales from which on a night counts as so far: the tail beyond is too small a number to divide by."""


@dataclass(frozen=True)
class BaselineNoise:
    """The noise of some series as their baseline has it, all [series]; `nights` are those of the level."""

    scale: Array
    degrees: Array
    strongest: Array
    correlation: Array
    innovation: Array
    deviation: Array
    nights: Array

    def of(self, some: Mask) -> "BaselineNoise":
        """Return that of some of the series."""
        return BaselineNoise(*(var[some] for var in vars(self).values()))


@dataclass(frozen=True)
class WatchedSteps:
    """The steps that are watched for in the direction in which a change is about to be raised."""

    sizes: Array
    """In standard deviations, ascending, [sizes]; the largest stands for larger ones, too."""

    parameters: WatchParameters
    """What is asked of them; its handicaps are [sizes]."""


def still_steps(
    residuals: Array,
    runs: Array,
    asked: Array,
    noise: BaselineNoise,
    steps: WatchedSteps,
    stricter: tuple[float, float],
) -> Mask:
    """Return which series have a step that neither larger noise nor their own tails explain, [series].

    `residuals` [nights, series] are the latest nights less the present level, the last one first, nan for a
    gap, positive in the direction of the step. `runs` [series] are the nights that the step seems to have
    lasted, `asked` [sizes, series] the nats that each size of step has to bring. Beyond what
    the parameters ask for they are asked for `stricter` nats: the first of every step, the second of one of
    two nights, less of longer ones.
    """
    parameters = steps.parameters
    there = np.isfinite(residuals)
    relative = np.where(there, residuals / noise.scale, 0.0)
    nights = relative.copy()
    nights[:-1] -= noise.correlation * np.clip(relative[1:], -NEAR, NEAR)
    nights = np.where(there, nights / noise.innovation, 0.0)
    held = _more_likely_than_larger_noise(nights, there, noise, steps, stricter)
    held |= runs > LONGEST
    some = held & (runs <= OWN_LONGEST)
    if some.any():
        own = _by_own_tails(relative[:, some], there[:, some], runs[some], noise.of(some), parameters)
        nights = nights[: len(own), some] * own
        ahead = _evidence(nights, there[:, some], noise.of(some), steps) - asked[:, None, some]
        held[some] = _most(ahead, there[:, some]) >= -parameters.own_margin
    return held


def _more_likely_than_larger_noise(
    nights: Array, there: Mask, noise: BaselineNoise, steps: WatchedSteps, stricter: tuple[float, float]
) -> Mask:
    parameters = steps.parameters
    nights, there = nights[:GROWN_WITHIN], there[:GROWN_WITHIN]
    usual = np.log(noise.degrees + nights * nights)
    grown, stepped = [], []
    for factor in LARGER:
        scaled = nights / factor
        ratio = (noise.degrees + 1) / 2 * (usual - np.log(noise.degrees + scaled * scaled))
        ratio = np.clip(ratio - math.log(factor), -noise.strongest, noise.strongest) * there
        since = np.cumsum(ratio, axis=0)
        # From each night on, or any before it: rows are the step's first night.
        since = np.logaddexp.accumulate(since[::-1], axis=0)[::-1][:LONGEST]
        grown.append(since)
        stepped.append(_evidence(scaled[:LONGEST], there, noise, steps) + since)
    step = np.logaddexp(
        _evidence(nights[:LONGEST], there, noise, steps),
        np.logaddexp.reduce(stepped) + math.log(parameters.step_in_larger),
    )
    longer = np.minimum(np.cumsum(there[:LONGEST], axis=0) - 2, parameters.over_nights)
    always, short = stricter
    over = parameters.over_larger + always + parameters.over_each * longer
    over = over + short * (1 - parameters.short_fades * longer / parameters.over_nights)
    ahead = step - np.logaddexp.reduce(grown) - np.array(parameters.handicaps)[:, None, None] - over
    return np.asarray(_most(ahead, there) >= 0)


def _by_own_tails(
    relative: Array, there: Mask, runs: Array, noise: BaselineNoise, parameters: WatchParameters
) -> Array:
    """Return by what to multiply the latest nights so that they are as far away as they are rare.

    [nights, series]; the nights before those of the step tell how rare.
    """
    past = np.where(there & (np.arange(len(relative))[:, None] >= runs), relative, -np.inf)
    known, prior = np.isfinite(past).sum(axis=0), parameters.own_prior
    factors = np.ones((min(OWN_LONGEST, len(relative)), relative.shape[1]))
    for night, factor in zip(relative, factors, strict=False):
        seen = (past >= night - parameters.own_width).sum(axis=0)
        for series in np.flatnonzero(night > MIN_OWN):
            far, degrees = min(float(night[series]), MAX_OWN), float(noise.degrees[series])
            expected = student_tail(far - parameters.own_width, degrees)
            share = (seen[series] + prior * expected) / ((known[series] + prior) * expected)
            tail = min(float(share) * student_tail(far, degrees), 0.5)
            factor[series] = -student_quantile(degrees, tail) / night[series]
    return factors


def _evidence(nights: Array, there: Mask, noise: BaselineNoise, steps: WatchedSteps) -> Array:
    """Log-likelihood ratio of each step from each of the `nights` on, over none, [sizes, nights, series]."""
    there = there[: len(nights)]
    unit = steps.sizes[:, None, None] * noise.deviation / noise.innovation
    going_on = _ratio(nights, unit * (1 - noise.correlation), noise) * there
    evidence = np.cumsum(going_on, axis=1) - going_on + _ratio(nights, unit, noise)
    return evidence / (1 + np.cumsum(there, axis=0) / noise.nights)


def _ratio(nights: Array, step: Array, noise: BaselineNoise) -> Array:
    left = nights - step
    np.minimum(left[-1], 0.0, out=left[-1])
    ratio = np.log(noise.degrees + nights * nights) - np.log(noise.degrees + left * left)
    return np.asarray(np.clip((noise.degrees + 1) / 2 * ratio, -noise.strongest, noise.strongest))


def _most(ahead: Array, there: Mask) -> Array:
    """Return the most of any size over any two nights or more, [series]."""
    there = there[: ahead.shape[1]]
    able = there & (np.cumsum(there, axis=0) > 1)
    return np.asarray(np.where(able, ahead, -np.inf).max(axis=(0, 1)))


Columns = NDArray[np.int64]

MIN_NIGHTS = 24
"""Nights of a series, without gaps, that its noise has to rest on before anything can be claimed."""

STEP_SIZES = (1.3, 1.9, 2.5, 3.2, 4.5)
"""Steps that are watched for, in standard deviations of the noise."""

FALSE_SHARE = 0.02
"""Of quiet series-years in which something is raised, at most: what the threshold was chosen for."""

MIN_RAISING = 2
"""Nights with the new level that it takes to raise a change, so that a single outlier never does."""

KNOWN_LEVEL_NIGHTS = 2
"""That a level counts which was not found in nights: they may lie a little off it, and soon say where."""

REFRESHED = 4
"""Nights after which scale, tails, correlation and trend are worked out anew."""

MEMORY = 365
"""Latest nights that are kept."""

RAISED_WITHIN = 64
"""Latest nights at one of which a change that is raised may have been."""

BLOCK = 2048
"""Series that are watched at once: their arrays fit into the processor's cache."""

_NONE = -1e9
_UP, _DOWN = len(STEP_SIZES) - 1, 2 * len(STEP_SIZES) - 1
"""Rows of the largest step up and down."""


class Watchers:
    """Some series watched together; rows of arrays are step sizes or nights, columns are series.

    In at most `false_share` of quiet series-years something is raised: more than 0, up to FALSE_SHARE.
    """

    def __init__(
        self, series: int, false_share: float = FALSE_SHARE, parameters: WatchParameters = WATCH
    ) -> None:
        if not 0 < false_share <= FALSE_SHARE:
            raise ValueError(f"false_share has to be above 0 and at most {FALSE_SHARE}, not {false_share}")
        self._false_share = false_share
        self._parameters = parameters
        self._baseline = Baseline(series, parameters)
        self._latest = np.full((MEMORY, series), np.nan)
        self._night = -1
        self._seen = np.zeros(series, dtype=np.int64)
        self._since = np.zeros(series, dtype=np.int64)
        """First night of the present level's segment."""
        self._next = np.full(series, np.iinfo(np.int64).max)
        """First night that the baseline has yet to learn from."""
        self._before = np.zeros(series)
        """The night before, as a residual."""
        self._every = np.arange(series)
        self._steps = np.array([*STEP_SIZES, *(-size for size in STEP_SIZES)])[:, None]
        self._handicap = np.tile(parameters.handicaps, 2)[:, None]
        self._asked = np.zeros((len(self._steps), series))
        """Nats that each size has to bring to raise a change."""
        self._evidence = np.full((len(self._steps), series), _NONE)
        self._run, self._fair = np.zeros_like(self._evidence), np.zeros_like(self._evidence)
        self._reckon()

    def take(self, values: Array) -> Iterator[tuple[int, ChangePoint]]:
        """Take in the next night of every series, nan for a gap; the columns and changes that it raises."""
        self._night += 1
        self._latest[self._night % MEMORY] = values
        there = np.isfinite(values)
        self._learn()
        live = there & (self._seen >= FIRST_NIGHTS)
        self._seen += there
        first = there & (self._seen == FIRST_NIGHTS)
        if first.any():
            self._start(np.flatnonzero(first))
        excess = self._weigh(values, live)
        raised = (excess >= 0) & (self._baseline.noise_nights >= MIN_NIGHTS)
        if raised.any():
            for column in self._still_raised(np.flatnonzero(raised)):
                yield int(column), self._raise(int(column), float(excess[column]))

    def _still_raised(self, columns: Columns) -> Columns:
        """Return those of the columns whose step a second look does not explain otherwise."""
        base, half = self._baseline, len(STEP_SIZES)
        row = self._fair[:, columns].argmax(axis=0)
        up = row < half
        nights = (self._night - np.arange(min(MEMORY, self._night + 1))) % MEMORY
        residuals = self._latest[np.ix_(nights, columns)] - base.level[columns]
        noise = BaselineNoise(
            base.scale[columns], base.degrees[columns], base.strongest[columns], base.correlation[columns],
            base.innovation[columns], base.deviation[columns], np.maximum(base.nights[columns], 1),
        )  # fmt: skip
        asked = np.where(up, self._asked[:half, columns], self._asked[half:, columns])
        residuals *= np.where(up, 1.0, -1.0)
        steps = WatchedSteps(np.array(STEP_SIZES), self._parameters)
        held = still_steps(residuals, self._run[row, columns], asked, noise, steps, self._over_larger())
        return columns[held]

    def _over_larger(self) -> tuple[float, float]:
        """Nats more than usual by which a step has to beat larger noise: always, and with few nights."""
        stricter = math.log(FALSE_SHARE / self._false_share)
        always = self._parameters.stricter_over_larger * stricter
        short = min(self._parameters.stricter_at_first * stricter, self._parameters.sure_over_larger)
        return always, max(short - always, 0.0)

    def begin_level(self, column: int, level: float) -> None:
        """The next night begins another level, as is known: it is not raised, and all sums begin anew.

        With nan as level only the sums do: it is known that nothing has changed.
        """
        if math.isnan(level):
            self._evidence[:, column], self._run[:, column] = _NONE, 0.0
            return
        if self._seen[column] < FIRST_NIGHTS:
            if self._seen[column]:
                self._latest[:, column] += level - float(np.nanmedian(self._latest[:, column]))
            return
        self._latest[:, column] += level - self._baseline.level[column]
        self._baseline.restart(column, level, KNOWN_LEVEL_NIGHTS)
        self._before[column] = 0.0
        self._begin(column, self._night + 1, self._night + 1)

    def tail_probability(self, values: Array) -> Array:
        """How probable values so far from the level are in the next night, both ways together.

        nan in a gap, and in a series whose noise is not yet known from MIN_NIGHTS.
        """
        base = self._baseline
        residual = values - base.level - base.correlation * self._before
        spread = base.scale * base.innovation * np.sqrt(1 + 1 / np.maximum(base.nights, 1))
        told = np.isfinite(values) & (base.noise_nights >= MIN_NIGHTS)
        found = np.full_like(values, np.nan)
        for column in np.flatnonzero(told):
            distance = abs(float(residual[column] / spread[column]))
            found[column] = 2 * student_tail(distance, float(base.degrees[column]))
        return found

    @property
    def levels(self) -> Array:
        """The present level of each series."""
        return self._baseline.level

    @property
    def excess(self) -> Array:
        """The nats by which the evidence exceeds what a change has to bring, [series]; mostly far below 0."""
        known = self._baseline.noise_nights >= MIN_NIGHTS
        return np.where(known, self._fair.max(axis=0), _NONE)

    def describe(self, column: int) -> ChangePoint:
        """Return the change for which the evidence of the latest nights is strongest, raised or not."""
        change, _ = self._located(column, self._false_share, None)
        return change

    def _start(self, columns: Columns) -> None:
        self._baseline.start(columns, self._latest[: self._night + 1, columns])
        self._next[columns] = self._night + 1

    def _learn(self) -> None:
        """Let the baseline learn from the earliest night that it has not had, if that is long enough ago."""
        base = self._baseline
        lag = np.where(self._since > 0, np.minimum(self._lag, base.nights), self._lag)
        due = self._next <= self._night - lag
        values = self._latest[self._next % MEMORY, self._every]
        base.absorb(values, due & np.isfinite(values))
        self._next += due
        if self._night % REFRESHED == 0:
            base.refresh()
            base.look_at_trend()
            self._reckon()

    def _reckon(self) -> None:
        """Work out what only changes when the noise is worked out anew: lag and threshold."""
        base, parameters = self._baseline, self._parameters
        self._lag = parameters.lag + parameters.correlated_lag * np.maximum(
            base.correlation - parameters.correlated_from, 0.0
        )
        self._correlated = np.flatnonzero(base.correlation)
        young = 1 / np.square(np.maximum(base.noise_nights, 1))
        tails = base.inverse - 1 / MAX_DEGREES
        stricter = math.log(FALSE_SHARE / self._false_share)
        threshold = (
            parameters.threshold
            + stricter * (parameters.stricter + parameters.stricter_correlated * base.suspected)
            + young
            * (
                parameters.young**2
                + parameters.young_tailed**2 * tails
                + parameters.young_correlated**2 * base.suspected
            )
            + parameters.tailed * tails * (base.strongest - parameters.usual_strongest)
            + parameters.correlated * np.maximum(base.correlation, base.suspected)
        )
        np.add(self._handicap, threshold, out=self._asked)
        along = np.maximum(np.sign(self._steps) * base.trend, 0.0)
        self._asked += parameters.rising * np.minimum(along * along, parameters.max_rising)

    def _weigh(self, values: Array, live: NDArray[np.bool_]) -> Array:
        """Update the evidence; the most by which that of any size exceeds what it has to bring, in nats."""
        base = self._baseline
        residual = values - base.level
        night = np.where(
            live, (residual - base.correlation * self._before) / (base.scale * base.innovation), 0.0
        )
        limit = NEAR * base.scale
        near = np.minimum(np.maximum(residual, -limit), limit)
        self._before = np.where(live, near, base.correlation * self._before)
        # In AR(1) noise a step shows in full on its first night, then less what the night before explains.
        first = base.deviation / base.innovation
        going_on = self._ratio(night, first * (1 - base.correlation), slice(None))
        beginning = going_on.copy()
        if len(some := self._correlated):
            beginning[:, some] = self._ratio(night[some], first[some], some)
        going_on += self._evidence
        goes_on = going_on >= beginning
        np.copyto(beginning, going_on, where=goes_on)
        np.copyto(self._evidence, beginning, where=live)
        goes_on |= ~live
        self._run *= goes_on
        self._run += live
        # A sum over r nights around a level from n nights has 1 + r/n times the variance of their noise.
        np.multiply(self._run, 1 / np.maximum(base.nights, 1), out=going_on)
        going_on += 1
        np.divide(self._evidence, going_on, out=self._fair)
        self._fair -= self._asked
        np.copyto(self._fair, _NONE, where=self._run < MIN_RAISING)
        return np.asarray(self._fair.max(axis=0))

    def _ratio(self, night: Array, unit: Array, columns: Columns | slice) -> Array:
        """Log-likelihood ratio of a step over none, at most what one night can say.

        The steps are STEP_SIZES times `unit`; both are [columns], the ratio is [sizes, columns].
        """
        base = self._baseline
        degrees, strongest = base.degrees[columns], base.strongest[columns]
        ratio = night - self._steps * unit
        # The largest step stands for larger ones, too: a night beyond it fits it as well as one at it.
        np.minimum(ratio[_UP], 0.0, out=ratio[_UP])
        np.maximum(ratio[_DOWN], 0.0, out=ratio[_DOWN])
        ratio *= ratio
        ratio += degrees
        np.log(ratio, out=ratio)
        np.subtract(np.log(degrees + night * night), ratio, out=ratio)
        ratio *= (degrees + 1) / 2
        np.minimum(ratio, strongest, out=ratio)
        np.maximum(ratio, -strongest, out=ratio)
        return ratio

    def _raise(self, column: int, excess: float) -> ChangePoint:
        """The change that the present night raised, and a new segment from it on."""
        chance = self._false_share * math.exp(-max(excess, 0.0) / self._parameters.stricter)
        change, values = self._located(column, chance, self._night)
        self._restart(column, change, len(values), float(values[-1]))
        # Earlier nights are kept as if they had the new level: what they show of the noise still counts.
        earlier = np.delete(np.arange(MEMORY), np.arange(change.index, self._night + 1) % MEMORY)
        self._latest[earlier, column] += change.size
        return change

    def _located(self, column: int, chance: float, raised: int | None) -> tuple[ChangePoint, Array]:
        """Return the likeliest change in the latest nights, and their values from it on."""
        base = self._baseline
        run = int(self._run[self._fair[:, column].argmax(), column])
        oldest = max(int(self._since[column]), self._night - RAISED_WITHIN + 1)
        nights = np.arange(oldest, self._night + 1)
        values = self._latest[nights % MEMORY, column]
        nights, values = nights[np.isfinite(values)], values[np.isfinite(values)]
        found = located(values, run, base, column)
        return ChangePoint(
            index=int(nights[found.position]),
            first=int(nights[found.first]),
            last=int(nights[found.last]),
            before=float(base.level[column]),
            after=found.after,
            low=found.low,
            high=found.high,
            confidence=1 - chance,
            raised=raised,
        ), values[found.position :]

    def _restart(self, column: int, change: ChangePoint, nights: int, value: float) -> None:
        base = self._baseline
        base.restart(column, change.after, nights)
        limit = float(NEAR * base.scale[column])
        self._before[column] = min(max(value - change.after, -limit), limit)
        self._begin(column, change.index, self._night + 1)

    def _begin(self, column: int, since: int, learnt_from: int) -> None:
        self._evidence[:, column], self._run[:, column] = _NONE, 0.0
        self._since[column], self._next[column] = since, learnt_from

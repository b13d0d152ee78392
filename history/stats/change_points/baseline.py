"""A series' level and noise as its nights so far show them: robust, night by night, many series at once."""

import math

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.parameters import WATCH, WatchParameters
from history.stats.change_points.tails import MAX_DEGREES, geary_ratio, inverse_degrees, scale_of
from history.stats.estimators import ar1_inflation

Array = NDArray[np.float64]

TREND_NIGHTS = 365.0
"""Nights that a line rests on; older ones are forgotten."""

TREND_LAG = 4
"""Looks after which one counts: what a step that is not yet raised does to the line is no drift."""

_MIN_SPREAD = 1e-9
"""Squared nights, less than those of any two: a line through one night does not rise."""


class Trend:
    """The line of least squares through each of some series, by Welford's updates (Technometrics 4, 1962)."""

    def __init__(self, series: int) -> None:
        self._night = 0
        self._nights, self._middle, self._height = (np.zeros(series) for _ in range(3))
        self._spread, self._rising = np.zeros(series), np.zeros(series)
        self._looks = np.zeros((TREND_LAG + 1, series))
        self._look = 0

    @property
    def errors(self) -> Array:
        """The standard errors by which each line rose, [series], TREND_LAG looks ago; below 0 if it fell."""
        return np.asarray(self._looks[(self._look + 1) % len(self._looks)])

    def learn(self, values: Array, counted: NDArray[np.bool_]) -> None:
        """Take in the next night's values [series], without outliers, where `counted`."""
        self._night += 1
        self._nights = np.minimum(self._nights + counted, TREND_NIGHTS)
        share = counted / np.maximum(self._nights, 1)
        kept = 1 - share
        later, higher = self._night - self._middle, values - self._height
        moved = share * later
        self._middle += moved
        self._height += share * higher
        self._spread = kept * (self._spread + moved * later)
        self._rising = kept * (self._rising + moved * higher)

    def restart(self, column: int) -> None:
        """After a step that series has no line any more: its new level is not known well enough for one."""
        self._nights[column] = self._spread[column] = self._rising[column] = 0.0
        self._looks[:, column] = 0.0

    def look(self, deviation: Array) -> None:
        """Work out by how many standard errors the lines rise.

        `deviation` [series] is that of a night as it counts in means, correlation reckoned with.
        """
        self._look += 1
        rise = self._rising / np.sqrt(np.maximum(self._spread, _MIN_SPREAD))
        self._looks[self._look % len(self._looks)] = rise * np.sqrt(self._nights) / deviation


Columns = NDArray[np.int64]

NOISE_NIGHTS = 365.0
"""Nights that the noise rests on. A step leaves it as it was: only levels change."""

FIRST_NIGHTS = 10
"""Nights with a value from whose median and mean deviation everything starts."""

MEDIAN_EFFICIENCY = 0.65
"""Nights of a mean that the median of a night is worth."""

USUAL_DEGREES = 8.0
"""Student's degrees of freedom that noise is taken to have before it has shown its own."""

USUAL_NIGHTS = 20.0
"""Nights that this assumption counts."""

FARTHEST = 6.0
"""Scales at which a residual is cut before it enters a moment: one night says no more than that."""

NEAR = 2.5
"""Scales at which residuals are cut for their correlation: an outlier has no echo."""

FAR = 5.0
"""Scales beyond which a night counts as an outlier."""

OUTLIERS = 0.5
OUTLIER_NIGHTS = 50.0
"""Outliers in so many nights that are assumed before any is seen."""

GEARY_VARIANCE = 0.045
"""Times 1 / nights: the variance of the Geary ratio of Gaussian noise (Geary 1935)."""

MAX_CORRELATION = 0.75
MIN_CORRELATION = 0.05
"""Less is taken for none: it would change nothing but the time that it takes."""

_GAUSSIAN_RATIO = math.sqrt(2 / math.pi)


class Baseline:
    """Level and noise of each of some series; attributes are arrays [series].

    `level` comes from `nights` nights, `scale` and `inverse` (1/degrees) of Student's t and `correlation`
    from `noise_nights`; `suspected` is the correlation as it looks, without doubt or margin; `innovation` is
    the scale of a night given the one before it, `strongest` what one night can say for or against a change,
    in nats. The moments are updated by stochastic approximation: the
    level by the score of Student's t over its information, which is efficient (Lange, Little & Taylor, JASA
    84, 1989). The trend is taken from the level plus that score, which no outlier moves far.
    """

    def __init__(self, series: int, parameters: WatchParameters = WATCH) -> None:
        self._parameters = parameters
        self.level, self.nights, self.noise_nights = (np.zeros(series) for _ in range(3))
        self._absolute, self._square, self._near = (np.ones(series) for _ in range(3))
        self._product, self._far, self._last = (np.zeros(series) for _ in range(3))
        self.scale, self.inverse, self.degrees, self.deviation = (np.ones(series) for _ in range(4))
        self.correlation, self.innovation, self.strongest = (np.ones(series) for _ in range(3))
        self.suspected, self._most = np.zeros(series), np.full(series, parameters.level_nights)
        self._trend = Trend(series)
        self.refresh()

    def start(self, columns: Columns, values: Array) -> None:
        """Begin with the `values` [nights, columns], among which FIRST_NIGHTS are no gaps."""
        level = np.nanmedian(values, axis=0)
        absolute = np.nansum(np.abs(values - level), axis=0) / (FIRST_NIGHTS - 1.5)
        # All nights equal: any other value is a change then, and nothing is divided by nought.
        absolute = np.maximum(absolute, np.finfo(np.float64).eps * np.maximum(np.abs(level), 1.0))
        self.level[columns] = level
        self.nights[columns] = self.noise_nights[columns] = FIRST_NIGHTS * MEDIAN_EFFICIENCY
        self._absolute[columns] = absolute
        self._square[columns] = (absolute / geary_ratio(USUAL_DEGREES)) ** 2
        self._near[columns] = 0.8 * self._square[columns]
        self.refresh(columns)

    def restart(self, column: int, level: float, nights: int) -> None:
        """A new level, known from so many nights; the noise stays, the trend begins anew."""
        self._trend.restart(column)
        self.level[column], self.nights[column], self._last[column] = level, nights, 0.0

    def absorb(self, values: Array, counted: NDArray[np.bool_]) -> None:
        """Learn from a night's values [series], where `counted`; the rest waits for refresh."""
        residual = np.where(counted, values - self.level, 0.0)
        self._learn_noise(residual, counted)
        nights = np.minimum(self.nights + 1, self._most)
        # A sum with weights that fall by the factor 1 - g has the variance of 2/g - 1 equal weights.
        share = np.where(nights < self._most, 1 / nights, 2 / (self._most + 1))
        relative = residual / self.scale
        degrees = 1 / self.inverse
        score = residual * (degrees + 3) / (degrees + relative * relative)
        self._trend.learn(self.level + score, counted)
        self.level += share * score
        self.nights = np.where(counted, nights, self.nights)

    @property
    def trend(self) -> Array:
        """The standard errors by which each series rose in its segment, TREND_LAG looks ago."""
        return self._trend.errors

    def look_at_trend(self) -> None:
        """Work out trends from what was learnt, and from them the nights that levels rest on."""
        inflation = ar1_inflation(self.correlation)
        self._trend.look(self.scale * self.deviation * np.sqrt(inflation))
        parameters = self._parameters
        steady = parameters.steady / np.maximum(np.abs(self.trend), parameters.steady)
        self._most = parameters.level_nights * np.sqrt(inflation) * np.maximum(steady, parameters.min_steady)

    def _learn_noise(self, residual: Array, counted: NDArray[np.bool_]) -> None:
        nights = np.minimum(self.noise_nights + 1, NOISE_NIGHTS)
        share = np.where(counted, 1 / nights, 0.0)
        # A night scatters around a level from n nights by 1 + 1/n of its variance.
        residual = residual / np.sqrt(1 + 1 / np.maximum(self.nights, 1))
        cut = np.minimum(np.maximum(residual, -FARTHEST * self.scale), FARTHEST * self.scale)
        near = np.minimum(np.maximum(residual, -NEAR * self.scale), NEAR * self.scale)
        size = np.abs(cut)
        self._absolute += share * (size - self._absolute)
        self._square += share * (cut * cut - self._square)
        self._far += share * ((size > FAR * self.scale) - self._far)
        self._product += share * (near * self._last - self._product)
        self._near += share * (near * near - self._near)
        self._last = np.where(counted, near, 0.0)
        self.noise_nights = np.where(counted, nights, self.noise_nights)

    def refresh(self, columns: Columns | slice = slice(None)) -> None:
        """Work out scale, tails and correlation of these series from what was learnt."""
        parameters = self._parameters
        nights, absolute = self.noise_nights[columns], self._absolute[columns]
        square, far = self._square[columns], self._far[columns]
        known = np.maximum(nights, 1)
        ratio = absolute / np.sqrt(square)
        ratio = (ratio * nights + USUAL_NIGHTS * geary_ratio(USUAL_DEGREES)) / (nights + USUAL_NIGHTS)
        lighter = np.maximum(_GAUSSIAN_RATIO - ratio, 0.0)
        believed = lighter * lighter / (lighter * lighter + parameters.tail_doubt * GEARY_VARIANCE / known)
        inverse = np.maximum(inverse_degrees(ratio) * believed, 1 / MAX_DEGREES)
        # The mean square is efficient for Gaussian noise, and moved by outliers; the mean deviation is not.
        tails = np.minimum(3 * inverse, 1)
        by_square = np.sqrt(square * (1 - 2 * inverse))
        suspected = np.maximum(self._product[columns] / self._near[columns] + 1 / known, 0.0)
        correlation = _believed(suspected, known, parameters)
        self.inverse[columns] = inverse
        self.scale[columns] = tails * scale_of(absolute, inverse) + (1 - tails) * by_square
        self.degrees[columns] = np.maximum(1 / (inverse + parameters.scale_doubt / known), 2.0)
        self.deviation[columns] = 1 / np.sqrt(1 - 2 * inverse)
        self.suspected[columns], self.correlation[columns] = suspected, correlation
        self.innovation[columns] = np.sqrt(1 - correlation * correlation)
        clean = np.where(far * nights > 0.5, 1.0, np.minimum((parameters.clean_nights / known) ** 2, 1.0))
        self.strongest[columns] = -np.log((far * nights + OUTLIERS * clean) / (nights + OUTLIER_NIGHTS))


def _believed(suspected: Array, nights: Array, parameters: WatchParameters) -> Array:
    """Return the correlation of nights to allow for: 0 where it may be chance, else slightly increased."""
    variance = 1 / nights
    unbiased = np.minimum(np.maximum(suspected, 1e-6), 0.9)
    doubt = parameters.correlation_doubt * variance / (unbiased * unbiased)
    believed = (unbiased + parameters.correlation_margin * np.sqrt(variance)) / (1 + doubt * doubt)
    return np.asarray(np.where(believed < MIN_CORRELATION, 0.0, np.minimum(believed, MAX_CORRELATION)))

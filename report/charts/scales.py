"""Scales: from ratios, times and numbers to pixels, and where their ticks are."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MIN_RANGE = 0.05
"""A relative axis shows at least 5 % on either side of 1, so that noise does not fill it."""

MAX_USUAL = 3
"""An interval more than so many times as wide as the usual one does not set the axis; one as wide as an axis
has at least (MIN_RANGE) always may."""

_LETTER = 7.2
"""The width of a letter of a tick in the charts with the largest letters, in pixels."""

_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
"""Months from tick to tick, of which the least is taken whose labels have room."""

_RATIO_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_MAX_TICKS = 6


@dataclass(frozen=True)
class RatioScale:
    """A logarithmic axis of ratios around 1, from pixel `bottom` up to pixel `top`."""

    low: float
    high: float
    bottom: float
    top: float

    @classmethod
    def around(cls, values: Iterable[float], bottom: float, top: float) -> "RatioScale":
        """Return the axis that shows all values above zero, and at least MIN_RANGE on either side of 1."""
        known = [value for value in values if value > 0 and math.isfinite(value)]
        room = 1.12
        low = min([1 - MIN_RANGE, *(1 - (1 - value) * room if value < 1 else value for value in known)])
        high = max([1 + MIN_RANGE, *(value**room if value > 1 else value for value in known)])
        return cls(max(low, min([*known, 1.0]) / 2), high, bottom, top)

    def at(self, ratio: float) -> float:
        """Return the pixel of a ratio; what lies outside is moved to the edge."""
        inside = min(max(ratio, self.low), self.high)
        share = math.log(inside / self.low) / math.log(self.high / self.low)
        return round(self.bottom + (self.top - self.bottom) * share, 1)

    @property
    def edge(self) -> float:
        """The pixel of the highest ratio."""
        return self.top

    def ticks(self) -> list[tuple[float, str]]:
        """Return ratios with their labels, such as `−10 %`."""
        if self.high / self.low > 4:
            return [(value, f"{value:g}×") for value in _doublings(self.low, self.high)]
        for step in _RATIO_STEPS:
            first, last = math.ceil((self.low - 1) / step), math.floor((self.high - 1) / step)
            if last - first < _MAX_TICKS:
                return [(1 + step * n, _signed(100 * step * n)) for n in range(first, last + 1)]
        return [(1.0, "0 %")]


@dataclass(frozen=True)
class LinearScale:
    """An axis of numbers from `low` at pixel `start` to `high` at pixel `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the pixel of a value; what lies outside is moved to the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / ((self.high - self.low) or 1)
        return round(self.start + (self.end - self.start) * share, 1)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return round numbers with their labels."""
        return [(value, _short(value)) for value in _round_numbers(self.low, self.high, most)]


@dataclass(frozen=True)
class TimeScale:
    """An axis of times."""

    first: datetime
    last: datetime
    start: float
    end: float

    @classmethod
    def over(cls, times: Sequence[datetime], start: float, end: float) -> "TimeScale":
        """Return the axis over all times, with a little room at both ends. There must be one at least.

        Times of a single day have the axis of that day.
        """
        first, last = min(times), max(times)
        if first.date() == last.date():
            midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
            return cls(midnight, midnight + timedelta(days=1), start, end)
        room = max((last - first) * 0.02, timedelta(hours=12))
        return cls(first - room, last + room, start, end)

    def at(self, when: datetime) -> float:
        """Return the pixel of a time."""
        share = (when - self.first) / (self.last - self.first)
        return round(self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[tuple[datetime, str]]:
        """Return days with their labels: single days, months or years, as far apart as their labels need."""
        days = (self.last - self.first) / timedelta(days=1)
        if days <= 1:
            noon = self.first + timedelta(hours=12)
            return [(noon, f"{noon:%Y-%m-%d}")]
        pixels = (self.end - self.start) / days
        if days > 80:
            months = next(
                (step for step in _MONTHS if 30 * step * pixels >= _LETTER * len("2026-01") + 10), _MONTHS[-1]
            )
            label = "%Y" if months >= 12 else "%Y-%m"
            return [(when, f"{when:{label}}") for when in _months(self.first, self.last, months)]
        step = max(1, math.ceil(days / 7), math.ceil((_LETTER * len("01-31") + 10) / pixels))
        midnight = self.first.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        count = max(0, (self.last - midnight).days // step)
        ticks = [midnight + timedelta(days=step * number) for number in range(count + 1)]
        return [(when, f"{when:%m-%d}") for when in ticks]


def usual_ends(intervals: Iterable[tuple[float, float]]) -> list[float]:
    """Return the ends of all intervals but those that are much wider than the usual one (MAX_USUAL).

    One interval that is very wide would set an axis on which nothing else could be read.
    """
    known = [(low, high) for low, high in intervals if 0 < low <= high < math.inf]
    widths = sorted(high / low - 1 for low, high in known)
    if not widths:
        return []
    usual = max(widths[(len(widths) - 1) // 2], 2 * MIN_RANGE / MAX_USUAL)
    return [end for low, high in known if high / low - 1 <= MAX_USUAL * usual for end in (low, high)]


def _months(first: datetime, last: datetime, step: int) -> Iterator[datetime]:
    """Yield the first days of months that are `step` months apart, counted from a January."""
    month = step * math.ceil((first.year * 12 + first.month) / step)
    while (when := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)) <= last:
        yield when
        month += step


def _doublings(low: float, high: float) -> list[float]:
    """Return powers of 2 around 1, or of 4, 8, ... where those would be more than _MAX_TICKS."""
    first, last = math.log2(low), math.log2(high)
    step = max(1, math.ceil((last - first) / _MAX_TICKS))
    return [2.0 ** (step * n) for n in range(math.ceil(first / step), math.floor(last / step) + 1)]


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * n for n in range(first, last + 1)]


def _short(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def _signed(percent: float) -> str:
    text = f"{percent:+.0f} %".replace("-", "\N{MINUS SIGN}")
    return "0 %" if round(percent) == 0 else text

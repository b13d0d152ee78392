"""Scales: from ratios, times and numbers to pixels, and where their ticks are."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MIN_RANGE = 0.05
"""A relative axis shows at least 5 % on either side of 1, so that noise does not fill it."""

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
        """Return the axis over all times, with a little room at both ends. There must be one at least."""
        first, last = min(times), max(times)
        room = max((last - first) * 0.02, timedelta(hours=12))
        return cls(first - room, last + room, start, end)

    def at(self, when: datetime) -> float:
        """Return the pixel of a time."""
        share = (when - self.first) / (self.last - self.first)
        return round(self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[tuple[datetime, str]]:
        """Return days with their labels: single days, Mondays, months or years, by the length of the axis."""
        days = (self.last - self.first).days
        if days > 900:
            return [(when, f"{when:%Y}") for when in _months(self.first, self.last, 12)]
        if days > 80:
            return [(when, f"{when:%b %Y}") for when in _months(self.first, self.last, 1 + days // 220)]
        step = max(1, math.ceil(days / 7))
        first = datetime(self.first.year, self.first.month, self.first.day, tzinfo=UTC) + timedelta(days=1)
        count = max(0, (self.last - first).days // step)
        return [
            (first + timedelta(days=step * n), f"{first + timedelta(days=step * n):%d %b}")
            for n in range(count + 1)
        ]


def _months(first: datetime, last: datetime, step: int) -> Iterator[datetime]:
    month = first.year * 12 + first.month
    while (when := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)) <= last:
        if step < 12 or when.month == 1:
            yield when
        month += 1 if step >= 12 else step


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

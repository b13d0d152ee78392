"""Numbers, units, times and versions as the pages write them. Times are UTC."""

import re
from datetime import datetime

from history import numbers
from history.counts import counted
from history.metric_words import label_of
from history.numbers import DASH
from history.stats.estimators import Interval
from suites.metrics import METRICS

MINUS = "\N{MINUS SIGN}"

SHORT_HASH = 10
"""The characters of a commit that are shown."""


def change_of(ratio: float | None) -> str:
    """Return a ratio as a change with its sign: `−12.3 %`."""
    return typeset(numbers.change_of(ratio))


def share(fraction: float | None, digits: int | None = None) -> str:
    """Return a fraction in percent, without a sign unless it is negative: `2.2 %`."""
    return typeset(numbers.share(fraction, digits))


def bounds(interval: Interval | None) -> str:
    """Return both bounds of an interval of a ratio, as changes."""
    return DASH if interval is None else typeset(numbers.percent_bounds(interval))


def span(low: float, high: float) -> str:
    """Return two ratios as a range of changes: `−3.1 to +1.2 %`."""
    return typeset(numbers.change_range(low, high))


def change_text(ratio: float, low: float, high: float) -> str:
    """Return a ratio as a change with the bounds of its interval: `−9.1 % (−9.8 to −8.3)`."""
    return typeset(numbers.change_text(ratio, low, high))


def mean_name(steps: int, group: str = "") -> str:
    """Return what a mean over steps is: `updates: geometric mean of 2 steps`."""
    name = f"geometric mean of {counted(steps, 'step')}"
    return f"{group}: {name}" if group else name


def signed(value: float) -> str:
    """Return a difference with its sign and three significant digits, or in whole numbers from 1,000 on."""
    text = f"{'-' if value < 0 else '+'}{amount(abs(value))}" if abs(value) >= 1000 else f"{value:+.3g}"
    return text.replace("-", MINUS)


def typeset(text: str) -> str:
    """Return a text of the terminal as pages write numbers: `−6 %` for `-6 %`, `a to b` for `a -> b`."""
    spaced = re.sub(r"(?<=\d)%", " %", text.replace(" -> ", " to "))
    return re.sub(r"(?<![\w.,:/#-])-(?=\d+(?:\.\d+)?(?: %| to |\)))", MINUS, spaced)


def amount(value: float | None) -> str:
    """Return a value with at least four significant digits, and thousands apart."""
    return typeset(numbers.amount(value, "\N{NARROW NO-BREAK SPACE}"))


def unit_of(metric: str) -> str:
    """Return the unit of a metric; empty for one that this version does not know."""
    return METRICS[metric].unit if metric in METRICS else ""


def metric_name(metric: str) -> str:
    """Return what a metric is called in a table."""
    return label_of(metric).replace("_", " ")


def moment(when: datetime) -> str:
    """Return a time as `2026-03-01 02:00 UTC`."""
    return f"{when:%Y-%m-%d %H:%M} UTC"


def day(when: datetime) -> str:
    """Return the day of a time in UTC."""
    return f"{when:%Y-%m-%d}"


def short_version(version: str) -> str:
    """Return a version without the engine's name and with a short commit, for narrow columns."""
    _, _, ref = version.rpartition("@")
    kind, colon, commit = ref.partition(":")
    return f"{commit[:SHORT_HASH]}" if colon and kind == "git" else ref or version


def probability(share: float) -> str:
    """Return a probability in percent, never rounded up to 100 % nor down to 0 %."""
    if share > 0.9995:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"

"""Changes in finished series as text and as JSON."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from history.changes.hindsight import AlternatingLevels, GradualChange, LevelChange, SearchedSeries
from history.counts import counted
from history.metric_words import label_of
from history.numbers import amount, change_text, rounded
from history.rendering.changes import confidence_text
from history.series.series import SHOWN_DIGITS
from history.stats.change_points import FALSE_SHARE, SHORTEST
from suites.metrics import METRICS

BY_CHANCE = f"By chance, up to {100 * FALSE_SHARE:.0f} % of series a year show a change that is none."


def render_change_points(searched: Sequence[SearchedSeries]) -> Iterator[str]:
    """Yield some lines for each change that matters, the largest first in each environment, and a summary."""
    shown = [series for series in searched if series.that_matter or series.drift or series.alternation]
    for environment, group in groupby(shown, key=lambda series: series.key.environment):
        yield f"{environment.box}: {environment.suite}, {environment.configuration}"
        its_series = list(group)
        changes = [(series, change) for series in its_series for change in series.that_matter]
        for series, change in sorted(changes, key=lambda found: -found[1].log_size):
            yield from (f"    {line}" for line in _change_point(series, change))
        for series in its_series:
            yield from (f"    {line}" for line in (*_drift(series), *_alternation(series)))
        yield ""
    yield from _summary(searched)
    if any(series.changes for series in searched):
        yield BY_CHANCE


def searched_text(searched: Sequence[SearchedSeries]) -> str:
    """Return the summary of a search in one line."""
    return "; ".join(_summary(searched))


def _summary(searched: Sequence[SearchedSeries]) -> Iterator[str]:
    """Yield how many changes that matter there are, what would have been found, and what was not searched."""
    long_enough = sum(series.is_long_enough for series in searched)
    if long_enough:
        changes = sum(len(series.that_matter) for series in searched)
        changed = sum(bool(series.that_matter) for series in searched)
        number = counted(long_enough, "series", "series")
        of_them = f"{changes}, in {changed} of them" if changes else "none"
        yield f"change points in {number} of {SHORTEST} or more nights: {of_them}"
        smaller = sum(len(series.changes) for series in searched) - changes
        if smaller:
            yield f"{counted(smaller, 'change')} below the threshold of the metric (in --format json)"
        yield from _visible(searched)
    drifting = sum(series.drift is not None for series in searched)
    if drifting:
        yield f"{counted(drifting, 'series', 'series')} drifting"
    alternating = sum(series.alternation is not None for series in searched)
    if alternating:
        yield f"{counted(alternating, 'series', 'series')} alternating between two levels"
    if len(searched) > long_enough:
        short = counted(len(searched) - long_enough, "series", "series")
        yield f"{short} of fewer than {SHORTEST} nights not searched"


def _visible(searched: Sequence[SearchedSeries]) -> Iterator[str]:
    """Yield which lasting steps would have been found in the series without any change."""
    sizes = sorted(series.visible for series in searched if series.visible is not None)
    if len(sizes) == 1:
        yield f"no change in one series, where a step of {100 * sizes[0]:.2g} % would have been found"
    elif sizes:
        sees = f"{100 * sizes[0]:.2g} to {100 * sizes[-1]:.2g} %"
        yield f"no change in {len(sizes)} series, where a step of {sees} would have been found"


def change_points_json(searched: Sequence[SearchedSeries]) -> list[dict[str, Any]]:
    """Return each series with its changes."""
    return [
        {
            **vars(series.key.environment),
            "branch": series.key.branch,
            "step": series.key.step,
            "metric": series.key.metric,
            "unit": METRICS[series.key.metric].unit,
            "base": series.base,
            "nights": series.nights,
            "changes": [level_change_json(change) for change in series.changes],
            "drift": _drift_json(series.drift),
            "alternation": _alternation_json(series.alternation),
            "smallest_visible": None if series.visible is None else rounded(series.visible),
        }
        for series in searched
    ]


def level_change_json(change: LevelChange) -> dict[str, Any]:
    """Return all properties of a change in a finished series."""
    nights = {"last_before": change.last_before, "first": change.first, "first_after": change.first_after}
    return {
        "direction": change.direction,
        "level_before": rounded(change.before),
        "level_after": rounded(change.after),
        "ratio_low": rounded(change.low),
        "ratio_high": rounded(change.high),
        "confidence": rounded(change.confidence),
        **{
            name: {
                "night": night.started_at.isoformat(),
                "version": night.version,
                "commit": night.commit or None,
            }
            for name, night in nights.items()
        },
    }


def _drift_json(drift: GradualChange | None) -> dict[str, Any] | None:
    if drift is None:
        return None
    return {
        "direction": drift.direction,
        "ratio": rounded(drift.ratio),
        "ratio_low": rounded(drift.low),
        "ratio_high": rounded(drift.high),
        "first": drift.first.started_at.isoformat(),
        "last": drift.last.started_at.isoformat(),
    }


def _alternation_json(found: AlternatingLevels | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "level_before": rounded(found.before),
        "level_after": rounded(found.after),
        "switches": found.switches,
        "first": found.first.started_at.isoformat(),
        "last": found.last.started_at.isoformat(),
    }


def level_change(change: LevelChange) -> str:
    """Return size and direction: `-9.1 % (-9.8 to -8.3), worse`."""
    size = change_text(change.after / change.before, change.low, change.high)
    return f"{size}, {change.direction}"


def _change_point(series: SearchedSeries, change: LevelChange) -> Iterator[str]:
    key = series.key
    unit = f"times {series.base}" if series.base else METRICS[key.metric].unit
    yield f"{key.step} {label_of(key.metric)}, {key.branch}"
    yield f"    {level_change(change)}: {amount(change.before)} to {amount(change.after)} {unit}"
    before, after = change.last_before, change.first_after
    between = f"{before.started_at:%Y-%m-%d} to {after.started_at:%Y-%m-%d}"
    sure = f"confidence {confidence_text(change.confidence)}"
    yield f"    from {change.first.started_at:%Y-%m-%d} on ({between}), {sure}"
    if before.commit and after.commit:
        yield f"    commits {before.commit[:SHOWN_DIGITS]}..{after.commit[:SHOWN_DIGITS]}"
    elif before.version != after.version:
        yield f"    {before.version} to {after.version}"


def _drift(series: SearchedSeries) -> Iterator[str]:
    """Return that a series drifts, by how much and from when to when."""
    if series.drift is None:
        return
    key, drift = series.key, series.drift
    relative = f", relative to {series.base}" if series.base else ""
    size = change_text(drift.ratio, drift.low, drift.high)
    yield f"{key.step} {label_of(key.metric)}, {key.branch}: drifts by {size}, {drift.direction}{relative}"
    yield f"    from {drift.first.started_at:%Y-%m-%d} to {drift.last.started_at:%Y-%m-%d}, in no step"


def _alternation(series: SearchedSeries) -> Iterator[str]:
    """Return that a series alternates, between which levels, how often, and from when to when."""
    if series.alternation is None:
        return
    key, found = series.key, series.alternation
    unit = f"times {series.base}" if series.base else METRICS[key.metric].unit
    levels = f"{amount(found.before)} and {amount(found.after)} {unit}"
    yield f"{key.step} {label_of(key.metric)}, {key.branch}: alternates between {levels}"
    nights = f"{found.first.started_at:%Y-%m-%d} and {found.last.started_at:%Y-%m-%d}"
    yield f"    {found.switches} switches between {nights}, which is no change of the branch"

"""The last nights of a branch against its base's, as a table shows them beside one session."""

from collections.abc import Collection, Mapping, Sequence

from history.store.records import Environment, Session
from history.store.sql import Source, among
from history.timestamps import to_text

LAST_NIGHTS = 16
"""That a trend goes back over, the session's own included."""

LEAST_NIGHTS = 3
"""Nights with a value below which there is no trend to show."""

AT_PLACE = "series.box = :box AND series.suite = :suite AND series.configuration = :configuration"
"""Whether a row of series is of the place whose fields are named so."""

Values = Mapping[tuple[str, str, str, int], float]
"""Branch, step, metric and session -> value."""


def trends(
    source: Source, session: Session, base: str, contender: str, metric: str
) -> dict[str, tuple[float | None, ...]]:
    """Step -> contender's branch over base's branch, night by night up to a session; None in a gap.

    Nothing of a session that has no night yet, and of steps with too few nights.
    """
    rows = source.rows(
        "SELECT version, branch, box, suite, configuration FROM nights WHERE session_id = :id", id=session.id
    )
    lines = {version: branch for version, branch, *_ in rows}
    if not {base, contender} <= lines.keys():
        return {}
    place = Environment(*rows[0][2:])
    last = source.column(
        "SELECT session_id FROM nights WHERE box = :box AND suite = :suite"
        " AND configuration = :configuration AND branch = :branch AND started_at <= :until"
        f" ORDER BY started_at DESC, session_id DESC LIMIT {LAST_NIGHTS}",
        **vars(place),
        branch=lines[contender],
        until=to_text(session.started_at),
    )[::-1]
    values = values_of(source, place, (lines[base], lines[contender]), (metric,), last)
    steps = {step for branch, step, _, _ in values if branch == lines[contender]}
    found = {}
    for step in steps:
        ratios = tuple(_ratio(values, lines[base], lines[contender], step, metric, night) for night in last)
        if len([each for each in ratios if each is not None]) >= LEAST_NIGHTS:
            found[step] = ratios
    return found


def values_of(
    source: Source,
    place: Environment,
    branches: Collection[str],
    metrics: Collection[str],
    session_ids: Sequence[int],
) -> Values:
    """What the branches came to in the nights of these sessions, for all steps."""
    if not session_ids:
        return {}
    of_branches, named_branches = among("series.branch", branches)
    of_metrics, named_metrics = among("series.metric", metrics)
    rows = source.rows(
        "SELECT series.branch, series.step, series.metric, points.session_id, points.value"
        f" FROM series JOIN points ON points.series_id = series.id WHERE {AT_PLACE}"
        f" AND {of_branches} AND {of_metrics} AND points.session_id BETWEEN :first AND :last",
        **vars(place),
        **named_branches,
        **named_metrics,
        first=min(session_ids),
        last=max(session_ids),
    )
    wanted = set(session_ids)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in rows if row[3] in wanted}


def step_positions(source: Source, place: Environment, branches: Collection[str]) -> dict[str, int]:
    """Step -> its place in the suite, for the steps that these branches have series of."""
    of_branches, named = among("series.branch", branches)
    rows = source.rows(
        f"SELECT step, MAX(step_position) FROM series WHERE {AT_PLACE} AND {of_branches} GROUP BY step",
        **vars(place),
        **named,
    )
    return dict(map(tuple, rows))


def _ratio(
    values: Values, base: str, contender: str, step: str, metric: str, session_id: int
) -> float | None:
    below = values.get((base, step, metric, session_id))
    above = values.get((contender, step, metric, session_id))
    return above / below if below and above and min(below, above) > 0 else None

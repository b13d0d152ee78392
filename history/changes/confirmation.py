"""What was confirmed: a commit of a branch measured against an earlier one in the same night, interleaved."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, select

from history.comparison.verdict import MetricChange
from history.errors import DamagedTextError
from history.series.series import Night, SeriesKey
from history.store.records import CONFIRMS, Environment
from history.store.schema import confirmations, nights, series, sessions
from history.timestamps import from_text
from suites.metrics import judged_metrics

CONFIDENCE = 0.999
"""That all intervals of a session that confirms hold: of all its steps and judged metrics, at all looks."""

METRIC_CONFIDENCE = 1 - (1 - CONFIDENCE) / len(judged_metrics())
"""Of the intervals of one of the metrics: Bonferroni's share, which needs no independent metrics."""


class ConfirmationRequest(StrEnum):
    """What a session was to decide."""

    NEW = "new"
    """Whether tonight's commit differs from the one before it."""

    GONE = "gone"
    """Whether a change that is known is gone: tonight's commit against the one before the change."""


@dataclass(frozen=True)
class Confirms:
    """What a session confirms, as its options say it; sessions by uid, which all histories share."""

    question: ConfirmationRequest
    branch: str
    before: str
    """The session of the night whose version of the branch is the base."""

    night: str
    """The session of the night that gave the suspicion."""

    steps: tuple[str, ...]
    threshold: float
    """The fraction beyond which a ratio is a change."""

    change: str = ""
    """The fingerprint of the change that may be gone."""

    def option(self) -> dict[str, Any]:
        """For a session's options."""
        return {**asdict(self), "steps": list(self.steps)}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self | None:
        """What a session with these options confirms; None of an ordinary one. Raises DamagedTextError."""
        found = options.get(CONFIRMS)
        if not isinstance(found, dict):
            return None
        try:
            question, steps = ConfirmationRequest(found["question"]), tuple(found["steps"])
            return cls(**{**found, "question": question, "steps": steps})
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedTextError(
                f"a session's options say {found!r:.60}, which confirms nothing"
            ) from error


@dataclass(frozen=True)
class Confirmation:
    """What a session found in one series. Ratios are of tonight's commit over the one it was held against."""

    uid: str
    """Of the session."""

    series_id: int
    key: SeriesKey
    question: ConfirmationRequest
    before: Night
    """The night whose version it was held against."""

    after: Night
    """The night that gave the suspicion."""

    finding: MetricChange
    """Of a new change: which way. Of one that may be gone: the same when the larger part of it surely is."""

    level_before: float
    """Of the series in the nights up to `before`: a ratio to its base."""

    ratio: float
    low: float
    high: float
    rounds: int
    confidence: float

    @property
    def is_step(self) -> bool:
        """Whether it found a new change."""
        return self.question is ConfirmationRequest.NEW and self.finding in (
            MetricChange.MORE,
            MetricChange.LESS,
        )

    @property
    def is_return(self) -> bool:
        """Whether it found a known change gone."""
        return self.question is ConfirmationRequest.GONE and self.finding is MetricChange.SAME

    @property
    def level_after(self) -> float:
        """Of the series from `after` on: as measured side by side, and not in two nights."""
        return self.level_before * self.ratio


def load(connection: Connection, series_ids: Collection[int] | None = None) -> tuple[Confirmation, ...]:
    """What was found, in the order of the nights; in some series or in all."""
    before, after = nights.alias("night_before"), nights.alias("night_after")
    query = (
        select(
            confirmations,
            series,
            sessions.c.uid,
            *(before.c[name].label(f"before_{name}") for name in ("started_at", "version", "build_id")),
            *(after.c[name].label(f"after_{name}") for name in ("started_at", "version", "build_id")),
        )
        .join_from(confirmations, series, series.c.id == confirmations.c.series_id)
        .join(sessions, sessions.c.id == confirmations.c.session_id)
        .join(
            before,
            (before.c.session_id == confirmations.c.before_id) & (before.c.branch == series.c.branch),
        )
        .join(after, (after.c.session_id == confirmations.c.after_id) & (after.c.branch == series.c.branch))
        .order_by(after.c.started_at, sessions.c.started_at, confirmations.c.series_id)
    )
    if series_ids is not None:
        query = query.where(confirmations.c.series_id.in_(series_ids))
    return tuple(_confirmation(row) for row in connection.execute(query).mappings())


def session_id(connection: Connection, confirmed: Confirmation) -> int:
    """The id of the session that confirmed."""
    query = select(sessions.c.id).where(sessions.c.uid == confirmed.uid)
    return int(connection.execute(query).scalar_one())


def _confirmation(row: RowMapping) -> Confirmation:
    def night(which: str) -> Night:
        moment = from_text(row[f"{which}_started_at"])
        return Night(row[f"{which}_id"], moment, row[f"{which}_version"], row[f"{which}_build_id"])

    return Confirmation(
        uid=row["uid"],
        series_id=row["series_id"],
        key=SeriesKey(
            Environment(row["box"], row["suite"], row["configuration"]),
            row["branch"],
            row["step"],
            row["metric"],
        ),
        question=ConfirmationRequest(row["question"]),
        before=night("before"),
        after=night("after"),
        finding=MetricChange(row["finding"]),
        level_before=row["level_before"],
        ratio=row["ratio"],
        low=row["ratio_low"],
        high=row["ratio_high"],
        rounds=row["rounds"],
        confidence=row["confidence"],
    )


def latest_by_nights(found: Collection[Confirmation]) -> Iterator[Confirmation]:
    """One for each series, question and pair of nights: the last of those with the same question."""
    last = {(each.series_id, each.question, each.before[0], each.after[0]): each for each in found}
    yield from last.values()

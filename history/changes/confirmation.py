"""Confirmations: a commit of a branch and an earlier one, measured in interleaved rounds of one session."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import Connection, RowMapping, select

from history.comparison.verdict import MetricChange
from history.errors import DamagedTextError
from history.series.series import Night, SeriesKey, key_of, night_of
from history.store.records import CONFIRMS
from history.store.schema import confirmations, machines, nights, series, sessions
from suites.metric import Detection
from suites.metrics import METRICS, PRIMARY, judged_metrics

CONFIDENCE = 0.999
"""The probability that all intervals of a confirming session hold, of all steps and judged metrics, at all
looks."""

_TOGETHER = [metric for metric in judged_metrics(Detection.EVIDENCE) if METRICS[metric].beside_of == PRIMARY]
METRIC_CONFIDENCE = 1 - (1 - CONFIDENCE) / len(_TOGETHER)
"""The confidence of the intervals of one metric, by Bonferroni over those that one session can have: metrics
need not be independent. Sessions of held connections have fewer. Counts have intervals of another kind."""


class ConfirmationRequest(StrEnum):
    """The question that a confirming session answers."""

    NEW = "new"
    """Does tonight's commit differ from the one before it?"""

    GONE = "gone"
    """Is a change gone? Tonight's commit is compared with the one before the change."""


@dataclass(frozen=True)
class Confirms:
    """The options of a confirming session. Nights are given by the uid of their session."""

    question: ConfirmationRequest
    branch: str
    before: str
    """The session of the night whose version of the branch is the base."""

    night: str
    """The session of the night with the suspects."""

    steps: tuple[str, ...]
    threshold: float
    """The fraction beyond which a ratio counts as a change."""

    change: str = ""
    """The fingerprint of the change that may be gone."""

    def option(self) -> dict[str, Any]:
        """Return the value of the option CONFIRMS."""
        return {**asdict(self), "steps": list(self.steps)}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self | None:
        """Return what a session with these options confirms; None for an ordinary session.

        Raises DamagedTextError if the options are not those that Tidemark writes.
        """
        value = options.get(CONFIRMS)
        if not isinstance(value, dict):
            return None
        try:
            question, steps = ConfirmationRequest(value["question"]), tuple(value["steps"])
            return cls(**{**value, "question": question, "steps": steps})
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedTextError(
                f"the option {CONFIRMS} of a session is {value!r:.60}, which is not a confirmation"
            ) from error


@dataclass(frozen=True)
class Confirmation:
    """The finding of a confirming session in one series. Ratios are tonight's commit over the earlier one."""

    uid: str
    """The uid of the session."""

    series_id: int
    key: SeriesKey
    question: ConfirmationRequest
    before: Night
    """The night with the earlier commit."""

    after: Night
    """The night with the suspects."""

    finding: MetricChange
    """The direction of a new change; for one that may be gone, `same` if more than half of it is gone."""

    level_before: float
    """The level of the series in the nights up to `before`, as a ratio to its base."""

    ratio: float
    low: float
    high: float
    rounds: int
    confidence: float
    replicated_on: str = ""
    """The host name of the box that measured it, if that is not the box of the series: a replication."""

    @property
    def is_step(self) -> bool:
        """Whether it confirmed a new change."""
        return self.question is ConfirmationRequest.NEW and self.finding in (
            MetricChange.MORE,
            MetricChange.LESS,
        )

    @property
    def is_return(self) -> bool:
        """Whether it confirmed that a change is gone."""
        return self.question is ConfirmationRequest.GONE and self.finding is MetricChange.SAME

    @property
    def is_counted(self) -> bool:
        """Whether it is of counted passes, and not of interleaved rounds."""
        return METRICS[self.key.metric].is_counted

    @property
    def level_after(self) -> float:
        """The level of the series from `after` on, as measured side by side rather than in two nights."""
        return self.level_before * self.ratio


def load(connection: Connection, series_ids: Collection[int] | None = None) -> tuple[Confirmation, ...]:
    """Return the confirmations of the given series, or of all, in the order of the nights."""
    before, after = nights.alias("night_before"), nights.alias("night_after")
    measured = {"before": sessions.alias("session_before"), "after": sessions.alias("session_after")}
    query = (
        select(
            confirmations,
            series,
            sessions.c.uid,
            machines.c.hostname,
            *(before.c[name].label(f"before_{name}") for name in ("started_at", "version", "build_id")),
            *(after.c[name].label(f"after_{name}") for name in ("started_at", "version", "build_id")),
            *(alias.c.started_at.label(f"{which}_measured_at") for which, alias in measured.items()),
        )
        .join_from(confirmations, series, series.c.id == confirmations.c.series_id)
        .join(sessions, sessions.c.id == confirmations.c.session_id)
        .join(machines, machines.c.id == sessions.c.machine_id)
        .join(
            before,
            (before.c.session_id == confirmations.c.before_id) & (before.c.branch == series.c.branch),
        )
        .join(after, (after.c.session_id == confirmations.c.after_id) & (after.c.branch == series.c.branch))
        .join(measured["before"], measured["before"].c.id == confirmations.c.before_id)
        .join(measured["after"], measured["after"].c.id == confirmations.c.after_id)
        .order_by(after.c.started_at, sessions.c.started_at, confirmations.c.series_id)
    )
    if series_ids is not None:
        query = query.where(confirmations.c.series_id.in_(series_ids))
    return tuple(_confirmation(row) for row in connection.execute(query).mappings())


def session_id(connection: Connection, confirmed: Confirmation) -> int:
    """Return the id of the session that confirmed."""
    query = select(sessions.c.id).where(sessions.c.uid == confirmed.uid)
    return int(connection.execute(query).scalar_one())


def _confirmation(row: RowMapping) -> Confirmation:
    def night(which: str) -> Night:
        names = ("id", "started_at", "version", "build_id", "measured_at")
        return night_of(*(row[f"{which}_{name}"] for name in names))

    return Confirmation(
        uid=row["uid"],
        series_id=row["series_id"],
        key=key_of(row),
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
        replicated_on=row["hostname"] if row["hostname"] != row["box"] else "",
    )


def latest_by_nights(confirmed: Collection[Confirmation]) -> Iterator[Confirmation]:
    """Iterate over the last confirmation of each series, question and pair of nights."""
    last = {
        (answer.series_id, answer.question, answer.before[0], answer.after[0]): answer for answer in confirmed
    }
    yield from last.values()

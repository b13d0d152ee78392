"""The stored confirmations: what confirming sessions found, series by series; loading and inserting them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, insert, select

from history.changes.confirmation.request import ConfirmationRequest
from history.comparison.verdict import MetricChange
from history.errors import stored_options
from history.series.series import Night, SeriesKey, key_of, night_of
from history.stats.estimators import Interval
from history.store.records import is_long
from history.store.schema import confirmations, machines, nights, series, sessions
from suites.metrics import METRICS

_ROUNDS = {False: "round", True: "block"}
"""What the rounds of a session are called, in long mode or not."""


@dataclass(frozen=True)
class SeriesFinding:
    """The finding of a confirming session in one series, as it is stored."""

    series_id: int
    finding: MetricChange
    level_before: float
    """The level of the series in the nights up to the earlier one, as a ratio to its base."""

    interval: Interval
    """The interval of the ratio of the later commit over the earlier one."""


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
    round_name: str = "round"
    """What `rounds` counts: `round`, in long mode `block`, `pass` where instructions were counted."""

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


def load(
    connection: Connection, series_ids: Collection[int] | None = None, uid: str | None = None
) -> tuple[Confirmation, ...]:
    """Return the confirmations of the given series and session, or of all, in the order of the nights."""
    before, after = nights.alias("night_before"), nights.alias("night_after")
    measured = {"before": sessions.alias("session_before"), "after": sessions.alias("session_after")}
    query = (
        select(
            confirmations,
            series,
            sessions.c.uid,
            sessions.c.options.label("session_options"),
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
    if uid is not None:
        query = query.where(sessions.c.uid == uid)
    return tuple(_confirmation(row) for row in connection.execute(query).mappings())


def insert_findings(
    connection: Connection,
    session_id: int,
    question: ConfirmationRequest,
    both: tuple[int, int],
    confidence: float,
    findings: Iterable[SeriesFinding],
) -> None:
    """Insert what a session found; `both` are the ids of the sessions of the earlier and the later night."""
    rows = [
        {
            "session_id": session_id,
            "series_id": found.series_id,
            "question": question,
            "before_id": both[0],
            "after_id": both[1],
            "finding": found.finding,
            "level_before": found.level_before,
            "ratio": found.interval.estimate,
            "ratio_low": found.interval.low,
            "ratio_high": found.interval.high,
            "rounds": found.interval.n,
            "confidence": confidence,
        }
        for found in findings
    ]
    if rows:
        connection.execute(insert(confirmations), rows)


def session_id(connection: Connection, confirmed: Confirmation) -> int:
    """Return the id of the session that confirmed."""
    query = select(sessions.c.id).where(sessions.c.uid == confirmed.uid)
    return int(connection.execute(query).scalar_one())


def _confirmation(row: RowMapping) -> Confirmation:
    def night(which: str) -> Night:
        names = ("id", "started_at", "version", "build_id", "measured_at")
        return night_of(*(row[f"{which}_{name}"] for name in names))

    key = key_of(row)
    is_counted = METRICS[key.metric].is_counted
    return Confirmation(
        uid=row["uid"],
        series_id=row["series_id"],
        key=key,
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
        round_name="pass" if is_counted else _ROUNDS[is_long(stored_options(row["session_options"]))],
        replicated_on=row["hostname"] if row["hostname"] != row["box"] else "",
    )


def latest_by_nights(confirmed: Collection[Confirmation]) -> Iterator[Confirmation]:
    """Iterate over the last confirmation of each series, question and pair of nights."""
    last = {
        (answer.series_id, answer.question, answer.before[0], answer.after[0]): answer for answer in confirmed
    }
    yield from last.values()

"""Writing the log of a bisect: every event goes into the history first, and to the search after that."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from build.errors import TidemarkError
from history.store import bisects
from history.store.bisects import GOES_ON, Bisect, BisectEvent, EventKind
from history.store.records import Run, RunStatus
from history.store.writer import Store
from runners.bisect.domain.question import CandidateRange
from runners.bisect.domain.rules import Measure, SearchVerdict
from runners.bisect.inference.whole.search import WholeSearch
from runners.bisect.run.event_log import (
    Log,
    Round,
    apply_entry,
    observations,
    read_log,
    rounds_of_runs,
    search_after,
)


def halves(length: int) -> list[int]:
    """Return the positions between good and bad: the middle, the middles of the halves, and so on."""
    positions, parts = list[int](), [(0, length)]
    while parts:
        low, high = parts.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            positions.append(middle)
            parts += [(low, middle), (middle, high)]
    return positions


class MetricError(TidemarkError):
    """A round has no value of the metric that was asked for."""


class EventRecorder:
    """Records the events of a bisect and keeps its search up to date.

    A new one, made after a kill, continues where the log and the runs of its sessions end.
    """

    def __init__(
        self, store: Store, bisect: Bisect, span: CandidateRange, now: Callable[[], datetime]
    ) -> None:
        """`span` is the range as the repository has it: with the messages that a verdict did not keep."""
        self._store, self._bisect, self._now = store, bisect, now
        whole = read_log(store, bisect)
        self.question, self.span = whole.question, span
        self.search: WholeSearch = search_after(whole)
        self._session, self._rounds = "", 0

    @property
    def log(self) -> Log:
        """The log as the history has it now."""
        with self._store.database.reading() as connection:
            return read_log(self._store, bisects.load(connection, self._bisect.uid))

    def begin_session(self, uid: str) -> None:
        """Record that the next rounds belong to this session."""
        self.write(EventKind.SESSION, {}, session=uid)
        self._session, self._rounds = uid, 0

    def write(self, kind: EventKind, detail: Mapping[str, Any], session: str | None = None) -> None:
        """Append an event to the log, and apply it to the search."""
        if session is None and self._session:
            session, detail = self._session, {**detail, "after_round": self._rounds}
        when = self._now()
        with self._store.database.writing() as connection:
            bisects.append(connection, self._bisect, kind, detail, when, session)
        apply_entry(self.search, BisectEvent(0, kind, session, detail, when))

    def take_pass(self, uid: str, number: int) -> tuple[int, ...]:
        """Apply a recorded counted pass to the search; return the positions that it counted, without good."""
        rounds = [entry for entry in self._recorded(uid, number)[1] if entry.counted]
        for entry in rounds:
            apply_entry(self.search, entry)
        self._rounds = number
        return tuple(place for entry in rounds for place in entry.log_ratios)

    def take_round(self, uid: str, number: int) -> tuple[int, ...]:
        """Apply a recorded round to the search; return the positions that have a value, without good.

        Raises MetricError when it has no value of the metric.
        """
        runs_of_round, rounds = self._recorded(uid, number)
        for entry in rounds:
            apply_entry(self.search, entry)
        self._rounds = number
        finished = [run.version for run in runs_of_round if run.status is RunStatus.FINISHED]
        if not rounds and self.span.versions[0] in finished and len(finished) > 1:
            values = [run.values for run in self._runs(uid, ()) if run.repetition == number]
            self._refuse_metric({name for metrics in values for name, value in metrics.items() if value > 0})
        return tuple(place for entry in rounds for place in entry.log_ratios)

    def _recorded(self, uid: str, number: int) -> tuple[list[Run], list[Round]]:
        runs = [run for run in self._runs(uid, self.question.metrics) if run.repetition == number]
        return runs, rounds_of_runs(uid, runs, self.span, self.question)

    def _runs(self, uid: str, metrics: Collection[str]) -> Sequence[Run]:
        session = self._store.latest_session((), uid=uid)
        assert session is not None
        return self._store.runs(session.id, (), metrics)

    def wanted(self, *, whole: bool) -> Measure | SearchVerdict:
        """Return what to measure next, or the verdict that ends the search.

        With `whole`, one that leaves something to be searched is recorded, and the search goes on.
        """
        while isinstance(decision := self.search.next(), SearchVerdict):
            if not (whole and self.search.has_more):
                return decision
            self.conclude(decision, goes_on=True)
        return decision

    def conclude(self, verdict: SearchVerdict, *, goes_on: bool = False) -> None:
        """Record the verdict with the observations that it is based on, and whether the search goes on."""
        log = self.log
        kept, counted = observations(log.all_rounds()), observations(log.passes())
        if not goes_on:
            self._session = ""
        detail = {
            "verdict": verdict.to_json(),
            "observations": kept,
            **({"counted_observations": counted} if counted else {}),
            "alternatives": self.search.alternatives,
            **({GOES_ON: True} if goes_on else {}),
        }
        self.write(EventKind.VERDICT, detail)
        if not goes_on:
            # Three quarters of a long range are messages, and a report shows those of named commits alone.
            named = self.span.with_messages_of(verdict.blamed)
            with self._store.database.writing() as connection:
                bisects.replace_span(connection, self._bisect, named.to_json())

    def worth_compiling(self, count: int) -> list[int]:
        """Return at most `count` positions that are likely to be measured, neither compiled nor excluded."""
        if self.span.parents or any(True for _ in self.log.all_rounds()):
            return list(self.search.likely_next(count))
        unusable = {
            place
            for event in self.log.bisect.events
            if not event.detail.get("counted")
            for place in (*event.detail.get("positions", ()), event.detail.get("position"))
        }
        return [place for place in halves(self.span.length) if place not in unusable][:count]

    def progress(self, positions: Sequence[int], *, counted: bool = False) -> str:
        """Describe the levels of positions after their rounds or passes, and the likeliest culprit."""
        if counted:
            levels = ", ".join(f"{self.search.counted_level(place)[0]:.4f}" for place in positions)
            levels = f"instructions {levels}"
        else:
            levels = ", ".join(
                "{:.3f} ({:.3f}–{:.3f})".format(*self.search.level(place)) for place in positions
            )
        if not self.search.is_first:
            return f"{levels} times good"
        posterior = self.search.posterior
        likeliest = int(posterior[1:].argmax()) + 1
        return (
            f"{levels} times good; likeliest {self.span.named(likeliest)}, {100 * posterior[likeliest]:.0f} %"
        )

    def _refuse_metric(self, recorded: set[str]) -> None:
        metric = self.question.metric
        raise MetricError(
            f"{self.question.step} has no {metric} above zero on this machine, so no ratio to compare",
            where="--metric",
            hint=f"metrics above zero: {', '.join(sorted(recorded))}",
        )

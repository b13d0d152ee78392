"""The log of a bisect while it is written: each line goes into the history first, then to the search."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from build.errors import TidemarkError
from history.store import bisects
from history.store.bisects import Bisect, BisectEvent, EventKind
from history.store.records import RunStatus
from history.store.writer import Store
from runners.bisect.domain.rules import SearchVerdict
from runners.bisect.inference.search import Search
from runners.bisect.run.event_log import Log, follow, observations, read_log, rounds_of_runs, tell


def halves(length: int) -> list[int]:
    """The positions between good and bad, each half's middle before those of its quarters."""
    found, parts = list[int](), [(0, length)]
    while parts:
        low, high = parts.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            found.append(middle)
            parts += [(low, middle), (middle, high)]
    return found


class MetricError(TidemarkError):
    """A round has no value of the metric that is asked for."""


class Ledger:
    """A bisect that goes on. Made anew after a kill, it stands where its log and its sessions' runs end."""

    def __init__(self, store: Store, bisect: Bisect, now: Callable[[], datetime]) -> None:
        self._store, self._bisect, self._now = store, bisect, now
        whole = read_log(store, bisect)
        self.question, self.span = whole.question, whole.span
        self.search: Search = follow(whole)
        self._session, self._rounds = "", 0

    @property
    def log(self) -> Log:
        """As the history has it now."""
        with self._store.database.reading() as connection:
            return read_log(self._store, bisects.load(connection, self._bisect.uid))

    def begin_session(self, uid: str) -> None:
        """From now on rounds are of this session."""
        self.write(EventKind.SESSION, {}, session=uid)
        self._session, self._rounds = uid, 0

    def write(self, kind: EventKind, detail: Mapping[str, Any], session: str | None = None) -> None:
        """Add a line."""
        if session is None and self._session:
            session, detail = self._session, {**detail, "after_round": self._rounds}
        when = self._now()
        with self._store.database.writing() as connection:
            bisects.append(connection, self._bisect, kind, detail, when, session)
        tell(self.search, BisectEvent(0, kind, session, detail, when))

    def take_round(self, uid: str, number: int) -> None:
        """Tell the search of a round that is in the history. Raises MetricError when its metric is not."""
        session = self._store.latest_session((), uid=uid)
        assert session is not None
        runs = self._store.runs(session.id, (), {self.question.metric})
        its = [run for run in runs if run.repetition == number]
        found = rounds_of_runs(uid, its, self.span, self.question)
        for each in found:
            tell(self.search, each)
        self._rounds = number
        finished = [run.version for run in its if run.status is RunStatus.FINISHED]
        if not found and self.span.versions[0] in finished and len(finished) > 1:
            values = [run.values for run in self._store.runs(session.id) if run.repetition == number]
            self._refuse_metric({name for each in values for name, value in each.items() if value > 0})

    def conclude(self, verdict: SearchVerdict) -> None:
        """Write the verdict, with the observations that it rests on."""
        kept = observations(self.log.all_rounds())
        self._session = ""
        detail = {"verdict": asdict(verdict), "observations": kept, "alternatives": self.search.alternatives}
        self.write(EventKind.VERDICT, detail)

    def worth_compiling(self, count: int) -> list[int]:
        """At most so many positions that are likely to be asked for; none that is compiled or excluded."""
        if any(True for _ in self.log.all_rounds()):
            return list(self.search.likely_next(count))
        unusable = {
            place
            for event in self.log.bisect.events
            for place in (*event.detail.get("positions", ()), event.detail.get("position"))
        }
        return [place for place in halves(self.span.length) if place not in unusable][:count]

    def told(self, positions: Sequence[int]) -> str:
        """What is known of positions after their rounds, and where the change is likeliest."""
        levels = ", ".join("{:.3f} ({:.3f}–{:.3f})".format(*self.search.level(place)) for place in positions)
        posterior = self.search.posterior
        likeliest = int(posterior[1:].argmax()) + 1
        point = self.span.points[likeliest]
        return f"{levels} times good; likeliest {point.short}, {posterior[likeliest]:.0%}"

    def _refuse_metric(self, recorded: set[str]) -> None:
        metric = self.question.metric
        raise MetricError(
            f"{self.question.step} has no {metric} above zero on this machine, so that there is no ratio",
            where="--metric",
            hint=f"above zero are: {', '.join(sorted(recorded))}",
        )

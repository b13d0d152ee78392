"""What is known of a bisect, for whoever tells it: verdict, points, and what was not measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from build.version import Version
from history.store.bisects import EventKind
from history.store.writer import Store
from runners.bisect.domain.question import BisectPoint
from runners.bisect.domain.rules import LevelStep, SearchVerdict
from runners.bisect.inference.search import Search
from runners.bisect.run.event_log import Log, follow, observations
from suites.metrics import METRICS, Metric

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential

FORMAT = 1
"""Of the JSON that `replay` reads."""


@dataclass(frozen=True)
class Measured:
    """A position with rounds."""

    position: int
    point: BisectPoint
    ratio: float
    """To good: posterior median."""

    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class BisectState:
    """A bisect as it is now."""

    log: Log
    differential: "Differential | None" = None
    """Of culprit against what comes before it, when they were profiled."""

    @cached_property
    def search(self) -> Search:
        """At the end of the log."""
        return follow(self.log)

    @property
    def metric(self) -> Metric:
        """That is searched by."""
        return METRICS[self.log.question.metric]

    @cached_property
    def verdict(self) -> SearchVerdict | None:
        """As it was given; None while there is none."""
        kept = self.log.bisect.verdict
        return None if kept is None else verdict_of(kept["verdict"])

    @cached_property
    def rounds(self) -> int:
        """That were measured."""
        return sum(1 for _ in self.log.all_rounds())

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """Rounds by position."""
        found: dict[int, int] = {}
        for each in self.log.all_rounds():
            for place in each.log_ratios:
                found[place] = found.get(place, 0) + 1
        return found

    def measured(self) -> Iterator[Measured]:
        """The positions with rounds, in order; good, which is 1, apart."""
        for place in sorted(self.counts):
            yield Measured(place, self.point(place), *self.search.level(place), self.counts[place])

    @cached_property
    def posterior(self) -> tuple[float, ...]:
        """By position, that of no single culprit at 0; empty while nothing is measured."""
        return tuple(map(float, self.search.posterior)) if self.counts else ()

    def likeliest(self, count: int, least: float) -> list[tuple[int, float]]:
        """At most so many positions with at least so much of the posterior, in order."""
        posterior = self.posterior
        first = sorted(range(1, len(posterior)), key=lambda place: (-posterior[place], place))[:count]
        return [(place, posterior[place]) for place in sorted(first) if posterior[place] >= least]

    def excluded(self) -> Iterator[tuple[BisectPoint, str]]:
        """What does not compile or start, and why."""
        for event in self.log.bisect.events:
            if event.kind is EventKind.EXCLUDED:
                yield self.point(event.detail["position"]), event.detail["reason"]

    def point(self, position: int) -> BisectPoint:
        """A position's."""
        return self.log.span.points[position]

    def blamed(self) -> Sequence[BisectPoint]:
        """The commits that the verdict names: one, those of a range, the two of two steps, or none."""
        verdict = self.verdict
        if verdict is None:
            return ()
        if verdict.kind == "two-steps":
            return [self.point(each.high) for each in verdict.steps]
        if verdict.kind in ("culprit", "range"):
            return self.log.span.points[verdict.low + 1 : verdict.high + 1]
        return ()

    def pair(self) -> tuple[Version, Version]:
        """What shows the change best: before and after it, else good and bad."""
        verdict = self.verdict
        placed = verdict is not None and verdict.kind in ("culprit", "range")
        low, high = (verdict.low, verdict.high) if verdict and placed else (0, self.log.span.length)
        return self.point(low).parsed, self.point(high).parsed


def account_of(store: Store, log: Log) -> BisectState:
    """With the profiles that the history holds."""
    return BisectState(log, _differential(store, log))


def export(account: BisectState) -> dict[str, Any]:
    """Everything, as JSON; `log_of` reads it again."""
    log = account.log
    bisect, verdict = log.bisect, account.verdict
    events = [
        {
            "number": each.number,
            "kind": each.kind,
            "session": each.session,
            "detail": {name: value for name, value in each.detail.items() if name != "observations"},
            "at": each.happened_at.isoformat(),
        }
        for each in bisect.events
    ]
    return {
        "tidemark": "bisect",
        "format": FORMAT,
        "uid": bisect.uid,
        "machine": asdict(bisect.machine),
        "question": dict(bisect.question),
        "span": dict(bisect.span),
        "change": bisect.change,
        "began_at": bisect.began_at.isoformat(),
        "events": events,
        "observations": observations(log.all_rounds()),
        "verdict": None if verdict is None else asdict(verdict),
        "blamed": [asdict(each) for each in account.blamed()],
        "measured": [asdict(each) for each in account.measured()],
        "posterior": [round(each, 6) for each in account.posterior],
    }


def verdict_of(kept: Mapping[str, Any]) -> SearchVerdict:
    """A verdict as `asdict` wrote it, which JSON has in lists."""
    rest = kept.get("rest")  # those of the first Tidemarks know of none
    read = {
        "interval": tuple(kept["interval"]),
        "steps": tuple(map(_step_of, kept["steps"])),
        "rest": None if rest is None else _step_of(rest),
    }
    return SearchVerdict(**{**kept, **read})


def _step_of(kept: Mapping[str, Any]) -> LevelStep:
    return LevelStep(**{**kept, "interval": tuple(kept["interval"])})


def _differential(store: Store, log: Log) -> "Differential | None":
    account = BisectState(log)
    uids = [each.session for each in log.bisect.events if each.kind is EventKind.PROFILED]
    session = store.latest_session((), uid=uids[-1]) if uids else None
    if session is None:
        return None
    from history.comparison.profile_diff import differential

    rounds = [store.profiles(session.id, log.question.step, version) for version in account.pair()]
    return differential(*rounds) if all(rounds) else None

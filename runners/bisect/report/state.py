"""The state of a bisect, for reports: its verdict, its positions, and what could not be measured."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from build.version import Version
from history.comparison.verdict import Judged
from history.rendering.json_text import metric_values
from history.store.bisects import EventKind
from history.store.reader import Reader
from runners.bisect.domain.question import BisectPoint
from runners.bisect.domain.rules import LevelStep, SearchVerdict, WholeDifference
from runners.bisect.inference.whole.search import WholeSearch
from runners.bisect.report.costs import changed_costs
from runners.bisect.run.event_log import Log, named_changes, observations, search_after
from suites.metrics import METRICS, Metric

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential

OBSERVATIONS = ("observations", "counted_observations")
"""The keys of rounds and counted passes, in a verdict's event and in what is exported."""

FORMAT = 1
"""The version of the JSON format that `replay` reads."""


@dataclass(frozen=True)
class MeasuredPosition:
    """A position that has rounds."""

    position: int
    point: BisectPoint
    ratio: float
    """The ratio to good; posterior median."""

    low: float
    high: float
    """The interval of the ratio, with the confidence of the question."""

    rounds: int


@dataclass(frozen=True)
class BisectState:
    """A bisect as its log describes it."""

    log: Log
    differentials: "Mapping[int, Differential]" = field(default_factory=dict)
    """Position of a commit that the verdict names -> its profile against that of the commit before it, where
    they were profiled; ascending."""

    costs: Mapping[int, Sequence[Judged]] = field(default_factory=dict)
    """Position of a commit that the verdict names -> the costs that moved with it; ascending."""

    @cached_property
    def search(self) -> WholeSearch:
        """The search at the end of the log."""
        return search_after(self.log)

    @property
    def metric(self) -> Metric:
        """The metric of the question."""
        return METRICS[self.log.question.metric]

    @cached_property
    def verdict(self) -> SearchVerdict | None:
        """The stored verdict; None while there is none."""
        kept = self.log.bisect.verdict
        return None if kept is None else verdict_of(kept["verdict"])

    @cached_property
    def rounds(self) -> int:
        """The number of measured rounds."""
        return sum(1 for _ in self.log.all_rounds())

    @property
    def round_name(self) -> str:
        """What one of its rounds is called: of a metric that is counted it is a pass."""
        return "pass" if self.log.question.is_counted else "round"

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """The number of rounds by position, without good."""
        counts: dict[int, int] = {}
        for entry in self.log.all_rounds():
            for place in entry.log_ratios:
                counts[place] = counts.get(place, 0) + 1
        return counts

    @cached_property
    def passes(self) -> int:
        """The number of counted passes that guided the search."""
        return sum(1 for _ in self.log.passes())

    def counted(self) -> Iterator[MeasuredPosition]:
        """Yield the positions with counted passes, in order, with ratios of counts and numbers of passes."""
        numbers = Counter(place for entry in self.log.passes() for place in entry.log_ratios)
        if self.search.counts is not None:
            for place, number in sorted(numbers.items()):
                yield MeasuredPosition(place, self.point(place), *self.search.counted_level(place), number)

    def measured(self) -> Iterator[MeasuredPosition]:
        """Yield the positions with rounds, in order, without good, whose ratio is 1."""
        for place in sorted(self.counts):
            yield MeasuredPosition(place, self.point(place), *self.search.level(place), self.counts[place])

    @cached_property
    def posterior(self) -> tuple[float, ...]:
        """The posterior by position, at 0 that of no single culprit; empty before the first round."""
        return tuple(map(float, self.search.posterior)) if self.counts else ()

    @cached_property
    def names_several(self) -> bool:
        """Whether several steps make up the difference: the posterior is that of a single place."""
        verdict = self.verdict
        return verdict is not None and len(verdict.steps) > 1

    def chances(self) -> Sequence[float]:
        """Return the probability of each position to have a change that the verdict names; 0 at good.

        Without a verdict it is that of a single place, as in `posterior`.
        """
        if not self.names_several or self.verdict is None:
            return (0.0, *self.posterior[1:])
        chances = [0.0] * len(self.log.span.points)
        for step in self.verdict.steps:
            for place in step.suspects:
                chances[place] = step.confidence / len(step.suspects)
        return chances

    def likeliest(self, count: int, least: float) -> list[tuple[int, float]]:
        """Return at most `count` positions with a posterior of at least `least`, in order of position."""
        posterior = self.posterior
        first = sorted(range(1, len(posterior)), key=lambda place: (-posterior[place], place))[:count]
        return [(place, posterior[place]) for place in sorted(first) if posterior[place] >= least]

    def excluded(self) -> Iterator[tuple[BisectPoint, str]]:
        """Yield the points that do not compile or start, with the reason."""
        for event in self.log.bisect.events:
            if event.kind is EventKind.EXCLUDED and not event.detail.get("counted"):
                yield self.point(event.detail["position"]), event.detail["reason"]

    def point(self, position: int) -> BisectPoint:
        """Return the point at a position."""
        return self.log.span.points[position]

    def blamed(self) -> Sequence[BisectPoint]:
        """Return the commits that the verdict names; none while there is none."""
        return [] if self.verdict is None else [self.point(place) for place in self.verdict.blamed]

    def pair(self) -> tuple[Version, Version]:
        """Return the versions before and after the change; good and bad without one, or with several."""
        changes = named_changes(self.log)
        low, high = changes[0] if len(changes) == 1 else (0, self.log.span.length)
        return self.point(low).parsed, self.point(high).parsed


def load_state(store: Reader, log: Log) -> BisectState:
    """Return the state of a bisect with the profiles and the costs that the history holds."""
    return BisectState(log, _differentials(store, log), changed_costs(store, log))


def export(state: BisectState) -> dict[str, Any]:
    """Return the whole bisect as JSON, which `replay.read_file` reads."""
    log = state.log
    bisect, verdict = log.bisect, state.verdict
    events = [
        {
            "number": event.number,
            "kind": event.kind,
            "session": event.session,
            "detail": {name: value for name, value in event.detail.items() if name not in OBSERVATIONS},
            "at": event.happened_at.isoformat(),
        }
        for event in bisect.events
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
        "counted_observations": observations(log.passes()),
        "verdict": None if verdict is None else verdict.to_json(),
        "blamed": [asdict(point) for point in state.blamed()],
        "measured": [asdict(position) for position in state.measured()],
        "posterior": [round(share, 6) for share in state.posterior],
        "costs": {
            state.point(place).version: {cost.metric: metric_values(cost) for cost in costs}
            for place, costs in state.costs.items()
        },
    }


def verdict_of(kept: Mapping[str, Any]) -> SearchVerdict:
    """Read a verdict that `asdict` wrote, with lists in place of tuples."""
    rest = kept.get("rest")  # the first versions of Tidemark stored none
    read = {
        "interval": tuple(kept["interval"]),
        "steps": tuple(map(_step_of, kept["steps"])),
        "rest": None if rest is None else _step_of(rest),
        "undone": tuple(map(_step_of, kept.get("undone", ()))),
        "among": tuple(kept.get("among", ())),
        "whole": None if kept.get("whole") is None else _whole_of(kept["whole"]),
    }
    return SearchVerdict(**{**kept, **read})


def _step_of(kept: Mapping[str, Any]) -> LevelStep:
    read = {"interval": tuple(kept["interval"]), "among": tuple(kept.get("among", ()))}
    return LevelStep(**{**kept, **read})


def _whole_of(kept: Mapping[str, Any]) -> WholeDifference:
    read = {
        "interval": tuple(kept["interval"]),
        "explained_interval": tuple(kept["explained_interval"]),
        "unexplained_interval": tuple(kept["unexplained_interval"]),
        "parts": tuple(map(_step_of, kept["parts"])),
    }
    return WholeDifference(**{**kept, **read})


def _differentials(store: Reader, log: Log) -> "Mapping[int, Differential]":
    state = BisectState(log)
    profiled = [event.session for event in log.bisect.events if event.kind is EventKind.PROFILED]
    latest = reversed(profiled)  # samples that were asked for after the counts
    sessions = [session for uid in latest if (session := store.latest_session((), uid=uid)) is not None]
    if not sessions:
        return {}
    from history.comparison.profile_diff import differential

    found = {}
    for low, high in named_changes(log):
        versions = [state.point(place).parsed for place in (low, high)]
        for session, read in product(sessions, (store.profiles, store.counted_profiles)):
            rounds = [read(session.id, log.question.step, version) for version in versions]
            if all(rounds):
                found[high] = differential(*rounds)
                break
    return found

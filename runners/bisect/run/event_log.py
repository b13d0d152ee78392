"""The log of a bisect with what its sessions measured: all that the state of a search is made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

from history.store.bisects import Bisect, BisectEvent, EventKind
from history.store.records import Run, RunStatus
from history.store.writer import Store
from runners.bisect.domain.question import CandidateRange, Question, rules_of
from runners.bisect.domain.rules import Observation
from runners.bisect.inference.search import Search


@dataclass(frozen=True)
class Round:
    """One round that was finished: good, and other positions interleaved with it."""

    session: str
    """Uid."""

    number: int
    """Within the session, from 1."""

    log_ratios: Mapping[int, float]
    """By position: ln(value / value of good)."""


Entry = BisectEvent | Round


@dataclass(frozen=True)
class Log:
    """A bisect, and the rounds of its sessions."""

    bisect: Bisect
    rounds: Mapping[str, Sequence[Round]]
    """By session, in order."""

    @property
    def question(self) -> Question:
        """What was asked."""
        return Question.of_json(self.bisect.question)

    @property
    def span(self) -> CandidateRange:
        """What may be answered."""
        return CandidateRange.of_json(self.bisect.span)

    def entries(self) -> Iterator[Entry]:
        """Events and rounds in the order in which the search was told of them."""
        session, given = "", 0
        for event in self.bisect.events:
            if event.session == session and event.kind is not EventKind.SESSION:
                upto = int(event.detail.get("after_round", 0))
            else:
                upto = None
            for each in self._of(session, given, upto):
                given = each.number
                yield each
            if event.kind is EventKind.SESSION:
                session, given = event.session or "", 0
            yield event
        yield from self._of(session, given, None)

    def all_rounds(self) -> Iterator[Round]:
        """In order."""
        yield from (each for each in self.entries() if isinstance(each, Round))

    def _of(self, session: str, after: int, upto: int | None) -> Iterator[Round]:
        for each in self.rounds.get(session, ()):
            if each.number > after and (upto is None or each.number <= upto):
                yield each


def read_log(store: Store, bisect: Bisect) -> Log:
    """The log as the history has it; of a bisect with a verdict with the observations that it rests on."""
    if bisect.verdict is not None:
        return answered(bisect)
    span, question = CandidateRange.of_json(bisect.span), Question.of_json(bisect.question)
    found = {}
    for uid in bisect.sessions:
        session = store.latest_session((), uid=uid)
        runs = () if session is None else store.runs(session.id, (), {question.metric})
        found[uid] = rounds_of_runs(uid, runs, span, question)
    return Log(bisect, found)


def answered(bisect: Bisect) -> Log:
    """The log of a bisect with a verdict, whose observations it holds."""
    assert bisect.verdict is not None
    return Log(bisect, rounds_of_observations(bisect.verdict["observations"]))


def rounds_of_runs(uid: str, runs: Iterable[Run], span: CandidateRange, question: Question) -> list[Round]:
    """The rounds of a session in which good and another position finished."""
    positions = {version: position for position, version in enumerate(span.versions)}
    by_number: dict[int, dict[int, float]] = {}
    for run in runs:
        value = run.values.get(question.metric, 0.0)
        position = positions.get(run.version)
        if (
            run.status is RunStatus.FINISHED
            and run.step == question.step
            and position is not None
            and value > 0
        ):
            by_number.setdefault(run.repetition, {})[position] = value
    found = []
    for number, values in sorted(by_number.items()):
        ratios = {
            place: log(value / values[0]) for place, value in sorted(values.items()) if place and 0 in values
        }
        if ratios and all(map(isfinite, ratios.values())):
            found.append(Round(uid, number, ratios))
    return found


def observations(rounds: Iterable[Round]) -> list[list[Any]]:
    """Rounds as JSON: session, round, position, log ratio."""
    return [
        [each.session, each.number, place, ratio]
        for each in rounds
        for place, ratio in each.log_ratios.items()
    ]


def rounds_of_observations(kept: Iterable[Sequence[Any]]) -> dict[str, list[Round]]:
    """What `observations` wrote, by session. Raises ValueError for what it did not."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for session, number, position, ratio in kept:
        found.setdefault((str(session), int(number)), {})[int(position)] = float(ratio)
    by_session: dict[str, list[Round]] = {}
    for (session, number), ratios in found.items():
        by_session.setdefault(session, []).append(Round(session, number, ratios))
    return by_session


# --- the search


def new_search(bisect: Bisect) -> Search:
    """A search that was told of nothing yet."""
    kept = bisect.question
    return Search(CandidateRange.of_json(bisect.span).length, rules_of(kept), kept["build_cost_rounds"])


def tell(search: Search, entry: Entry) -> None:
    """Give the search one entry of its log."""
    if isinstance(entry, Round):
        for position, ratio in entry.log_ratios.items():
            search.observe(Observation(position, ratio))
    elif entry.kind is EventKind.BUILT:
        for position in entry.detail["positions"]:
            search.built(position)
    elif entry.kind is EventKind.EXCLUDED:
        search.exclude(entry.detail["position"])


def follow(whole: Log) -> Search:
    """The search as it stands at the end of a log."""
    search = new_search(whole.bisect)
    for entry in whole.entries():
        tell(search, entry)
    return search

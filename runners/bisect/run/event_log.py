"""The log of a bisect with the rounds of its sessions, from which the state of its search is rebuilt."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log
from typing import Any

from history.store.bisects import GOES_ON, Bisect, BisectEvent, EventKind
from history.store.reader import Reader
from history.store.records import Run, RunStatus
from runners.bisect.domain.ancestry import ancestry_of
from runners.bisect.domain.question import CandidateRange, Question, counted_rules_of, rules_of
from runners.bisect.domain.rules import Observation
from runners.bisect.inference.whole.search import WholeSearch
from suites.metrics import METRICS


@dataclass(frozen=True)
class Round:
    """One finished round: good, and other positions interleaved with it."""

    session: str
    """The uid of its session."""

    number: int
    """Its number within the session, from 1."""

    log_ratios: Mapping[int, float]
    """By position, without good: ln(value / value of good)."""

    counted: bool = False
    """Whether it is a counted pass that guides the search, and the values are its counts."""


Entry = BisectEvent | Round


@dataclass(frozen=True)
class Log:
    """A bisect and the rounds of its sessions."""

    bisect: Bisect
    rounds: Mapping[str, Sequence[Round]]
    """The rounds by session, in order."""

    @property
    def question(self) -> Question:
        """The question of the bisect."""
        return Question.of_json(self.bisect.question)

    @property
    def span(self) -> CandidateRange:
        """The candidates between good and bad."""
        return CandidateRange.of_json(self.bisect.span)

    def entries(self) -> Iterator[Entry]:
        """Yield events and rounds in the order in which the search took them in."""
        session, last = "", 0
        for event in self.bisect.events:
            if event.session == session and event.kind is not EventKind.SESSION:
                upto = int(event.detail.get("after_round", 0))
            else:
                upto = None
            for entry in self._of(session, last, upto):
                last = entry.number
                yield entry
            if event.kind is EventKind.SESSION:
                session, last = event.session or "", 0
            yield event
        yield from self._of(session, last, None)

    def all_rounds(self) -> Iterator[Round]:
        """Yield the rounds of the metric in order, without counted passes that guide the search."""
        yield from (entry for entry in self.entries() if isinstance(entry, Round) and not entry.counted)

    def passes(self) -> Iterator[Round]:
        """Yield the counted passes that guide the search, in order."""
        yield from (entry for entry in self.entries() if isinstance(entry, Round) and entry.counted)

    def _of(self, session: str, after: int, upto: int | None) -> Iterator[Round]:
        for entry in self.rounds.get(session, ()):
            if entry.number > after and (upto is None or entry.number <= upto):
                yield entry


def read_log(store: Reader, bisect: Bisect) -> Log:
    """Read the log of a bisect; with a verdict its rounds are those that the verdict is based on.

    If the search goes on after that, the rounds since are those of its sessions.
    """
    known = kept_rounds(bisect)
    if not bisect.is_open:
        return answered(bisect)
    span, question = CandidateRange.of_json(bisect.span), Question.of_json(bisect.question)
    rounds = {}
    for uid in bisect.sessions:
        session = store.latest_session((), uid=uid)
        runs = () if session is None else store.runs(session.id, (), question.metrics)
        # Runs of a session before a verdict may have been pruned since.
        stored = {_in_order(entry): entry for entry in rounds_of_runs(uid, runs, span, question)}
        stored |= {_in_order(entry): entry for entry in known.get(uid, ())}
        rounds[uid] = [stored[place] for place in sorted(stored)]
    return Log(bisect, rounds)


def answered(bisect: Bisect) -> Log:
    """Return the log of a bisect with a verdict from the observations that are stored with it."""
    return Log(bisect, kept_rounds(bisect))


def kept_rounds(bisect: Bisect) -> dict[str, list[Round]]:
    """Return the rounds that the last verdict was stored with, by session; none without one."""
    kept = bisect.verdict
    if kept is None:
        return {}
    return rounds_of_observations(kept["observations"], kept.get("counted_observations", ()))


def rounds_of_runs(uid: str, runs: Sequence[Run], span: CandidateRange, question: Question) -> list[Round]:
    """Return the rounds of a session in which good and at least one other position finished, in order."""
    rounds = _of_metric(uid, runs, span, question, question.metric)
    evidence = METRICS[question.metric].evidence
    passes = _of_metric(uid, runs, span, question, evidence) if evidence else []
    return sorted([*rounds, *(replace(event, counted=True) for event in passes)], key=_in_order)


def _in_order(entry: Round) -> tuple[int, bool]:
    return entry.number, entry.counted


def _of_metric(
    uid: str, runs: Iterable[Run], span: CandidateRange, question: Question, metric: str
) -> list[Round]:
    positions = {version: position for position, version in enumerate(span.versions)}
    by_number: dict[int, dict[int, float]] = {}
    for run in runs:
        value = run.values.get(metric, 0.0)
        position = positions.get(run.version)
        if (
            run.status is RunStatus.FINISHED
            and run.step == question.step
            and position is not None
            and value > 0
        ):
            by_number.setdefault(run.repetition, {})[position] = value
    rounds = []
    for number, values in sorted(by_number.items()):
        ratios = {
            place: log(value / values[0]) for place, value in sorted(values.items()) if place and 0 in values
        }
        if ratios and all(map(isfinite, ratios.values())):
            rounds.append(Round(uid, number, ratios))
    return rounds


def observations(rounds: Iterable[Round]) -> list[list[Any]]:
    """Return rounds as JSON lists of session, round, position and log ratio."""
    return [
        [entry.session, entry.number, place, ratio]
        for entry in rounds
        for place, ratio in entry.log_ratios.items()
    ]


def rounds_of_observations(
    kept: Iterable[Sequence[Any]], counted: Iterable[Sequence[Any]] = ()
) -> dict[str, list[Round]]:
    """Read what `observations` wrote of rounds and of counted passes, by session.

    Raises ValueError for anything else.
    """
    by_round: dict[tuple[str, int, bool], dict[int, float]] = {}
    for is_pass, written in ((False, kept), (True, counted)):
        for session, number, position, ratio in written:
            by_round.setdefault((str(session), int(number), is_pass), {})[int(position)] = float(ratio)
    by_session: dict[str, list[Round]] = {}
    for (session, number, is_pass), ratios in by_round.items():
        by_session.setdefault(session, []).append(Round(session, number, ratios, is_pass))
    return {session: sorted(rounds, key=_in_order) for session, rounds in by_session.items()}


# --- the search


def new_search(bisect: Bisect) -> WholeSearch:
    """Return the search of a bisect before its first entry."""
    kept = bisect.question
    span = CandidateRange.of_json(bisect.span)
    ancestry = ancestry_of(span.parents)
    return WholeSearch(
        span.length, rules_of(kept), kept["build_cost_rounds"], counted_rules_of(kept), ancestry
    )


def apply_entry(search: WholeSearch, entry: Entry) -> None:
    """Apply one entry of the log to the search."""
    if isinstance(entry, Round):
        for position, ratio in entry.log_ratios.items():
            search.observe(Observation(position, ratio, entry.counted))
    elif entry.kind is EventKind.BUILT:
        for position in entry.detail["positions"]:
            search.built(position)
    elif entry.kind is EventKind.EXCLUDED:
        # A pass that failed says nothing of rounds.
        leave = search.leave_uncounted if entry.detail.get("counted") else search.exclude
        leave(entry.detail["position"])
    elif entry.kind is EventKind.VERDICT and entry.detail.get(GOES_ON):
        search.go_on()


def search_after(whole: Log) -> WholeSearch:
    """Return the search at the end of a log."""
    search = new_search(whole.bisect)
    for entry in whole.entries():
        apply_entry(search, entry)
    return search


def named_changes(log: Log) -> list[tuple[int, int]]:
    """Return the positions before and after each change that the verdict of a log names."""
    verdict = (log.bisect.verdict or {}).get("verdict", {})
    match verdict.get("kind"):
        case "culprit" | "range":
            named = [verdict]
        case "two-steps" | "several-steps":
            named = verdict["steps"]
        case _:
            named = []
    return [(step["low"], step["high"]) for step in named]

"""False findings of equal builds: in the sessions that were recorded, and in longer ones joined from them.

A joined session has rounds that followed each other, with the names that they were measured under: what
lasts over rounds, or belongs to one of two servers, is in it as in a session of so many rounds. No two share
a round, so that the share of them with a false finding has the bounds of independent ones.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.kinds.equal_sessions import BASE, SESSIONS, EqualSession, equal_sessions, history_of_equals
from benchmarks.output.figures import Figure
from benchmarks.output.intervals import upper_bound
from build.home import Home
from build.version import Version
from history.comparison.compare import compare
from history.comparison.finding import Bearing
from history.comparison.options import CompareOptions
from history.comparison.verdict import Verdict
from history.open import open_reader
from history.stats.distributions import binomial_tail
from history.store.database import Database
from history.store.reader import Reader
from history.store.records import Run, RunStatus

FALSE_PERCENT = {"finding": 1.0, "verdict": 2.0}
"""The share of sessions of equal builds that may have a false one: of findings any, of verdicts 1 % a
direction."""

CONFIDENCE = 0.95
ROUNDS = (5, 10, 20)
"""The rounds of joined sessions; recorded ones have fewer."""

Rounds = Mapping[str, Sequence[Sequence[Run]]]
"""Step -> rounds -> the runs of both names."""


class JoinedHistory(Reader):
    """The history of equal builds in which a session has other runs: those that were joined."""

    def __init__(self, database: Database, joined: Sequence[Run]) -> None:
        super().__init__(database)
        self._joined = joined

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """Return the joined runs, as `Reader.runs` returns those of a session."""
        names = set(map(str, versions))
        chosen = (run for run in self._joined if not names or run.version in names)
        return tuple(
            replace(run, values={name: value for name, value in run.values.items() if name in metrics})
            if metrics
            else run
            for run in chosen
        )


def clean_figures(home: Home) -> Iterator[Figure]:
    """Yield how many recorded sessions, and how many joined ones, have a false finding or verdict."""
    with open_reader(history_of_equals(home)) as history:
        recorded = equal_sessions(history)
        yield Figure("equal builds: recorded sessions", len(recorded), "", at_least=SESSIONS)
        if not recorded:
            return
        yield from _figures("recorded sessions", [false_told(history, equal) for equal in recorded])
        rounds = rounds_of(history, recorded)
        for number in ROUNDS:
            template = replace(recorded[-1], session=replace(recorded[-1].session, repetitions=number))
            told = [
                false_told(JoinedHistory(history.database, runs), template)
                for runs in joined_runs(rounds, number, template.contender)
            ]
            if told:
                yield from _figures(f"sessions joined to {number} rounds", told)


def _figures(what: str, told: Sequence[Mapping[str, Sequence[str]]]) -> Iterator[Figure]:
    """Yield how many of some sessions have a false finding and verdict, and what share that leaves possible.

    It is a miss if so many would be found in fewer than 5 % of cases at the promised share.
    """
    for which, percent in FALSE_PERCENT.items():
        false = [found[which] for found in told if found[which]]
        bound = upper_bound(len(false), len(told), CONFIDENCE)
        yield Figure(
            f"equal builds: {what} with a false {which}",
            len(false),
            f"of {len(told)}",
            at_most=most_likely(len(told), percent / 100),
            note=f"at most {100 * bound:.1f} % with {100 * CONFIDENCE:.0f} % confidence{_most(false)}",
        )


def most_likely(trials: int, share: float) -> int:
    """Return the largest count that is reached in 5 % of cases where each of so many has the given chance."""
    return max(
        count for count in range(trials + 1) if binomial_tail(count, trials - count, share) >= 1 - CONFIDENCE
    )


def false_told(history: Reader, equal: EqualSession) -> Mapping[str, Sequence[str]]:
    """Return the findings and the verdicts of a change in a session of equal builds, for worse or better."""
    told: dict[str, list[str]] = {which: [] for which in FALSE_PERCENT}
    comparison = compare(history, BASE, [equal.contender], CompareOptions(session=equal.session.uid))
    for compared in comparison.contenders:
        for step in compared.steps:
            if step.judged.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
                told["verdict"].append(f"{step.judged.metric} of {step.step}")
            told["finding"] += [
                f"{finding.metric or finding.source} of {finding.step}"
                for finding in step.findings
                if finding.bearing is not Bearing.TOLD
            ]
    return told


def rounds_of(history: Reader, recorded: Iterable[EqualSession]) -> Rounds:
    """Return the rounds that both names finished, in the order in which they were measured, by step."""
    found: dict[str, list[Sequence[Run]]] = defaultdict(list)
    for equal in recorded:
        by_round: dict[tuple[str, int], list[Run]] = defaultdict(list)
        for run in history.runs(equal.session.id):
            if run.status is RunStatus.FINISHED:
                by_round[run.step, run.repetition].append(run)
        for (step, _), runs in sorted(by_round.items()):
            if len(runs) == 2:
                found[step].append(runs)
    return found


def joined_runs(rounds: Rounds, number: int, contender: Version) -> Iterator[list[Run]]:
    """Yield the runs of sessions of `number` rounds that followed each other, none of them in two sessions.

    All contenders are called `contender`.
    """
    for begin in range(0, min(map(len, rounds.values())) - number + 1, number):
        yield [
            replace(run, version=str(BASE if run.version == str(BASE) else contender), repetition=repetition)
            for of_step in rounds.values()
            for repetition, runs in enumerate(of_step[begin : begin + number], start=1)
            for run in runs
        ]


def _most(false: Sequence[Sequence[str]]) -> str:
    """Return what was found most often, to follow another text."""
    counts = Counter(text for found in false for text in set(found))
    return "".join(f"; {text} in {count}" for text, count in counts.most_common(5))

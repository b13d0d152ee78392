"""False findings of equal builds: in the sessions that were recorded, and in many drawn from their rounds.

A drawn session takes rounds of each step from all recorded sessions, none of them twice, and gives the two
names to the runs of each round at random: equal builds may have had either.
"""

import random
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
from history.store.database import Database
from history.store.reader import Reader
from history.store.records import Run, RunStatus

FALSE_PERCENT = {"finding": 1.0, "verdict": 2.0}
"""The share of sessions of equal builds that may have a false one: of findings any, of verdicts 1 % a
direction."""

CONFIDENCE = 0.95
ROUNDS = (3, 5, 10, 20)
DRAWN = 400
"""Drawn sessions for each number of rounds."""

SEED = 20261125

Rounds = Mapping[str, Sequence[Sequence[Run]]]
"""Step -> rounds -> the runs of both names."""


class DrawnHistory(Reader):
    """The history of equal builds in which a session has other runs: those that were drawn."""

    def __init__(self, database: Database, drawn: Sequence[Run]) -> None:
        super().__init__(database)
        self._drawn = drawn

    def runs(
        self, session_id: int, versions: Sequence[Version] = (), metrics: Collection[str] = ()
    ) -> tuple[Run, ...]:
        """Return the drawn runs, as `Reader.runs` returns those of a session."""
        names = set(map(str, versions))
        chosen = (run for run in self._drawn if not names or run.version in names)
        return tuple(
            replace(run, values={name: value for name, value in run.values.items() if name in metrics})
            if metrics
            else run
            for run in chosen
        )


def clean_figures(home: Home) -> Iterator[Figure]:
    """Yield how many recorded sessions, and which share of drawn ones, have a false finding or verdict."""
    with open_reader(history_of_equals(home)) as history:
        recorded = equal_sessions(history)
        yield Figure("equal builds: recorded sessions", len(recorded), "", at_least=SESSIONS)
        if not recorded:
            return
        told = [false_told(history, equal) for equal in recorded]
        for which in FALSE_PERCENT:
            false = [found[which] for found in told if found[which]]
            bound = upper_bound(len(false), len(recorded), CONFIDENCE)
            note = f"at most {100 * bound:.1f} % with {100 * CONFIDENCE:.0f} % confidence{_most(false)}"
            yield Figure(f"equal builds: recorded sessions with a false {which}", len(false), "", note=note)
        rounds = rounds_of(history, recorded)
        available = min(map(len, rounds.values()))
        for number in (number for number in ROUNDS if number <= available):
            yield from _drawn_figures(history, recorded[-1], rounds, number)


def _drawn_figures(history: Reader, equal: EqualSession, rounds: Rounds, number: int) -> Iterator[Figure]:
    """Yield the shares of drawn sessions of `number` rounds; `equal` says what else a session has."""
    rng = random.Random(SEED + number)
    template = replace(equal, session=replace(equal.session, repetitions=number))
    told = [
        false_told(DrawnHistory(history.database, drawn_runs(rounds, number, equal.contender, rng)), template)
        for _ in range(DRAWN)
    ]
    for which, percent in FALSE_PERCENT.items():
        false = [found[which] for found in told if found[which]]
        name = f"equal builds: drawn sessions of {number} rounds with a false {which}"
        note = f"of {DRAWN}{_most(false)}"
        yield Figure(name, 100 * len(false) / DRAWN, "%", at_most=percent, note=note)


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
    """Return the rounds that both names finished, of all sessions, by step."""
    found: dict[str, list[Sequence[Run]]] = defaultdict(list)
    for equal in recorded:
        by_round: dict[tuple[str, int], list[Run]] = defaultdict(list)
        for run in history.runs(equal.session.id):
            if run.status is RunStatus.FINISHED:
                by_round[run.step, run.repetition].append(run)
        for (step, _), runs in by_round.items():
            if len(runs) == 2:
                found[step].append(runs)
    return found


def drawn_runs(rounds: Rounds, number: int, contender: Version, rng: random.Random) -> list[Run]:
    """Return the runs of a session of `number` rounds, its names given at random within each round."""
    drawn = []
    for of_step in rounds.values():
        for repetition, runs in enumerate(rng.sample(list(of_step), number), start=1):
            names = rng.sample((BASE, contender), 2)
            drawn += [
                replace(run, version=str(name), repetition=repetition)
                for run, name in zip(runs, names, strict=True)
            ]
    return drawn


def _most(false: Sequence[Sequence[str]]) -> str:
    """Return what was found most often, to follow another text."""
    counts = Counter(text for found in false for text in set(found))
    return "".join(f"; {text} in {count}" for text, count in counts.most_common(5))

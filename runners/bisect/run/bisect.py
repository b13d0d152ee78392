"""Carrying out a bisect: take up what there is, compile, measure until there is a verdict, and keep it."""

import math
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from build.build import Build
from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress
from build.version import Version
from history.store import bisects
from history.store.bisects import Bisect, EventKind
from history.store.records import Machine
from history.store.writer import Store
from runners.bisect.domain.question import CandidateRange, Question, step_of
from runners.bisect.domain.rules import SearchVerdict
from runners.bisect.run.builds import Provide, Unusable, build_of, built_already, provider
from runners.bisect.run.candidates import span_of
from runners.bisect.run.conductor import BisectError, Conductor
from runners.bisect.run.event_log import Log
from runners.bisect.run.recorder import Ledger
from runners.bisect.run.target_change import target_change
from runners.measuring.machine_facts import changes, describe
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.request import Request, Sampled
from runners.measuring.session import run_session
from suites.definition import Mode, Suite, load_suite

PROFILED_ROUNDS = 3
"""Of culprit and parent, so that it is known how much a function's share scatters."""


class OtherMachineError(TidemarkError):
    """A bisect goes on where it began, or not at all."""


@dataclass(frozen=True)
class BisectRequest:
    """What a person asked for."""

    question: Question
    address: str | None
    """Of the git source, with user name and password; None for a list of releases."""

    budget_seconds: float = math.inf
    """After which no round begins."""

    build_ahead: int = 0
    """Likely positions that are compiled before anything is measured."""

    again: bool = False
    """Whether what is known of the same question does not count."""

    perf: bool = False
    """Whether culprit and parent are profiled in the end."""

    keep_disturbed: bool = False
    """Whether a disturbed round is taken instead of being measured again."""

    change: str | None = None
    """The fingerprint of the change that it looks for."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Edges:
    """What is neither history nor reasoning; tests have others."""

    provide: Provide
    run: Callable[..., object] = run_session
    machine: Callable[[Home], Machine] = lambda home: describe(home.path)
    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic


@dataclass
class Bisecting:
    """One call of the command. The history holds all of its state: another call goes on."""

    asked: BisectRequest
    home: Home
    store: Store
    progress: Progress
    edges: Edges

    def run(self) -> Log:
        """Go on until there is a verdict or the time is over; returns the log as it is then.

        Raises TidemarkError for what cannot be searched or measured, KeyboardInterrupt after cleaning up.
        """
        began = self.edges.monotonic()
        question = self.asked.question
        suite = load_suite(question.suite)
        step_of(suite, question.profile, question.step)
        with measuring_alone(self.home):
            span = span_of(question.engine, question.good, question.bad, self.asked.address, self.home)
            bisect = self._take_up(span)
            ledger = Ledger(self.store, bisect, self.edges.now)
            if bisect.verdict is None:
                self._search(bisect, ledger, suite, began + self.asked.budget_seconds)
            if self.asked.perf:
                self._profile(ledger, suite)
            return ledger.log

    # --- which bisect it is

    def _take_up(self, span: CandidateRange) -> Bisect:
        """The bisect of the same question and points on this machine, else a new one.

        Raises OtherMachineError when one began on another machine.
        """
        machine = self.edges.machine(self.home)
        same = [] if self.asked.again else list(self._same(span))
        here = [each for each in same if each.machine.fingerprint == machine.fingerprint]
        if here:
            known = "it has a verdict" if here[0].verdict else "gone on with"
            self.progress.note(f"bisect {here[0].uid}, begun {here[0].began_at:%Y-%m-%d %H:%M} UTC: {known}")
            return here[0]
        if same:
            raise _other_machine(same[0], machine)
        question = self.asked.question
        kept = question.to_json(question.rules())
        change = target_change(self.store, self.asked.change, question, span)
        with self.store.database.writing() as connection:
            uid, when = secrets.token_hex(4), self.edges.now()
            new = bisects.begin(connection, uid, machine, kept, span.to_json(), change, when)
        many = f"{span.length} candidates, {len(span.collapsed)} commits cannot matter"
        self.progress.note(f"bisect {uid}: {question.told}: {many}")
        return new

    def _same(self, span: CandidateRange) -> Iterator[Bisect]:
        with self.store.database.reading() as connection:
            for each in bisects.load_all(connection):
                same = Question.of_json(each.question) == self.asked.question
                if same and CandidateRange.of_json(each.span).versions == span.versions:
                    yield each

    # --- the search

    def _search(self, bisect: Bisect, ledger: Ledger, suite: Suite, deadline: float) -> None:
        if not isinstance(ledger.search.next(), SearchVerdict):
            self._measure(bisect, ledger, suite, deadline)
        found = ledger.search.next()
        if isinstance(found, SearchVerdict):
            ledger.conclude(found)

    def _measure(self, bisect: Bisect, ledger: Ledger, suite: Suite, deadline: float) -> None:
        span, question = ledger.span, ledger.question
        # Before anything is measured, so that what cannot be searched is known in minutes.
        ends = {span.points[place].parsed: self._end(span, place) for place in (0, span.length)}
        self._build_ahead(bisect, ledger)
        request = self._request(tuple(ends), suite, bisect)
        conductor = Conductor(
            ledger,
            question,
            step_of(suite, question.profile, question.step),
            self.home,
            self.progress,
            lambda place: self._build(span, place),
            deadline,
            self.edges.monotonic,
        )
        self.edges.run(request, self.home, self.store, self.progress, given=ends, conduct=conductor)

    def _end(self, span: CandidateRange, position: int) -> Build:
        """Good or bad, which have to be there. Raises BisectError."""
        found = self._build(span, position)
        if isinstance(found, Unusable):
            what = "good" if position == 0 else "bad"
            raise BisectError(
                f"{what} ({span.points[position].version}) {found.reason}",
                hint=f"name another --{what} that compiles",
            )
        return found

    def _build(self, span: CandidateRange, position: int) -> Build | Unusable:
        return build_of(span.points[position].parsed, self.asked.address, self.home, self.edges.provide)

    def _build_ahead(self, bisect: Bisect, ledger: Ledger) -> None:
        """What is compiled already is told once; what is likely is compiled while nothing is measured."""
        span = ledger.span
        if not bisect.events and (known := built_already(span, self.home)):
            ledger.write(EventKind.BUILT, {"positions": known})
        for position in ledger.worth_compiling(self.asked.build_ahead) if self.asked.build_ahead else ():
            found = self._build(span, position)
            if isinstance(found, Unusable):
                ledger.write(EventKind.EXCLUDED, {"position": position, "reason": found.reason})
            else:
                ledger.write(EventKind.BUILT, {"positions": [position]})

    def _request(self, versions: tuple[Version, ...], suite: Suite, bisect: Bisect) -> Request:
        question = self.asked.question
        return Request(
            versions=versions,
            suite=suite,
            profile_name=question.profile,
            steps=suite.select((question.step,)),
            repetitions=1,
            mode=Mode.ROUNDS,
            keep_disturbed=self.asked.keep_disturbed,
            seconds=question.seconds,
            git={} if self.asked.address is None else {question.engine: self.asked.address},
            bisect=bisect.uid,
        )

    # --- where the time went

    def _profile(self, ledger: Ledger, suite: Suite) -> None:
        """Profile culprit and parent, once."""
        log = ledger.log
        verdict = (log.bisect.verdict or {}).get("verdict", {})
        done = any(event.kind is EventKind.PROFILED for event in log.bisect.events)
        if verdict.get("kind") not in ("culprit", "range") or done:
            return
        pair = {
            log.span.points[verdict[end]].parsed: self._end(log.span, verdict[end]) for end in ("low", "high")
        }
        request = replace(
            self._request(tuple(pair), suite, log.bisect), perf=Sampled.AFTER, repetitions=PROFILED_ROUNDS
        )
        outcome = self.edges.run(request, self.home, self.store, self.progress, given=pair)
        ledger.write(EventKind.PROFILED, {}, session=str(getattr(outcome, "uid", "")))


def edges_of(home: Home, progress: Progress) -> Edges:
    """The real ones."""
    return Edges(provide=provider(home, progress))


def _other_machine(bisect: Bisect, machine: Machine) -> OtherMachineError:
    differs = "; ".join(changes(bisect.machine, machine))
    return OtherMachineError(
        f"bisect {bisect.uid} of the same question began on another machine: {bisect.machine.hostname}",
        where=differs,
        hint="go on with it there; or begin anew on this machine with --again: numbers of two do not mix",
    )

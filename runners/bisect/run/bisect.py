"""Carrying out a bisect: resume or begin it, compile, measure until there is a verdict, and store that."""

import math
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from build.errors import TidemarkError
from build.extension import Extension
from build.finished_build import Build
from build.home import Home
from build.progress import Progress, Silent
from build.version import Version, parse_version
from history.store import bisects
from history.store.bisects import Bisect, EventKind
from history.store.records import Machine
from history.store.writer import Store
from runners.bisect.domain.question import CandidateRange, Question, step_of
from runners.bisect.domain.rules import Rules, SearchVerdict
from runners.bisect.run.builds import Provide, Unusable, build_of, built_already, provider
from runners.bisect.run.candidates import candidate_range, extension_range
from runners.bisect.run.conductor import BisectError, Conductor
from runners.bisect.run.event_log import Log, named_changes
from runners.bisect.run.expected import expected_search
from runners.bisect.run.recorder import EventRecorder
from runners.bisect.run.target_change import target_change
from runners.measuring.machine_facts import changes, describe
from runners.measuring.machine_lock import measuring_alone
from runners.measuring.preparation import callgrind_of
from runners.measuring.request import Exact, Request, Sampled
from runners.measuring.session import run_session
from runners.measuring.variants import EVERY, Variants
from suites.additions.variant import UNCHANGED, Variant
from suites.definition import Suite, load_suite
from suites.generators.registry import build_programs_of
from suites.keys.profile import Mode

PROFILED_ROUNDS = 3
"""The profiled rounds of culprit and parent: enough to know how much the share of a function varies."""


class OtherMachineError(TidemarkError):
    """A bisect can only be resumed on the machine where it began."""


@dataclass(frozen=True)
class BisectRequest:
    """What was asked for on the command line."""

    question: Question
    address: str | None
    """The address of the git source, with user name and password; None for a list of releases."""

    budget_seconds: float = math.inf
    """The time after which no further round begins."""

    build_ahead: int = 0
    """The number of likely positions that are compiled before anything is measured."""

    again: bool = False
    """Whether a new bisect begins even if one of the same question exists."""

    perf: bool = False
    """Whether culprit and parent are profiled at the end by samples, also where counts tell functions."""

    keep_disturbed: bool = False
    """Whether a disturbed round is recorded instead of being measured again."""

    change: str | None = None
    """The fingerprint of the change whose culprit is searched for."""

    variant: Variant = UNCHANGED
    """What every position gets; `question.variant` records it."""

    extension: Extension | None = None
    """The extension whose commits are searched, without a ref; None for those of a server."""

    counts: bool = True
    """Whether instructions are counted first, where they tell of the metric and can be counted."""

    is_published: bool = False
    """Whether a branch or tag of the git source has to lead to good and bad."""

    whole: bool = False
    """Whether the search goes on after its first answer, until steps make up the whole difference."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Dependencies:
    """The functions that touch the machine and the clock; tests replace them."""

    provide: Provide
    provide_silently: Provide | None = None
    """The same without telling anything, in another process; None to compile nothing ahead."""
    callgrind: Callable[[Request, Progress], object | None] = callgrind_of
    run: Callable[..., object] = run_session
    machine: Callable[[Home], Machine] = lambda home: describe(home.path)
    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic


@dataclass
class BisectRun:
    """One call of the command. All state is in the history, so that the next call resumes it."""

    request: BisectRequest
    home: Home
    store: Store
    progress: Progress
    dependencies: Dependencies
    bisect: Bisect | None = field(default=None, init=False)
    """The one that is carried out; None until it is found or begun."""
    seconds: float = field(default=0.0, init=False)
    """How long this call searched, compiles included."""

    def run(self) -> Log:
        """Measure until there is a verdict or the time budget is exhausted; return the log.

        Raises TidemarkError for what cannot be searched or measured, KeyboardInterrupt after cleaning up.
        """
        began = self.dependencies.monotonic()
        question = self.request.question
        suite = question.measured_suite()
        step_of(suite, question.profile, question.step)
        with measuring_alone(self.home):
            span = self._span()
            bisect = self.bisect = self._find_or_begin(span)
            recorder = EventRecorder(self.store, bisect, span, self.dependencies.now)
            if bisect.verdict is None or (self.request.whole and recorder.search.has_more):
                self._search(bisect, recorder, suite, began + self.request.budget_seconds)
            self.seconds = self.dependencies.monotonic() - began
            self._profile(recorder, suite)
            return recorder.log

    def _span(self) -> CandidateRange:
        question, extension = self.request.question, self.request.extension
        if extension is not None:
            source = extension.mirror(self.home, self.progress)
            return extension_range(parse_version(question.server), source, question.good, question.bad)
        return candidate_range(
            question.engine,
            question.good,
            question.bad,
            self.request.address,
            self.home,
            self.progress,
            is_published=self.request.is_published,
        )

    # --- resuming or beginning

    def _find_or_begin(self, span: CandidateRange) -> Bisect:
        """Return the bisect of the same question and points on this machine, else a new one.

        Raises OtherMachineError when one began on another machine.
        """
        machine = self.dependencies.machine(self.home)
        same = [] if self.request.again else list(self._same_question(span))
        here = [bisect for bisect in same if bisect.machine.fingerprint == machine.fingerprint]
        if here:
            known = "resumed" if here[0].is_open else "it has a verdict"
            self.progress.note(
                f"bisect {here[0].uid}, begun on {here[0].began_at:%Y-%m-%d %H:%M} UTC: {known}"
            )
            return here[0]
        if same:
            raise _other_machine(same[0], machine)
        question = self.request.question
        kept = question.to_json(question.rules(), self._counted_rules(span))
        change = target_change(self.store, self.request.change, question, span)
        with self.store.database.writing() as connection:
            uid, when = secrets.token_hex(4), self.dependencies.now()
            new = bisects.begin(connection, uid, machine, kept, span.to_json(), change, when)
        many = f"candidates: {span.length}, commits that cannot change a server: {len(span.collapsed)}"
        self.progress.note(f"bisect {uid}: {question.summary}: {many}")
        return new

    def _counted_rules(self, span: CandidateRange) -> Rules | None:
        """Return the rules of the search by counts; None when nothing is counted, or cannot be."""
        counted = self.request.question.counted_rules() if self.request.counts else None
        if counted is None:
            return None
        question = self.request.question
        versions = (span.points[0].parsed, span.points[-1].parsed)
        request = replace(self._request(versions, question.measured_suite(), ""), exact=Exact.DRIVEN)
        return counted if self.dependencies.callgrind(request, self.progress) is not None else None

    def _same_question(self, span: CandidateRange) -> Iterator[Bisect]:
        with self.store.database.reading() as connection:
            for bisect in bisects.load_all(connection):
                same = Question.of_json(bisect.question) == self.request.question
                if same and CandidateRange.of_json(bisect.span).versions == span.versions:
                    yield bisect

    # --- the search

    def _search(self, bisect: Bisect, recorder: EventRecorder, suite: Suite, deadline: float) -> None:
        whole = self.request.whole
        if not isinstance(recorder.wanted(whole=whole), SearchVerdict):
            self._measure(bisect, recorder, suite, deadline)
        decision = recorder.wanted(whole=whole)
        if isinstance(decision, SearchVerdict):
            recorder.conclude(decision)

    def _measure(self, bisect: Bisect, recorder: EventRecorder, suite: Suite, deadline: float) -> None:
        span, question = recorder.span, recorder.question
        if not bisect.events:
            self.progress.note(self._expected(span))
        # Good and bad are built first, so that a range that cannot be searched fails within minutes.
        ends = {span.points[place].parsed: self._end(span, place) for place in (0, span.length)}
        self._build_ahead(bisect, recorder)
        request = self._request(tuple(ends), suite, bisect.uid, is_guided=recorder.search.is_counting)
        conductor = Conductor(
            recorder,
            question,
            step_of(suite, question.profile, question.step),
            self.home,
            self.progress,
            lambda place: self._build(span, place),
            deadline,
            self.dependencies.monotonic,
            whole=self.request.whole,
            compile_ahead=self._ahead_of(span),
        )
        self.dependencies.run(request, self.home, self.store, self.progress, given=ends, driver=conductor)

    def _expected(self, span: CandidateRange) -> str:
        name = self.request.extension.name if self.request.extension else ""
        built = 0 if name else len(built_already(span, self.home, self.request.variant))
        seconds = self.request.budget_seconds
        return expected_search(span, self.request.question.engine, built, self.home, seconds, name)

    def _end(self, span: CandidateRange, position: int) -> Build:
        """Return the build of good, bad or the culprit. Raises BisectError when it cannot be built."""
        build = self._build(span, position)
        if isinstance(build, Unusable):
            what = "good" if position == 0 else "bad"
            raise BisectError(
                f"{what} ({span.points[position].version}) {build.reason}",
                hint=f"name another --{what} that compiles",
            )
        return build

    def _build(self, span: CandidateRange, position: int) -> Build | Unusable:
        return build_of(
            span.points[position].parsed, self.request.address, self.home, self.dependencies.provide
        )

    def _ahead_of(self, span: CandidateRange) -> Callable[[int], Callable[[], object]] | None:
        provide = self.dependencies.provide_silently
        if provide is None:
            return None
        return lambda place: partial(provide, span.points[place].parsed, self.request.address)

    def _build_ahead(self, bisect: Bisect, recorder: EventRecorder) -> None:
        """Record once what is compiled already, and compile likely positions while nothing is measured."""
        span = recorder.span
        is_of_server = self.request.extension is None
        if (
            not bisect.events
            and is_of_server
            and (known := built_already(span, self.home, self.request.variant))
        ):
            recorder.write(EventKind.BUILT, {"positions": known})
        for position in (
            recorder.worth_compiling(self.request.build_ahead) if self.request.build_ahead else ()
        ):
            build = self._build(span, position)
            if isinstance(build, Unusable):
                recorder.write(EventKind.EXCLUDED, {"position": position, "reason": build.reason})
            else:
                recorder.write(EventKind.BUILT, {"positions": [position]})

    def _request(
        self, versions: tuple[Version, ...], suite: Suite, uid: str, *, is_guided: bool = False
    ) -> Request:
        question = self.request.question
        # With ONLY, a round is one counted pass of all its versions.
        alone = Exact.ONLY if question.is_counted else Exact.NO
        return Request(
            versions=versions,
            suite=suite,
            profile_name=question.profile,
            steps=(step_of(suite, question.profile, question.step),),
            repetitions=1,
            mode=Mode.ROUNDS,
            keep_disturbed=self.request.keep_disturbed,
            seconds=question.seconds,
            git={} if self.request.address is None else {question.engine: self.request.address},
            bisect=uid,
            exact=Exact.DRIVEN if is_guided else alone,
            counts_functions=False,
            variants={EVERY: self.request.variant, **self._commits(versions)},
        )

    def _commits(self, versions: tuple[Version, ...]) -> Variants:
        """Return the definitions of versions that are commits of an extension."""
        extension = self.request.extension
        if extension is None:
            return {}
        names = {version.variant for version in versions}
        return {name: Variant(extensions=(replace(extension, ref=name),)) for name in names}

    # --- profiles

    def _profile(self, recorder: EventRecorder, suite: Suite) -> None:
        """Profile each commit that is named and the one before it, unless that was done before.

        By samples if that was asked for; without, where instructions were counted, by one more counted pass.
        """
        log = recorder.log
        is_counted = bool(next(iter(log.passes()), None)) or log.question.is_counted
        if log.bisect.is_open or not (self.request.perf or is_counted):
            return  # what is still searched may name other commits
        done = [event.detail for event in log.bisect.events if event.kind is EventKind.PROFILED]
        for low, high in named_changes(log):
            # The first versions of Tidemark recorded neither positions, as there was one, nor the kind.
            kinds = [detail.get("perf", True) for detail in done if detail.get("high", high) == high]
            if not (any(kinds) if self.request.perf else kinds):
                self._profile_one(recorder, suite, low, high)

    def _profile_one(self, recorder: EventRecorder, suite: Suite, low: int, high: int) -> None:
        log = recorder.log
        pair = {log.span.points[place].parsed: self._end(log.span, place) for place in (low, high)}
        request = self._request(tuple(pair), suite, log.bisect.uid)
        if self.request.perf:
            request = replace(request, perf=Sampled.AFTER, repetitions=PROFILED_ROUNDS, exact=Exact.NO)
        else:
            request = replace(request, exact=Exact.ONLY, counts_functions=True)
        outcome = self.dependencies.run(request, self.home, self.store, self.progress, given=pair)
        found = {"low": low, "high": high, "perf": self.request.perf}
        recorder.write(EventKind.PROFILED, found, session=str(getattr(outcome, "uid", "")))


def real_dependencies(
    home: Home,
    progress: Progress,
    suite: str,
    variant: Variant = UNCHANGED,
    extension: Extension | None = None,
) -> Dependencies:
    """Return the real ones: the build cache, real sessions, this machine, the system's clocks.

    `suite` is the one that is measured, which determines what a build has to contain; all builds are compiled
    as `variant` says, at the commits of the `extension` that is searched, if any. Raises SuiteError.
    """
    programs = build_programs_of(load_suite(suite))
    provide, silently = (
        provider(home, shown, programs, variant, searched=extension) for shown in (progress, Silent())
    )
    return Dependencies(provide=provide, provide_silently=silently)


def _other_machine(bisect: Bisect, machine: Machine) -> OtherMachineError:
    differs = "; ".join(changes(bisect.machine, machine))
    return OtherMachineError(
        f"bisect {bisect.uid} of the same question began on another machine: {bisect.machine.hostname}",
        where=differs,
        hint="resume it there, or begin a new one here with --again: results of two machines cannot be mixed",
    )

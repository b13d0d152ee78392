"""Counted passes of a session: which rounds have one, and what their servers executed for fixed work."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from build.errors import TidemarkError
from build.progress import in_words
from history.comparison.exact import MAX_PASSES, MIN_PASSES, ExactRule, exact_interval, exact_rule
from history.comparison.options import EXACT_THRESHOLD
from history.comparison.verdict import Verdict, judge, needs_more_passes
from history.store.resume import Recorded
from runners.measuring.passes.base_work import BaseWork
from runners.measuring.request import Exact, Request, counted_once
from runners.measuring.session_versions import MeasuredVersion
from suites.counting.callgrind import CallgrindError
from suites.counting.counted_pass import CountedPass, PassTerms, count
from suites.counting.tool import Callgrind
from suites.generators.load import Generator, LongPassError
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS, METRICS
from suites.sizing import Sizes, fit_together, this_machine

FAILURES_IN_A_ROW = 3
"""Passes of a version that fail one after the other before it is not counted again in the session: a server
that does not start under callgrind takes minutes to say so, for every step."""


@dataclass
class CountedPasses:
    """Counts the instructions of steps, beside the rounds of a session or instead of them.

    A pass belongs to a round, whose runs record its values; a pass that fails is a warning of its run.
    """

    request: Request
    base: str
    """The version that all others are compared with."""
    sizes: Sizes
    generator: Generator
    callgrind: Callgrind
    earlier: BaseWork = field(default_factory=BaseWork)
    """Passes of the base that are not counted again; those of this session are added."""

    _values: defaultdict[tuple[str, str], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """The instructions per query of the passes so far, by version and step, then by round."""

    _transactions: dict[str, int] = field(default_factory=dict)
    """How many transactions passes count by step, as the first one that asked could afford."""

    _too_long: dict[tuple[str, str], LongPassError] = field(default_factory=dict)
    """By version and step: the error of a pass that reached its limit, as another one would."""

    _failed: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By version: how many of its last passes failed, one after the other."""

    tell: Callable[[str], None] = lambda message: None
    """Shows how far a pass is that takes long."""

    keep_executed: Callable[[str, frozenset[str]], None] = lambda step, names: None
    """Stores which of the watched functions a step has executed, by its name."""

    _telling: threading.Lock = field(default_factory=threading.Lock)
    _under_way: dict[str, str] = field(default_factory=dict)
    """By version whose pass is under way: what was told of it, the latest last."""

    chosen: set[int] = field(default_factory=set)
    """The numbers of the rounds that a driver chose to be counted."""

    def are_due(self, number: int, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether a round has a pass: the first ones, and further ones while these decide nothing."""
        if self.request.exact in (Exact.DRIVEN, Exact.FIRST):
            return number in self.chosen
        if step not in counted_once(self.request.steps):
            return False
        passes = self.request.passes
        is_possible = passes >= MIN_PASSES and number <= MAX_PASSES
        return number <= passes or (is_possible and self.need_more(step, versions))

    def need_more(self, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether further passes may decide a step: pairs disagree, or are too few for the change they show.

        A pair is of the base and another version in the same round.
        """
        base = next((version for version in versions if version.name == self.base), None)
        return base is not None and any(
            self._pairs_need_more(step, base, version) for version in versions if version is not base
        )

    def _pairs_need_more(self, step: Step, base: MeasuredVersion, contender: MeasuredVersion) -> bool:
        return needs_more_passes(*self._pairs(step, base, contender), EXACT_THRESHOLD / 100)

    def leave_in_doubt(self, step: Step, versions: Sequence[MeasuredVersion]) -> bool:
        """Whether the passes of a step do not show that every version executes as much as the base."""
        base = next((version for version in versions if version.name == self.base), None)
        return base is None or not all(
            self._is_unchanged(step, base, version) for version in versions if version is not base
        )

    def _is_unchanged(self, step: Step, base: MeasuredVersion, contender: MeasuredVersion) -> bool:
        interval = exact_interval(*self._pairs(step, base, contender))
        better = METRICS[INSTRUCTIONS].better
        return interval is not None and judge(interval, better, EXACT_THRESHOLD / 100) is Verdict.UNCHANGED

    def _pairs(
        self, step: Step, base: MeasuredVersion, contender: MeasuredVersion
    ) -> tuple[list[float], list[float], ExactRule]:
        """Return the counts of both in the rounds that both have, and the rule by which they are judged."""
        by_round = [self._values[version.name, step.name] for version in (base, contender)]
        rounds = sorted(set.intersection(*map(set, by_round)))
        old, new = ([values[number] for number in rounds] for values in by_round)
        engines = {version.build.version.engine for version in (base, contender)}
        return old, new, exact_rule(INSTRUCTIONS, engines)

    def add_to(
        self,
        number: int,
        step: Step,
        versions: Sequence[MeasuredVersion],
        measurements: Sequence[Measurement],
    ) -> list[Measurement]:
        """Return the measurements of a round with those of its pass, which ends servers that are still up.

        In a session of nothing but passes every round has one.
        """
        if self.request.exact is not Exact.ONLY and not self.are_due(number, step, versions):
            return list(measurements)
        passes = self._count(number, step, versions)
        for counted in passes:
            if isinstance(counted, CountedPass) and counted.executed is not None:
                self.keep_executed(step.name, counted.executed)
        return [
            _with(measurement, counted) for measurement, counted in zip(measurements, passes, strict=True)
        ]

    def _count(
        self, number: int, step: Step, versions: Sequence[MeasuredVersion]
    ) -> list[CountedPass | TidemarkError]:
        """Count all versions, as many at once as there are cores and memory: counts do not depend on load."""
        machine = this_machine()
        at_once = min(machine.cores, len(versions))
        with ThreadPoolExecutor(at_once if fit_together(at_once, self.sizes, machine) else 1) as pool:
            try:
                return list(pool.map(lambda version: self._count_one(number, step, version), versions))
            except BaseException:
                # A thread ends only when its load generator does, and that ends when its server is gone.
                for version in versions:
                    version.server.abandon()
                raise

    def _count_one(self, number: int, step: Step, version: MeasuredVersion) -> CountedPass | TidemarkError:
        # One profile is enough, and a pass without one is faster.
        place = number - self.request.first_pass + 1
        stacks = place == 1 and self.request.counts_functions
        watched = self.request.watched if place == 1 and version.name != self.base else ()
        key = (version.name, step.name)
        if key in self._too_long:
            return self._too_long[key]
        known = self._known(version, step, place)
        if known is not None:
            self.note(version.name, step.name, number, known.values)
            return known
        if self._failed[version.name] >= FAILURES_IN_A_ROW:
            return CallgrindError(f"not tried again, as the last {FAILURES_IN_A_ROW} passes failed")
        server, generator, terms = version.server, self.generator, self._terms(step, version)
        self._say(version, f"the server of {version.name} starts under callgrind")
        try:
            work = (server, generator, step, self.sizes, self.callgrind, terms)
            result = count(*work, stacks=stacks, watched=watched)
        except LongPassError as error:
            self._too_long[key] = error
            return error
        except TidemarkError as error:
            self._failed[version.name] += 1
            return error
        finally:
            self._say(version, None)
        self._failed[version.name] = 0
        self.note(version.name, step.name, number, result.values)
        if version.name == self.base:
            self.earlier.keep_pass(version.build, step, place, result)
        return result

    def _known(self, version: MeasuredVersion, step: Step, place: int) -> CountedPass | None:
        """Return the pass of an earlier session that serves as this one: of the base, and equally long."""
        known = self.earlier.find_pass(version.build, step, place) if version.name == self.base else None
        if known is None:
            return None
        length = int(known.values[COUNTED_TRANSACTIONS])
        return known if self._transactions.setdefault(step.name, length) == length else None

    def _terms(self, step: Step, version: MeasuredVersion) -> PassTerms:
        def tell(done: int, total: int, seconds: float) -> None:
            left = seconds / max(1, done) * (total - done)
            self._say(
                version,
                f"{version.name} has run {done} of {total} transactions under callgrind, "
                f"about {in_words(left)} left",
            )

        def look() -> None:
            self._say(
                version,
                f"{version.name} recovers and is reset: its client executes nothing that is changed",
            )

        # The first one to ask decides for all: setdefault is atomic.
        return PassTerms(lambda affordable: self._transactions.setdefault(step.name, affordable), tell, look)

    def _say(self, version: MeasuredVersion, what: str | None) -> None:
        """Tell how far the pass of a version is, or, once it has ended (None), the last word on another."""
        with self._telling:  # versions are counted by threads
            self._under_way.pop(version.name, None)
            if what is not None:
                self._under_way[version.name] = what
            if self._under_way:
                self.tell(next(reversed(self._under_way.values())))

    def note(self, version: str, step: str, number: int, values: Mapping[str, float]) -> None:
        """Take in the values of a round's pass: its instructions decide whether there is another."""
        self._values[version, step][number] = values[INSTRUCTIONS]
        if COUNTED_TRANSACTIONS in values:
            self._transactions.setdefault(step, int(values[COUNTED_TRANSACTIONS]))


def session_passes(
    request: Request,
    base: str,
    sizes: Sizes,
    generator: Generator,
    callgrind: Callgrind | None,
    recorded: Recorded,
    earlier: BaseWork | None = None,
) -> CountedPasses | None:
    """Return what counts a session, with the passes that it had `recorded` before it was interrupted.

    `base` is the version that all others are compared with; passes of it that are among the `earlier` ones
    are not counted again. None without callgrind.
    """
    if callgrind is None:
        return None
    passes = CountedPasses(request, base, sizes, generator, callgrind, earlier or BaseWork())
    for (step, number), runs in recorded.items():
        for version, run in runs.items():
            if INSTRUCTIONS in run.values:
                passes.note(version, step, number, run.values)
    return passes


def _with(measurement: Measurement, counted: CountedPass | TidemarkError) -> Measurement:
    if isinstance(counted, TidemarkError):
        return replace(measurement, warnings=[*measurement.warnings, f"no exact count: {counted}"])
    values = {**measurement.values, **counted.values}
    warnings = [*measurement.warnings, *counted.notes]
    return replace(measurement, values=values, warnings=warnings, counted=counted.profile)

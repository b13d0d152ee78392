"""One server's turn at a step: what is read before, during and after its load, and what is made of it."""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from build.errors import TidemarkError
from suites.accounting.activity import ACTIVITIES_PER_SECOND, activities
from suites.accounting.costs import Meter
from suites.accounting.counters import TreeCounter
from suites.accounting.disk_limit import disk_limit_reader
from suites.accounting.memory_growth import memory_values
from suites.accounting.pressure import pressure_reader
from suites.accounting.sampling import RepeatedQuestion
from suites.accounting.throttling import quota_reader
from suites.accounting.work_curve import (
    TotalsReader,
    TotalsReading,
    WorkCurve,
    curve_of,
    readings_per_second,
)
from suites.additions.held_transaction import held_transaction
from suites.checking.data_checks import DataChecks
from suites.generators.load import Load, Observer, committed_in
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import METRICS, STATEMENT_SECONDS
from suites.profiling.profiler import ObserverPair, Profiled
from suites.profiling.waits import WaitObserver
from suites.server import ResetError, Server
from suites.slices import Schedule
from suites.turns.failures import ServerDiedError
from suites.turns.load_values import kind_values, load_values, overload

Answer = TypeVar("Answer")


class Turn:
    """What one of the servers that take turns did at a step.

    Every question to the server raises ServerDiedError, which has the server's index, if it fails.
    """

    load: Load
    """The load that it carried out; there once the load has ended."""

    def __init__(self, place: int, server: Server, step: Step, committed: Counter[str] | None) -> None:
        """Read the counters of the server, whose index is `place`, before anything else of the step begins.

        `committed` has its transactions by kind since its data were loaded, if anybody counts them; those of
        the step are added.
        """
        self.server = server
        self.profiled = Profiled()
        self._waits: WaitObserver | None = None
        self.curve: WorkCurve | None = None
        self._place, self._step, self._committed = place, step, committed
        self._memory: Mapping[str, float] = {}
        self._reset: Mapping[str, float] = {}
        self._checked: Mapping[str, float] = {}
        self._warnings: list[str] = []
        self._before = self._ask(server.counters)
        self._after = self._before
        self._debt: Mapping[str, float] = {}

    def hold_transaction(self, until: contextlib.ExitStack) -> None:
        """Begin the transaction, if the step has one, that stays open until the stack ends."""
        if self._step.held_transaction:
            self._ask(lambda: until.enter_context(held_transaction(self.server)))

    def watch(
        self, counter: TreeCounter | None, schedule: Schedule, until: contextlib.ExitStack
    ) -> RepeatedQuestion[TotalsReading]:
        """Make the meter of the load, and return its totals, which can be read until the stack ends."""
        self.meter = Meter(self.server.pid, schedule.servers > 1, counter)
        counters = self._ask(lambda: until.enter_context(self.server.open_counters()))
        self._totals = RepeatedQuestion(
            TotalsReader(self.server.pid, counters).read, readings_per_second(schedule)
        )
        return self._totals

    def watch_waits(self, until: contextlib.ExitStack) -> WaitObserver:
        """Make and return what observes the waits of the clients, who can be asked until the stack ends."""
        self._waits = WaitObserver(self._ask(lambda: until.enter_context(self.server.open_client_states())))
        return self._waits

    def watch_activities(
        self, schedule: Schedule, until: contextlib.ExitStack
    ) -> RepeatedQuestion[Collection[str]]:
        """Make and return the activities of the server, which can be asked until the stack ends."""
        of_server = self._ask(lambda: until.enter_context(self.server.open_activities()))
        throttled, under_pressure = quota_reader(), pressure_reader()
        at_limit = disk_limit_reader(self.server.disk_use, schedule)
        self._activities = RepeatedQuestion[Collection[str]](
            lambda: {*of_server(), *throttled(), *under_pressure(), *at_limit()},
            ACTIVITIES_PER_SECOND * schedule.servers,
        )
        return self._activities

    @property
    def observer(self) -> Observer:
        """What observes the load."""
        return self.meter if self._waits is None else ObserverPair(self.meter, self._waits)

    def end(self, *, may_reset: bool) -> None:
        """Make the curves of the load; read the counters, and what is left to clean up if it may be reset."""
        if self._totals.failure is not None:
            raise ServerDiedError(str(self._totals.failure), self._place) from self._totals.failure
        readings = [reading for _, reading in self._totals.answers]
        self.curve = curve_of(readings, self.load.progress)
        self._memory = memory_values(readings, self.load.progress, restarted=self.load.restarted)
        self._after = self._ask(self.server.counters)
        self._debt = self._ask(self.server.debt) if may_reset else {}

    def count_committed(self) -> None:
        """Add the transactions of the load, and of its profile, to those since the data were loaded."""
        if self._committed is not None:
            self._committed.update(committed_in(self.load))
            self._committed.update(self.profiled.committed)

    def reset(self) -> None:
        """Reset the server. A reset that fails is only a warning."""
        self._reset = {**self._debt, **self._ask(self._reset_or_warn)}

    def check(self, checks: DataChecks) -> None:
        """Ask the checks of the data."""
        address, name = self.server.address, self._step.plain_name
        seconds = self._ask(lambda: checks.require(address, CheckOccasion.STEP, name, self._committed))
        self._checked = {} if seconds is None else {"check_seconds": seconds}

    def measurement(self) -> Measurement:
        """Return all that is known of the turn so far."""
        warnings = [*self.profiled.warnings, *self._unknown(), *self._warnings, *overload(self.load)]
        return Measurement(
            {**self._costs(), **self._memory, **self._timed(), **self._reset, **self._checked},
            self.load.per_second,
            warnings,
            self.profiled.profile,
            kind_values(self.load),
            self.curve,
            waits=None if self._waits is None else self._waits.profile(self.load.watched_queries),
            activities=activities(self._activities.answers, self.load.stalls, self.load.seconds_at),
        )

    def _unknown(self) -> Iterator[str]:
        """Yield what is not known because the server could not be asked."""
        waits = None if self._waits is None else self._waits.question.failure
        if waits is not None:
            yield f"no wait events: {waits}"
        if self._activities.failure is not None:
            yield f"checkpoints and vacuums are not known: {self._activities.failure}"

    def _reset_or_warn(self) -> Mapping[str, float]:
        try:
            return self.server.reset()
        except ResetError as error:
            self._warnings = [f"not reset: {error}"]
            return error.metrics

    def _costs(self) -> dict[str, float]:
        values = dict(load_values(self.load)) | dict(self.meter.per_query(self.load.watched_queries))
        # Both the observed queries and the server's counters include the warm-up.
        queries = max(self.load.watched_queries, self.load.queries)
        grown = {name: self._after[name] - total for name, total in self._before.items()}
        counted = {name: value for name, value in grown.items() if METRICS[name].counted_in}
        return values | {name: value / queries for name, value in grown.items()} | counted

    def _timed(self) -> dict[str, float]:
        return {STATEMENT_SECONDS: self.load.seconds} if self._step.timed else {}

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except TidemarkError as error:
            raise ServerDiedError(str(error), self._place) from error

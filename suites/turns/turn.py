"""One server's turn at a step: what is read before, during and after its load, and what is made of it."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from build.errors import TidemarkError
from suites.accounting.activity import activities
from suites.accounting.activity_sampler import ActivityReader
from suites.accounting.costs import Meter
from suites.accounting.counters import TreeCounter
from suites.accounting.memory_growth import memory_values
from suites.accounting.work_curve import TotalsReader, TotalsReading, WorkCurve, curve_of
from suites.additions.held_transaction import held_transaction
from suites.checking.data_checks import DataChecks
from suites.generators.load import Load, Observer, committed_in
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.profiling.profiler import ObserverPair, Profiled
from suites.profiling.waits import WaitObserver
from suites.server import ResetError, Server
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
        self._activities: ActivityReader | None = None
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

    def watch(self, counter: TreeCounter | None, is_alone: bool, until: contextlib.ExitStack) -> TotalsReader:
        """Make the meter of the load, and return what reads its totals meanwhile, until the stack ends."""
        self.meter = Meter(self.server.pid, not is_alone, counter)
        counters = self._ask(lambda: until.enter_context(self.server.open_counters()))
        return TotalsReader(self.server.pid, counters)

    def watch_waits(self, until: contextlib.ExitStack) -> WaitObserver:
        """Make and return what observes the waits of the clients; it asks the server until the stack ends."""
        self._waits = WaitObserver(self._ask(lambda: until.enter_context(self.server.open_client_states())))
        return self._waits

    def watch_activities(self, until: contextlib.ExitStack) -> ActivityReader:
        """Make and return what reads the activities of the server, which is asked until the stack ends."""
        read = self._ask(lambda: until.enter_context(self.server.open_activities()))
        self._activities = ActivityReader(read)
        return self._activities

    @property
    def observer(self) -> Observer:
        """What observes the load."""
        return self.meter if self._waits is None else ObserverPair(self.meter, self._waits)

    def end(self, readings: Sequence[TotalsReading], *, resets: bool) -> None:
        """Make the curves of the load; read the counters, and what is left to clean up if it `resets`."""
        self.curve = curve_of(readings, self.load.progress)
        self._memory = memory_values(readings, self.load.progress, restarted=self.load.restarted)
        self._after = self._ask(self.server.counters)
        self._debt = self._ask(self.server.debt) if resets else {}

    def count_committed(self) -> None:
        """Add the transactions of the load, and of its profile, to those since the data were loaded."""
        if self._committed is not None:
            self._committed.update(committed_in(self.load))
            self._committed.update(self.profiled.committed)

    def reset(self) -> None:
        """Reset the server. A reset that fails is only a warning."""
        self._reset = self._ask(self._reset_or_warn)

    def check(self, checks: DataChecks) -> None:
        """Ask the checks of the data."""
        address, name = self.server.address, self._step.plain_name
        seconds = self._ask(lambda: checks.require(address, CheckOccasion.STEP, name, self._committed))
        self._checked = {} if seconds is None else {"check_seconds": seconds}

    def measurement(self) -> Measurement:
        """Return all that is known of the turn."""
        failed = [watch.failure for watch in (self._waits, self._activities) if watch is not None]
        warnings = [*self.profiled.warnings, *filter(None, failed), *self._warnings, *overload(self.load)]
        return Measurement(
            {**self._costs(), **self._memory, **self._debt, **self._timed(), **self._reset, **self._checked},
            self.load.per_second,
            warnings,
            self.profiled.profile,
            kind_values(self.load),
            self.curve,
            waits=None if self._waits is None else self._waits.profile(self.load.watched_queries),
            activities=activities(
                () if self._activities is None else self._activities.answers,
                self.load.stalls,
                self.load.seconds_at,
            ),
        )

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
        return values | {name: (self._after[name] - total) / queries for name, total in self._before.items()}

    def _timed(self) -> dict[str, float]:
        return {"statement_seconds": self.load.seconds} if self._step.timed else {}

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except TidemarkError as error:
            raise ServerDiedError(str(error), self._place) from error

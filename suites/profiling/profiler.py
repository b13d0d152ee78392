"""Profiling servers that take turns: one perf samples all of them, and samples are assigned by time.

A sample of the waits says of every client of a server what it does at that moment. However short a wait is,
the share of the samples that it is in is the share of the clients' time that it takes.
"""

import contextlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from build.errors import TidemarkError
from suites.accounting.sampling import RepeatedQuestion
from suites.generators.load import Generator, Load, Observer, Share, committed_in
from suites.keys.step import Step
from suites.processes import tree_of
from suites.profiling.folding import Samples, Window, fold, read
from suites.profiling.perf import Perf, Recording, frequency, record
from suites.profiling.stacks import CLIENT_STATES, StepProfile
from suites.server import ClientStates, Server
from suites.slices import mirrored

OTHER_IDS = 100_000
"""Added to the number of the round, so that profiled slices draw other ids than measured ones."""


@dataclass(frozen=True)
class Profiling:
    """How the steps of a session are profiled."""

    perf: Perf
    seconds: float
    """How long each version is sampled at the end of a round."""
    slice_seconds: float
    during: bool = False
    """Whether the measured slices themselves are sampled, instead of further slices after them."""


@dataclass(frozen=True)
class Profiled:
    """A profile, or the reason why there is none."""

    profile: StepProfile | None = None
    failure: str = ""
    """Why there is no profile; empty if none was requested."""
    committed: Mapping[str, int] = field(default_factory=dict)
    """Transactions by kind that were committed in further slices."""

    @property
    def warnings(self) -> list[str]:
        """Why there is no profile, or the problems of its quality."""
        if self.profile is None:
            return [self.failure] if self.failure else []
        problems = self.profile.quality.warnings()
        return [f"profile: {'; '.join(problems)}"] if problems else []


class Sampler:
    """One perf for all servers of a step. An error of perf is raised by every call of `samples`."""

    def __init__(self, servers: Sequence[Server], profiling: Profiling, seconds: float, file: Path) -> None:
        """Prepare sampling into `file`; `seconds` is the expected duration of the load."""
        cores = psutil.Process().cpu_affinity() or [0]
        self.profiling = profiling
        self.per_second = frequency(seconds * len(cores))
        self._servers = servers
        self._file = file
        self._recording: Recording | None = None
        self._samples: Samples | TidemarkError | None = None

    def attach(self) -> None:
        """Start sampling, including processes that start later, such as backends."""
        try:
            roots = [server.pid for server in self._servers]
            beside = _cores_beside(roots[0])
            self._recording = record(self.profiling.perf, roots, self._file, self.per_second, beside)
        except TidemarkError as error:
            self._samples = error

    def samples(self) -> Samples:
        """End perf, and return its samples. Raises TidemarkError."""
        if self._samples is None:
            assert self._recording is not None  # attach() sets one of the two
            try:
                self._samples = read(self._recording.finish(), self.profiling.perf.program)
            except TidemarkError as error:
                self._samples = error
        if isinstance(self._samples, TidemarkError):
            raise self._samples
        return self._samples

    def close(self) -> None:
        """End perf if it was started."""
        if self._recording is not None:
            self._recording.close()


class Profiler:
    """An observer of a load (suites.generators.load.Observer) that selects the samples of one server."""

    def __init__(self, server: Server, sampler: Sampler) -> None:
        self._server = server
        self._sampler = sampler
        self._roles: dict[int, str] = {}
        self._pids: set[int] = set()
        self._windows: list[Window] = []
        self._error: TidemarkError | None = None

    def begin(self, pid: int) -> None:
        """Begin a window whose samples count."""
        self._update_processes()
        self._windows.append((time.monotonic(), math.inf))

    def end(self, pid: int) -> None:
        """End the window; if called again, the last call counts."""
        self._windows[-1] = (self._windows[-1][0], time.monotonic())
        self._update_processes()

    def _update_processes(self) -> None:
        try:
            self._pids |= set(tree_of(self._server.pid))
            self._roles |= self._server.roles()
        except TidemarkError as error:
            self._error = error

    def result(self, load: Load) -> Profiled:
        """Return the profile of the load, or the reason why there is none."""
        profiling = self._sampler.profiling
        try:
            if self._error is not None:
                raise self._error
            samples = self._sampler.samples()
            stacks = fold(samples, self._pids, self._roles, self._windows)
        except TidemarkError as error:
            said = "; ".join(part for part in (error.what, error.where, error.hint) if part)
            return Profiled(None, f"no profile: {' '.join(said.split())}")
        queries = max(load.watched_queries, load.queries)
        event, per_second = profiling.perf.description, self._sampler.per_second
        return Profiled(StepProfile(event, per_second, queries, samples.lost, stacks))


class ObserverPair:
    """Two observers of one load, nested so that the inner one does not measure the work of the outer one."""

    def __init__(self, inner: Observer, outer: Observer) -> None:
        self._inner, self._outer = inner, outer

    def begin(self, pid: int) -> None:
        """Begin the outer observer, then the inner one."""
        self._outer.begin(pid)
        self._inner.begin(pid)

    def end(self, pid: int) -> None:
        """End the inner observer, then the outer one."""
        self._inner.end(pid)
        self._outer.end(pid)


@contextlib.contextmanager
def profilers(servers: Sequence[Server], profiling: Profiling, seconds: float) -> Iterator[list[Profiler]]:
    """Yield one profiler per server for a load of `seconds`; end perf and delete its file afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidemark-perf-") as folder:
        sampler = Sampler(servers, profiling, seconds, Path(folder) / "perf.data")
        try:
            sampler.attach()
            yield [Profiler(server, sampler) for server in servers]
        finally:
            sampler.close()


def profile_after(
    servers: Sequence[Server], generator: Generator, step: Step, share: Share, profiling: Profiling
) -> list[Profiled]:
    """Profile every server in further slices after `share` was measured. Raises LoadError.

    A step that uses rows up continues after the rows that it has used, with at most half as many.
    """
    seed = (step.name, share.round, "profile")
    schedule = mirrored(range(len(servers)), profiling.seconds, profiling.slice_seconds, seed)
    used = share.transactions
    after = replace(
        share,
        schedule=schedule,
        round=share.round + OTHER_IDS,
        transactions=None if used is None else max(1, used // 2),
        done_before=share.done_before + (used or 0),
    )
    addresses = [server.address for server in servers]
    with profilers(servers, profiling, schedule.seconds) as watching:
        loads = generator.alternate(addresses, step, after, watching)
        return [
            replace(profiler.result(load), committed=committed_in(load))
            for profiler, load in zip(watching, loads, strict=True)
        ]


def _cores_beside(pid: int) -> Collection[int] | None:
    """Return the cores that the server is not bound to, on which perf does not take time from it."""
    with contextlib.suppress(psutil.Error):
        ours = set(psutil.Process().cpu_affinity() or [])
        return sorted(ours - set(psutil.Process(pid).cpu_affinity() or [])) or None
    return None


class WaitObserver:
    """An observer of a load (suites.generators.load.Observer) that samples the clients of a server."""

    def __init__(self, states: ClientStates) -> None:
        self.question = RepeatedQuestion(states.read, states.per_second)
        """What the clients did at each of the moments, without a window too."""

        self._windows: list[Window] = []

    def begin(self, pid: int) -> None:
        """Begin a window whose samples count."""
        del pid
        now = time.monotonic()
        self._windows.append((now, now))

    def end(self, pid: int) -> None:
        """End the window; if called again, the last call counts."""
        del pid
        self._windows[-1] = (self._windows[-1][0], time.monotonic())

    def profile(self, queries: float) -> StepProfile | None:
        """Return the samples of the windows, in which so many queries finished; None without any."""
        stacks: Counter[str] = Counter()
        for moment, states in self.question.answers:
            if any(begin <= moment < end for begin, end in self._windows):
                stacks.update(states)
        usable = stacks and queries > 0 and self.question.failure is None
        return StepProfile(CLIENT_STATES, self.question.per_second, queries, 0, stacks) if usable else None

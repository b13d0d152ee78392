"""Profiling servers that take turns: one perf for each, which samples only while the load is on."""

import contextlib
import math
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from build.errors import TidemarkError
from suites.definition import Step
from suites.generators.load import Generator, Load, Observer, Share
from suites.processes import tree_of
from suites.profiling.folding import Samples, Window, fold, read
from suites.profiling.perf import Perf, Recording, frequency, record
from suites.profiling.stacks import StepProfile
from suites.server import Server
from suites.slices import mirrored

OTHER_IDS = 100_000
"""Added to the round, so that a profiled slice draws ids that no measured one has drawn."""


@dataclass(frozen=True)
class Profiling:
    """How the steps of a session are profiled."""

    perf: Perf
    inferno: Path
    """The folder of inferno's programs."""
    seconds: float
    """How long each version is sampled at the end of a round."""
    slice_seconds: float
    during: bool = False
    """Whether the measured slices themselves are sampled, instead of some after them."""


@dataclass(frozen=True)
class Profiled:
    """A profile, or the reason why there is none."""

    profile: StepProfile | None = None
    trouble: str = ""

    @property
    def troubles(self) -> list[str]:
        """What a person has to know of it: why there is none, or what to doubt."""
        if self.profile is None:
            return [self.trouble] if self.trouble else []
        doubts = self.profile.quality.doubts()
        return [f"profile: {'; '.join(doubts)}"] if doubts else []


class Sampler:
    """One perf for all servers of a step. Trouble with it is kept, and raised by `samples` each time."""

    def __init__(self, servers: Sequence[Server], profiling: Profiling, seconds: float, file: Path) -> None:
        """`seconds` is how long the load will take."""
        cores = psutil.Process().cpu_affinity() or [0]
        self.profiling = profiling
        self.per_second = frequency(seconds * len(cores))
        self._servers = servers
        self._file = file
        self._recording: Recording | None = None
        self._samples: Samples | TidemarkError | None = None

    def attach(self) -> None:
        """Sample from now on, also whatever is born later, such as a backend."""
        try:
            roots = [server.pid for server in self._servers]
            beside = _cores_beside(roots[0])
            self._recording = record(self.profiling.perf, roots, self._file, self.per_second, beside)
        except TidemarkError as error:
            self._samples = error

    def samples(self) -> Samples:
        """End perf, and read what it has. Raises TidemarkError."""
        if self._samples is None:
            assert self._recording is not None  # attached, or in trouble
            try:
                self._samples = read(self._recording.finish(), self.profiling.perf.program)
            except TidemarkError as error:
                self._samples = error
        if isinstance(self._samples, TidemarkError):
            raise self._samples
        return self._samples

    def close(self) -> None:
        """End perf, whatever came of it."""
        if self._recording is not None:
            self._recording.close()


class Profiler:
    """An observer of a load (suites.generators.load.Observer): it notes which samples are this server's."""

    def __init__(self, server: Server, sampler: Sampler) -> None:
        self._server = server
        self._sampler = sampler
        self._roles: dict[int, str] = {}
        self._pids: set[int] = set()
        self._windows: list[Window] = []
        self._trouble: TidemarkError | None = None

    def begin(self, pid: int) -> None:
        """What is sampled from here on counts."""
        self._look()
        self._windows.append((time.monotonic(), math.inf))

    def end(self, pid: int) -> None:
        """What is sampled after this, and before the next beginning, does not count. The last call counts."""
        self._windows[-1] = (self._windows[-1][0], time.monotonic())
        self._look()

    def _look(self) -> None:
        try:
            self._pids |= set(tree_of(self._server.pid))
            self._roles |= self._server.roles()
        except TidemarkError as error:
            self._trouble = error

    def result(self, load: Load) -> Profiled:
        """What was sampled, per query of the load."""
        profiling = self._sampler.profiling
        try:
            if self._trouble is not None:
                raise self._trouble
            samples = self._sampler.samples()
            stacks = fold(samples, profiling.inferno, self._pids, self._roles, self._windows)
        except TidemarkError as error:
            said = "; ".join(part for part in (error.what, error.where, error.hint) if part)
            return Profiled(None, f"no profile: {' '.join(said.split())}")
        queries = max(load.watched_queries, load.queries)
        event, per_second = profiling.perf.described, self._sampler.per_second
        return Profiled(StepProfile(event, per_second, queries, samples.lost, stacks))


class Both:
    """Two observers of one load: what the first counts is not to contain the second's own work."""

    def __init__(self, inner: Observer, outer: Observer) -> None:
        self._inner, self._outer = inner, outer

    def begin(self, pid: int) -> None:
        """The outer one first."""
        self._outer.begin(pid)
        self._inner.begin(pid)

    def end(self, pid: int) -> None:
        """The inner one first."""
        self._inner.end(pid)
        self._outer.end(pid)


@contextlib.contextmanager
def profilers(servers: Sequence[Server], profiling: Profiling, seconds: float) -> Iterator[list[Profiler]]:
    """One profiler for each server, for a load of so many seconds; perf and its file are gone afterwards."""
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
    """Sample every server in slices of its own after `share` was measured. Raises LoadError.

    A step that uses rows up goes on behind those that it has used, for half as many at most.
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
        return [each.result(load) for each, load in zip(watching, loads, strict=True)]


def _cores_beside(pid: int) -> Collection[int] | None:
    """Cores that the server is not bound to: perf's own work shall not take the server's time."""
    with contextlib.suppress(psutil.Error):
        ours = set(psutil.Process().cpu_affinity() or [])
        return sorted(ours - set(psutil.Process(pid).cpu_affinity() or [])) or None
    return None

"""Running the pgbench of one build for all servers of a session, and parsing its output."""

import contextlib
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from build.build import Build
from build.version import Engine
from suites.definition import Suite
from suites.generators.complaints import complaint
from suites.generators.load import (
    COUNT,
    NUMBER,
    PERCENTILES,
    CountedLoad,
    CountedWork,
    Load,
    LoadError,
    Observer,
    Share,
    WorkLimit,
    blamed_on,
    whole_seconds,
)
from suites.generators.placement import placement
from suites.generators.plausibility import require_plausible
from suites.generators.programs import OVERTIME_SECONDS, lines_of, run_all
from suites.keys.pgbench_scripts import located, weighted_script
from suites.keys.profile import SizedBy
from suites.keys.step import Step
from suites.postgres.setup_file import run_file, trial_copy
from suites.processes import ProcessError, run
from suites.server import Address, postgres_port
from suites.sizing import Sizes

ROWS_PER_SCALE = 100_000
"""Rows of pgbench_accounts per unit of --scale, by which suites without a scale are sized."""

LOGGED_TRANSACTIONS = 2_000_000
"""Approximate maximum number of transactions whose latency is logged; above that, a random sample is."""

EXPECTED_TPS = 100_000
"""An upper bound of a client's transactions/s, which determines the sampling rate."""

_TICK = re.compile(rf"progress: ({NUMBER}) s, ({NUMBER}) tps")
_LATENCY = re.compile(COUNT)
_SUMMARY = {
    "transactions": re.compile(rf"number of transactions actually processed: ({COUNT})"),
    "failed": re.compile(rf"number of failed transactions: ({COUNT})"),
    "latency": re.compile(rf"latency average = ({NUMBER}) ms"),
    "late_ms": re.compile(rf"rate limit schedule lag: avg {NUMBER} \(max ({NUMBER})\) ms"),
    # The second wording is that of pgbench 13, the last one that with a connection for each transaction.
    "tps": re.compile(
        rf"tps = ({NUMBER}) \((?:without initial connection time|excluding connections establishing"
        r"|including reconnection times)\)"
    ),
}

_UNREACHABLE = "connection to server"
"""What pgbench says of a server that it cannot reach, which it tries when it has read its scripts."""

TRIAL_SECONDS = 600
"""Time limit for one transaction of a script before it is measured."""


@dataclass
class PgbenchTranscript:
    """The parsed output of one run of pgbench so far."""

    ticks: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and transactions/s since the previous progress report."""
    summary: dict[str, float] = field(default_factory=dict)

    def read(self, line: str) -> bool:
        """Parse one line of output; return whether it was a progress report."""
        if match := _TICK.match(line):
            self.ticks.append((float(match[1]), float(match[2])))
            return True
        for name, pattern in _SUMMARY.items():
            if match := pattern.match(line):
                self.summary[name] = float(match[1])
        return False

    def load(self, queries: float, latencies_us: NDArray[np.float64], arrivals: float | None = None) -> Load:
        """Return the result.

        Raises LoadError if the report is incomplete, no transaction finished, or a number is impossible.
        `queries` is the number of queries per transaction; `latencies_us` are the latencies of all
        transactions, or of a random sample, in microseconds; `arrivals` is how many transactions a rate lets
        expect.
        """
        missing = {"transactions", "latency", "tps"} - self.summary.keys()
        if missing:
            raise LoadError("pgbench's report is incomplete", where=f"missing: {', '.join(sorted(missing))}")
        if not self.summary["transactions"] or not self.summary["tps"]:
            raise LoadError("pgbench finished no transaction", hint="check the server's log")
        # The first interval includes connecting; work is steady from the second on.
        steady = list(zip(self.ticks, self.ticks[1:], strict=False))
        watched = sum((late[0] - early[0]) * late[1] for early, late in steady)
        latency = {"mean": self.summary["latency"]}
        if latencies_us.size:
            shares = np.percentile(latencies_us, [*PERCENTILES.values(), 100.0]) / 1000
            latency |= dict(zip([*PERCENTILES, "max"], map(float, shares), strict=True))
        load = Load(
            transactions=int(self.summary["transactions"]),
            queries=self.summary["transactions"] * queries,
            seconds=self.summary["transactions"] / self.summary["tps"],
            errors=int(self.summary.get("failed", 0)),
            per_second=tuple(tps * queries for _, tps in self.ticks),
            latency_ms=latency,
            watched_queries=watched * queries,
            watched_seconds=self.ticks[-1][0] - self.ticks[0][0] if self.ticks else 0.0,
            due=None if arrivals is None else _due(arrivals, int(self.summary["transactions"])),
            late_seconds=self.summary.get("late_ms", 0.0) / 1000,
        )
        return require_plausible(load, "pgbench")


def _due(arrivals: float, done: int) -> int:
    """Return how many transactions were due of a Poisson process; pgbench does not say how many came.

    It is the least number that is likely, four standard deviations below the mean, and not less than were
    `done`: chance is never taken for a server that does not keep up.
    """
    return max(done, int(arrivals - 4 * arrivals**0.5))


class Pgbench:
    """The pgbench of one build; implements suites.generators.load.Generator."""

    def __init__(self, suite: Suite, sizes: Sizes, build: Build, *, prepares: bool = True) -> None:
        self.suite = suite
        self.sizes = sizes
        self.prepares = prepares
        self.program = build.program("pgbench")
        self.psql = build.program("psql")

    def version(self) -> str:
        """Return the output of `pgbench --version`."""
        return run([self.program, "--version"], what="pgbench --version").strip()

    def load(self, address: Address) -> None:
        """Load pgbench's tables with `pgbench --initialize`, then the suite's own with its SQL file.

        Before that pgbench reads all scripts; after it, it carries out each once. Raises LoadError, and
        SetupError for the SQL file.
        """
        steps = [step for step in self.suite.steps if step.scripts]
        for step in steps:
            self._require_readable(step)
        if self.suite.sized_by is not SizedBy.SETUP:
            scale = self._scale
            argv = [*self._client(address), "--initialize", f"--scale={scale}", "--quiet"]
            run_all([argv], 1, 60 + 60 * scale)
        if self.suite.setup is not None:
            run_file(self.psql, address, self.suite.folder, self.suite.setup)
        if steps:
            with trial_copy(address) as copy:
                for step in steps:
                    self._try_scripts(copy, step)

    @property
    def _scale(self) -> int:
        """The scale factor of pgbench's own tables."""
        data = self.sizes.data
        return data.scale or max(1, data.rows // ROWS_PER_SCALE)

    def _require_readable(self, step: Step) -> None:
        """Raise LoadError, with file and line, if pgbench cannot parse the scripts of a step.

        It reads them before it connects, here to a server that does not exist.
        """
        nowhere = [str(self.program), "--host=/nonexistent", "--transactions=1", "--no-vacuum"]
        try:
            run([*nowhere, *self._script(step)], what="pgbench")
        except ProcessError as error:
            if _UNREACHABLE not in error.what:
                said = complaint(error.what.splitlines()) or error.what
                raise LoadError(
                    said.replace(f"{self.suite.folder}/", ""), where=f"{self.suite.folder / 'suite.toml'}"
                ) from error

    def _try_scripts(self, address: Address, step: Step) -> None:
        """Carry out one transaction of each script of a step. Raises LoadError with file and line."""
        for script in step.scripts:
            alone = step.model_copy(update={"scripts": (weighted_script(script).name,)})
            once = ["--client=1", "--transactions=1", "--no-vacuum", *self._script(alone)]
            argv = [*self._client(address), f"--protocol={self._protocol(step)}", *once]
            with self._located(alone):
                run_all([argv], 1, TRIAL_SECONDS)

    @contextlib.contextmanager
    def _located(self, step: Step) -> Iterator[None]:
        """Name file and line in a LoadError about a command of a script of the step."""
        try:
            yield
        except LoadError as error:
            for file, line, said in located(error.what, self.suite.folder, step.scripts):
                raise LoadError(
                    f"{file}, line {line}: {said}",
                    where=f"{self.suite.folder / file}:{line}",
                    place=error.place,
                ) from error
            raise

    def _protocol(self, step: Step) -> str:
        """How the statements of a step are sent; through a pooler, as one that cannot prepare them does."""
        return str(step.options.get("protocol", "prepared")) if self.prepares else "simple"

    def arguments(self, address: Address, step: Step, work: WorkLimit, turn: int = 0) -> list[str]:
        """Return the command line of one step, without log options; every `turn` has its own seed."""
        clients = self.sizes.clients_of(step)
        threads = min(clients, max(self.sizes.threads, len(self.sizes.usable)))
        limit = f"--time={whole_seconds(work)}"
        if work.transactions is not None:
            limit = f"--transactions={max(1, work.transactions // clients)}"
        connections = [
            f"--client={clients}",
            f"--jobs={threads}",
            f"--protocol={self._protocol(step)}",
            "--no-vacuum",
            *(["--connect"] if step.options.get("connect") else []),
            *([f"--rate={step.rate:g}"] if step.rate is not None else []),
        ]
        report = ["--progress=1", f"--random-seed={self.suite.seed + turn}"]
        return [*self._client(address), *connections, limit, *report, *self._script(step)]

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int = 0) -> Load:
        """Run one step; the observer measures from the first progress report to the last."""
        sampled = min(1.0, LOGGED_TRANSACTIONS / (EXPECTED_TPS * work.seconds))
        transcript = PgbenchTranscript()
        with tempfile.TemporaryDirectory(prefix="tidemark-pgbench-") as folder:
            log = ["--log", f"--log-prefix={folder}/log", f"--sampling-rate={sampled:g}"]
            argv = [*self.arguments(address, step, work, turn), *log]
            client = placement(step, self.sizes).client
            with self._located(step):
                for pid, line in lines_of(argv, work.seconds + OVERTIME_SECONDS, bound_to=client):
                    if transcript.read(line):
                        if len(transcript.ticks) == 1:
                            observer.begin(pid)
                        else:
                            observer.end(pid)
            arrivals = None if step.rate is None else step.rate * whole_seconds(work)
            return transcript.load(step.queries, logged_latencies(Path(folder)), arrivals)

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run pgbench once per slice, because it cannot pause.

        It runs for whole seconds, so that a slice may be longer than scheduled. Warm-up slices are skipped.
        Random numbers are the same for all servers, and different in every slice.
        """
        schedule = share.schedule
        done: list[list[Load]] = [[] for _ in addresses]
        progress: list[list[tuple[float, float]]] = [[] for _ in addresses]
        for place, server in enumerate(schedule.order):
            if place >= schedule.warming:
                work = WorkLimit(schedule.slice_seconds, None)
                turn = share.round * len(schedule.order) + len(done[server])
                queries = sum(load.queries for load in done[server])
                began = time.monotonic()
                with blamed_on(server):
                    load = self.run(addresses[server], step, work, observers[server], turn)
                done[server].append(load)
                progress[server] += [(began, queries), (time.monotonic(), queries + load.queries)]
        return [
            replace(sum_of(loads), progress=tuple(points))
            for loads, points in zip(done, progress, strict=True)
        ]

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Raise LoadError: pgbench has no command that prints the statements of a script."""
        raise LoadError("pgbench cannot print statements", hint="omit plans in suite.toml")

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Raise LoadError: pgbench cannot send a mark between two transactions of a script."""
        raise LoadError("pgbench cannot carry out a counted pass", hint="use a suite for sysbench")

    def _client(self, address: Address) -> list[str]:
        host = [f"--host={address.socket.parent}", f"--port={postgres_port(address.socket)}"]
        return [str(self.program), *host, f"--username={address.user}", address.database]

    def _script(self, step: Step) -> Sequence[str]:
        if not step.scripts:
            return [f"--builtin={step.options['builtin']}"]
        own_tables = self.suite.sized_by is SizedBy.SETUP
        return [
            *([] if own_tables else [f"--scale={self._scale}"]),
            *(f"--define={name}={value}" for name, value in step.variables.items()),
            *(f"--file={self.suite.folder / script}" for script in step.scripts),
        ]


def newest_postgres(builds: Sequence[Build]) -> Build | None:
    """Return the newest build of Postgres, whose pgbench is used for all servers; None without one.

    A pgbench also works with older servers.
    """
    postgres = (build for build in builds if build.version.engine is Engine.POSTGRES)
    return max(postgres, key=lambda build: build.numbers, default=None)


def sum_of(loads: Sequence[Load]) -> Load:
    """Return the combined result of several runs. Percentiles are means over the runs."""
    names = set.intersection(*(set(load.latency_ms) for load in loads))
    mean = {name: sum(load.latency_ms[name] for load in loads) / len(loads) for name in names}
    if "max" in names:
        mean["max"] = max(load.latency_ms["max"] for load in loads)
    return Load(
        transactions=sum(load.transactions for load in loads),
        queries=sum(load.queries for load in loads),
        seconds=sum(load.seconds for load in loads),
        errors=sum(load.errors for load in loads),
        per_second=tuple(rate for load in loads for rate in load.per_second),
        latency_ms=mean,
        watched_queries=sum(load.watched_queries for load in loads),
        watched_seconds=sum(load.watched_seconds for load in loads),
        due=sum(load.due or 0 for load in loads) if any(load.due is not None for load in loads) else None,
        late_seconds=max((load.late_seconds for load in loads), default=0.0),
    )


def logged_latencies(folder: Path) -> NDArray[np.float64]:
    """Return the latencies of all logged transactions in µs, from the third column of pgbench's log files.

    Failed transactions, which have a word there instead of a number, are omitted.
    """
    latencies = []
    for file in sorted(folder.glob("log.*")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split(maxsplit=3)
            if len(words) > 2 and _LATENCY.fullmatch(words[2]):
                latencies.append(float(words[2]))
    return np.array(latencies, dtype=np.float64)

"""The interface of load generators, and functions for running their programs."""

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from build.errors import TidemarkError
from suites.keys.step import Step
from suites.processes import start, stop, with_output
from suites.server import Address
from suites.slices import Schedule

OVERTIME_SECONDS = 30
"""Time that a load generator may take beyond its time limit for starting and reporting."""

SCRIPT_LINE = "tidemark:"
"""What the lines begin with that a script prints for Tidemark."""

COUNT = r"[0-9]{1,15}(?![0-9])"
"""Regular expression of an integer in a report: more digits are damage, and int() refuses thousands."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?![0-9.])"
"""Regular expression of a decimal number in a report, which float() accepts."""


class LoadError(TidemarkError):
    """A load generator failed, was killed, or printed something that cannot be parsed.

    `place` is the index of its server among those that take turns; None if it is not known.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", place: int | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.place = place


class OverLimitError(LoadError):
    """A query took longer than its limit of `limit` seconds on at least one server.

    `seconds` are those of one execution by the index of the server, None where it was over the limit.
    """

    def __init__(self, step: str, limit: float, seconds: Mapping[int, float | None]) -> None:
        super().__init__(f"{step} took longer than its limit of {limit:g} s")
        self.limit = limit
        self.seconds = seconds


@dataclass(frozen=True)
class WorkLimit:
    """The limits of a step, which ends when the first one is reached."""

    seconds: float
    """Time limit in seconds."""
    transactions: int | None
    """Maximum number of transactions over all threads; None if there is only a time limit."""


@dataclass(frozen=True)
class Share:
    """The work of servers that take turns in one round of a step."""

    schedule: Schedule
    """The slices in which the servers work."""
    round: int
    """Number of the round, from 1; every round draws different ids."""
    transactions: int | None = None
    """Maximum number of transactions per server; None if there is only a time limit."""
    done_before: int = 0
    """Earlier transactions of the step on the same data, after which a step that uses rows up continues."""
    limit_seconds: float | None = None
    """The most that one query may take; only for generators of long queries."""


def whole_seconds(work: WorkLimit) -> int:
    """Return the time limit in whole seconds, at least 1, because 0 means no limit to load generators."""
    return max(1, round(work.seconds))


@dataclass(frozen=True)
class KindLoad:
    """The transactions of one kind, over all clients."""

    transactions: int
    """Those that committed."""
    retried: Mapping[str, int]
    """How often the server rolled one back, which was then begun again, by cause."""
    refused: int
    """Those that the application itself ended without committing."""
    committed: int
    """All that committed since the clients connected, in the warm-up too."""
    latency_ms: Mapping[str, float]
    """As that of a Load, of all tries together."""
    longest_ms: tuple[float, ...] = ()
    """The slowest in each second of the server's own work; 0 where none ended."""


@dataclass(frozen=True)
class BackgroundLoad:
    """What the connections beside the measured clients did of one kind of transactions."""

    due: int
    """Those that were to begin in the counted slices; 0 of a kind without a rate."""
    done: int
    """Those that were carried out."""
    late_seconds: float
    """The most that one began too late."""
    most_apart: int
    """The most transactions by which a kind was ahead of the one that keeps pace with it."""


@dataclass(frozen=True)
class Load:
    """The result of a load generator."""

    transactions: int
    """Finished transactions."""
    queries: float
    """Queries of these transactions."""
    seconds: float
    """Time from the start of the first transaction to the end of the last, without waiting for turns."""
    errors: int
    """Errors that did not end the run, such as deadlocks, after which the transaction was restarted."""
    per_second: tuple[float, ...]
    """Queries/s in each whole second."""
    latency_ms: Mapping[str, float]
    """Latency in milliseconds by name: mean, p50, p95, p99, p999, max."""
    watched_queries: float
    """Queries finished between the observer's begin and end."""
    watched_seconds: float
    """Time between the observer's begin and end."""
    kinds: Mapping[str, KindLoad] = field(default_factory=dict)
    """The kinds of transactions by name, in the order of the script; empty if it declares none."""
    due: int | None = None
    """Transactions that were to begin in the counted slices; None unless they arrive at a rate."""
    late_seconds: float = 0.0
    """The most that one of these began too late."""
    background: Mapping[str, BackgroundLoad] = field(default_factory=dict)
    """The transactions beside those measured, by kind; empty if the step has none."""


def committed_in(load: Load) -> Mapping[str, int]:
    """Return the transactions by kind that the clients of a load saw committed, in the warm-up too."""
    return {name: kind.committed for name, kind in load.kinds.items()}


@contextlib.contextmanager
def blamed_on(place: int) -> Iterator[None]:
    """Set the index `place` of a server on a LoadError that is raised in the block."""
    try:
        yield
    except LoadError as error:
        error.place = place
        raise


@dataclass(frozen=True)
class CountedWork:
    """The work of a counted pass, by one client: fixed numbers of transactions between marks."""

    transactions: int
    warm: int
    """Transactions before the first mark, so that caches and cached plans are as they stay."""
    mark: str
    """The SQL statement that is a mark."""
    seconds: float
    """Time limit."""


class Observer(Protocol):
    """Measures the costs of a load while it is steady."""

    def begin(self, pid: int) -> None:
        """Start measuring, when all connections are open; `pid` is that of the load generator."""

    def end(self, pid: int) -> None:
        """Stop measuring, while connections are still open; if called several times, the last call counts."""


class Generator(Protocol):
    """A program that loads data and puts a server under load.

    Its rules for a suite are in suites/keys/generator_rules.py, its constructor in
    suites/generators/registry.py.
    """

    def version(self) -> str:
        """Return the program's own name and version."""

    def load(self, address: Address) -> None:
        """Create the tables and fill them. Raises LoadError."""

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        """Run one step. Raises LoadError."""

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run one step on servers that take turns; return one Load per server. Raises LoadError."""

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Return the statements of a step, with usual parameters; only of suites with `plans`."""

    def count(self, address: Address, step: Step, work: CountedWork) -> float:
        """Run a counted pass of a step, and return the queries per transaction. Raises LoadError.

        Equal work on equal data sends the server the same statements with the same parameters.
        """


def lines_of(
    argv: Sequence[str | Path],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, str]]:
    """Start `argv`, and yield its pid and one line of output until it ends; see lines_of_all."""
    for _, pid, line in lines_of_all([argv], deadline_seconds, env, bound_to):
        yield pid, line


def lines_of_all(
    commands: Sequence[Sequence[str | Path]],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, int, str]]:
    """Start all `commands`, and yield the index of a command, its pid and one line until all have ended.

    `env` is added to their variables. `bound_to` are the cores that the programs may use; None does not
    restrict them. Raises LoadError if a program fails, with its last lines, or runs longer than
    `deadline_seconds`. However the caller leaves the loop, the programs have ended afterwards.
    """
    processes: list[subprocess.Popen[bytes]] = []
    seen: list[list[str]] = [[] for _ in commands]
    try:
        for argv in commands:
            process = start(argv, subprocess.PIPE, bound_to=bound_to, stderr=subprocess.STDOUT, env=env)
            processes.append(process)
        program = Path(commands[0][0]).name
        for place, line in _read_lines(processes, program, time.monotonic() + deadline_seconds):
            seen[place].append(line)
            yield place, processes[place].pid, line
        _require_all(processes, commands, seen)
    finally:
        for process in processes:
            stop(process, patience=1)
            if process.stdout is not None:
                process.stdout.close()


def _require_all(
    processes: "Sequence[subprocess.Popen[bytes]]",
    commands: Sequence[Sequence[str | Path]],
    seen: Sequence[Sequence[str]],
) -> None:
    """Raise LoadError if one of the programs failed; the caller ends those that still run."""
    for place, (process, argv, lines) in enumerate(zip(processes, commands, seen, strict=True)):
        status = process.poll()
        if status:
            how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
            said = [line for line in lines if not line.startswith(SCRIPT_LINE)]
            raise LoadError(with_output(f"{Path(argv[0]).name} {how}", "\n".join(said)), place=place)


def run_all(
    commands: Sequence[Sequence[str]],
    at_most: int,
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run `commands`, up to `at_most` of them in parallel, for up to `deadline_seconds` per command.

    `env` is added to their variables. Raises LoadError if one fails. Threads are not used, because an
    interrupt must end all programs immediately.
    """
    waiting, running = list(commands), dict[str, subprocess.Popen[bytes]]()
    deadline = time.monotonic() + deadline_seconds * len(commands)
    with tempfile.TemporaryFile() as output:
        try:
            while waiting or running:
                while waiting and len(running) < at_most:
                    argv = waiting.pop(0)
                    running[" ".join(argv)] = start(argv, output, stderr=subprocess.STDOUT, env=env)
                time.sleep(0.01)
                for command, process in list(running.items()):
                    if process.poll() is not None:
                        del running[command]
                        _require_success(process.returncode, command, output)
                if time.monotonic() > deadline:
                    raise LoadError(
                        f"loading data is not finished after {deadline_seconds * len(commands):g} s",
                        where=", ".join(running),
                        hint="check whether the server hangs or the disk is overloaded",
                    )
        finally:
            for process in running.values():
                stop(process, patience=1)


def _require_success(status: int, command: str, output: IO[bytes]) -> None:
    if status != 0:
        output.seek(0)
        said = output.read().decode(errors="replace")
        raise LoadError(with_output(f"loading data failed with status {status}", said), where=command)


def _read_lines(
    processes: "Sequence[subprocess.Popen[bytes]]", program: str, deadline: float
) -> Iterator[tuple[int, str]]:
    """Yield index of a process and line as they come; end if one fails, because others may wait for it."""
    rests = [b""] * len(processes)
    with selectors.DefaultSelector() as selector:
        for place, process in enumerate(processes):
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, place)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            # The deadline also holds for a program that never stops printing.
            if not ready:
                raise _late(program, [key.data for key in selector.get_map().values()])
            for key, _ in ready:
                place = key.data
                chunk = os.read(key.fd, 65536)
                *lines, rests[place] = (rests[place] + chunk).split(b"\n")
                yield from ((place, line.decode(errors="replace")) for line in lines)
                if not chunk:
                    selector.unregister(key.fileobj)
                    if rests[place]:
                        yield place, rests[place].decode(errors="replace")
                    if _status(processes[place], program, place, deadline) != 0:
                        return


def _status(process: "subprocess.Popen[bytes]", program: str, place: int, deadline: float) -> int:
    """Return the exit status of a program that has closed its output. Raises LoadError at the deadline."""
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _late(program, [place]) from None


def _late(program: str, places: Sequence[int]) -> LoadError:
    return LoadError(
        f"{program} is still running {OVERTIME_SECONDS} s after its time limit",
        hint="check the server's log: it may hang, or the machine is far too slow for this profile",
        place=places[0] if len(places) == 1 else None,
    )


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""The recorded percentiles of latency: name -> percent."""


def histogram_percentiles(values: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
    """Return PERCENTILES of a histogram: the lowest bucket up to which there is that share of the events.

    `values` are the buckets' values in ascending order, `counts` their events. Empty if there is no event.
    """
    if not any(counts):
        return {}
    # As floats, which whole numbers up to 2**53 are exactly: sums of damaged counts overflow integers.
    reached = np.cumsum(counts, dtype=np.float64) / np.sum(counts, dtype=np.float64) * 100
    places = {name: int(np.searchsorted(reached, share - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: values[min(place, len(values) - 1)] for name, place in places.items()}

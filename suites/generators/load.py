"""What every load generator is asked for and answers, and how its program is run."""

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from build.errors import TidemarkError
from suites.definition import Step
from suites.processes import start, stop, tail
from suites.server import Address
from suites.slices import Schedule

OVERTIME_SECONDS = 30
"""How many seconds beyond its limit a load generator may take to start and to report before it is ended."""

COUNT = r"[0-9]{1,15}(?![0-9])"
"""A whole number in a report, as a pattern: more digits are damage, and int() refuses thousands."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?![0-9.])"
"""A decimal number in a report, as a pattern: what it matches is what float() takes."""


class LoadError(TidemarkError):
    """A load generator failed, was killed, or printed something that cannot be read.

    `place` is the place of its server among those that take turns, when that is known.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", place: int | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.place = place


@dataclass(frozen=True)
class WorkLimit:
    """How much a step has to do: it ends at the limit that is reached first."""

    seconds: float
    """Time limit in seconds."""
    transactions: int | None
    """Work limit, over all threads; None when only time limits the step."""


@dataclass(frozen=True)
class Share:
    """What servers that take turns do in one round of a step."""

    schedule: Schedule
    """Which server works when."""
    round: int
    """Number of the round, from 1: each round draws other ids."""
    transactions: int | None = None
    """The most transactions of one server; None when only time limits the step."""
    done_before: int = 0
    """Earlier transactions of the step on the same data: a step that uses rows up goes on after them."""


def whole_seconds(work: WorkLimit) -> int:
    """Return the time limit in whole seconds, at least 1: load generators take 0 for no limit."""
    return max(1, round(work.seconds))


@dataclass(frozen=True)
class Load:
    """What a load generator did."""

    transactions: int
    """Finished transactions."""
    queries: float
    """Queries of these transactions."""
    seconds: float
    """Time from the first transaction's start to the last one's end, without waiting for other servers."""
    errors: int
    """Errors that did not end the run, such as deadlocks, after which a transaction began again."""
    per_second: tuple[float, ...]
    """Queries/s in each whole second."""
    latency_ms: Mapping[str, float]
    """Milliseconds by name: mean, p50, p95, p99, p999, max."""
    watched_queries: float
    """Queries finished between the observer's begin and end."""
    watched_seconds: float
    """Time between the observer's begin and end."""


@contextlib.contextmanager
def blamed_on(place: int) -> Iterator[None]:
    """Set `place`, that of a server, on a LoadError that leaves the block."""
    try:
        yield
    except LoadError as error:
        error.place = place
        raise


class Observer(Protocol):
    """Measures what a load costs while it is steady."""

    def begin(self, pid: int) -> None:
        """Begin to measure: all connections are open. `pid` is the load generator's."""

    def end(self, pid: int) -> None:
        """End measuring: the work is done, connections are still open. The last of several calls counts."""


class Generator(Protocol):
    """A program that loads data and puts a server under load.

    Its rules stand in suites/generators/rules.py, how it is made in suites/generators/registry.py.
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
        """Run one step on several servers that take turns; return the Load of each. Raises LoadError."""


def lines_of(
    argv: Sequence[str | Path],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, str]]:
    """Start `argv` and yield (its pid, a line of its output) until it ends; see lines_of_all."""
    for _, pid, line in lines_of_all([argv], deadline_seconds, env, bound_to):
        yield pid, line


def lines_of_all(
    commands: Sequence[Sequence[str | Path]],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, int, str]]:
    """Start all `commands` at once and yield (place of the command, its pid, a line) until all have ended.

    `env` is added to the environment. `bound_to` names the cores that the programs may use; None leaves that
    to the scheduler. Raises LoadError when one fails, with its last lines, or when one is not done after
    `deadline_seconds`. However the caller leaves the loop, the programs are gone afterwards.
    """
    processes: list[subprocess.Popen[bytes]] = []
    seen: list[list[str]] = [[] for _ in commands]
    try:
        for argv in commands:
            merged = {**os.environ, **(env or {})}
            processes.append(
                start(argv, subprocess.PIPE, bound_to=bound_to, stderr=subprocess.STDOUT, env=merged)
            )
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
    """Raise LoadError when one of the programs failed; the caller ends those that still run."""
    for place, (process, argv, lines) in enumerate(zip(processes, commands, seen, strict=True)):
        status = process.poll()
        if status:
            how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
            raise LoadError(f"{Path(argv[0]).name} {how}", hint=tail("\n".join(lines)), place=place)


def run_all(
    commands: Sequence[Sequence[str]],
    at_most: int,
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run `commands`, up to `at_most` of them in parallel, each for up to `deadline_seconds`.

    `env` is added to the environment. Raises LoadError when one fails. There are no threads, because an
    interrupt must end all programs at once.
    """
    waiting, running = list(commands), dict[str, subprocess.Popen[bytes]]()
    deadline = time.monotonic() + deadline_seconds * len(commands)
    with tempfile.TemporaryFile() as output:
        try:
            while waiting or running:
                while waiting and len(running) < at_most:
                    argv = waiting.pop(0)
                    merged = {**os.environ, **(env or {})}
                    running[" ".join(argv)] = start(argv, output, stderr=subprocess.STDOUT, env=merged)
                time.sleep(0.01)
                for command, process in list(running.items()):
                    if process.poll() is not None:
                        del running[command]
                        _require_success(process.returncode, command, output)
                if time.monotonic() > deadline:
                    raise LoadError("loading data takes too long", where=", ".join(running))
        finally:
            for process in running.values():
                stop(process, patience=1)


def _require_success(status: int, command: str, output: IO[bytes]) -> None:
    if status != 0:
        output.seek(0)
        raise LoadError(
            f"loading data failed with status {status}",
            where=command,
            hint=tail(output.read().decode(errors="replace")),
        )


def _read_lines(
    processes: "Sequence[subprocess.Popen[bytes]]", program: str, deadline: float
) -> Iterator[tuple[int, str]]:
    """Yield (place of the process, line) as they come; end early when one failed: others may wait for it."""
    rests = [b""] * len(processes)
    with selectors.DefaultSelector() as selector:
        for place, process in enumerate(processes):
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, place)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            # A program that never stops printing is overdue too.
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
        f"{program} is not done {OVERTIME_SECONDS} s after its time limit",
        hint="the server hangs, or the machine is far too slow for this profile",
        place=places[0] if len(places) == 1 else None,
    )


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""Percentiles of latency that are kept, by name, in percent."""


def histogram_percentiles(values: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
    """Return PERCENTILES of a histogram: the least bucket value that at least that share of events is within.

    `values` are the buckets' values in ascending order, `counts` their events. Empty when there is no event.
    """
    if not any(counts):
        return {}
    # As floats, which whole numbers up to 2**53 are exactly: sums of damaged counts overflow integers.
    reached = np.cumsum(counts, dtype=np.float64) / np.sum(counts, dtype=np.float64) * 100
    places = {name: int(np.searchsorted(reached, share - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: values[min(place, len(values) - 1)] for name, place in places.items()}

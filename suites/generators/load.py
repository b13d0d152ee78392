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
"""How long beyond its limit a load generator may take to start and to report before it is ended."""

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
"""A decimal number in a report, as a pattern: what it matches is what float() takes."""


class LoadError(TidemarkError):
    """A load generator that failed, was killed, or printed something that cannot be read.

    `place` is which of several, when that is known.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", place: int | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.place = place


@dataclass(frozen=True)
class WorkLimit:
    """How much a step has to do: it ends at whichever limit comes first."""

    seconds: float
    """Time limit."""
    transactions: int | None
    """Work limit, over all threads; None when only time limits the step."""


@dataclass(frozen=True)
class Share:
    """What servers do that take turns."""

    schedule: Schedule
    round: int
    """From 1: another round draws other ids."""
    transactions: int | None = None
    """The most that one server may do; None when only time limits the step."""
    done_before: int = 0
    """Transactions of this step on the same data before: a step that uses rows up goes on after them."""


def whole_seconds(work: WorkLimit) -> int:
    """The time limit as load generators take it: 0 would mean that there is none."""
    return max(1, round(work.seconds))


@dataclass(frozen=True)
class Load:
    """What a load generator did."""

    transactions: int
    queries: float
    seconds: float
    """From the first transaction's start to the last one's end."""
    errors: int
    per_second: tuple[float, ...]
    """Queries/s in each whole second."""
    latency_ms: Mapping[str, float]
    """Milliseconds by name: mean, p50, p95, p99, p999, max."""
    watched_queries: float
    """Queries finished between the observer's begin and end."""
    watched_seconds: float


@contextlib.contextmanager
def blamed_on(place: int) -> Iterator[None]:
    """A LoadError that leaves the block says that it was the load of the server at `place`."""
    try:
        yield
    except LoadError as error:
        error.place = place
        raise


class Observer(Protocol):
    """Told when the steady part of a load begins and ends, so that costs can be counted in between."""

    def begin(self, pid: int) -> None:
        """All connections are open and work begins; `pid` is the load generator."""

    def end(self, pid: int) -> None:
        """Work has ended; connections are still open. The last call counts."""


class Generator(Protocol):
    """A program that loads data and puts a server under load."""

    def version(self) -> str:
        """What the program says of itself."""

    def load(self, address: Address) -> None:
        """Create the tables and fill them. Raises LoadError."""

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        """Run one step. Raises LoadError."""

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: "Share", observers: Sequence[Observer]
    ) -> list[Load]:
        """Run one step on several servers that take turns; one Load each. Raises LoadError."""


def lines_of(
    argv: Sequence[str | Path],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, str]]:
    """Start `argv` and yield (its pid, a line it printed) until it ends; see lines_of_all."""
    for _, pid, line in lines_of_all([argv], deadline_seconds, env, bound_to):
        yield pid, line


def lines_of_all(
    commands: Sequence[Sequence[str | Path]],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
) -> Iterator[tuple[int, int, str]]:
    """Start all `commands` at once and yield (place of the command, its pid, a line) until all have ended.

    Raises LoadError when one fails, with its last lines, or when one is not done after `deadline_seconds`.
    However the caller leaves the loop, the programs are gone afterwards.
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
    """Raise LoadError when one of the programs failed; those that still run then are of no more use."""
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
    """Run `commands`, `at_most` of them side by side, each for `deadline_seconds` at the most.

    Raises LoadError when one fails. No threads: an interrupt must end them all at once.
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
    """(place of the process, line) as they come. Ends early when a process failed: the others may wait."""
    rests = [b""] * len(processes)
    with selectors.DefaultSelector() as selector:
        for place, process in enumerate(processes):
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, place)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            # A program that never stops printing is late too.
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
    """How a program ended that prints no more. Raises LoadError when it does not end before the deadline."""
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


def histogram_percentiles(values: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
    """Percentiles of a histogram: the least bucket value that at least that share of events stays within."""
    if not any(counts):
        return {}
    reached = np.cumsum(counts) / np.sum(counts) * 100
    places = {name: int(np.searchsorted(reached, share - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: values[min(place, len(values) - 1)] for name, place in places.items()}

"""What every load generator is asked for, and what it answers."""

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from build.errors import TidemarkError
from suites.definition import Step
from suites.processes import start, stop, tail
from suites.server import Address

OVERTIME_SECONDS = 30
"""How long beyond its limit a load generator may take to start and to report before it is ended."""

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
"""A decimal number in a report, as a pattern: what it matches is what float() takes."""


class LoadError(TidemarkError):
    """A load generator that failed, was killed, or printed something that cannot be read."""


@dataclass(frozen=True)
class Work:
    """How much a step has to do: it ends at whichever limit comes first."""

    seconds: float
    """Time limit."""
    transactions: int | None
    """Work limit, over all threads; None when only time limits the step."""
    whole: bool = False
    """Whether the work limit is the point, and to run into the time limit is to have done too little."""


def whole_seconds(work: Work) -> int:
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

    def run(self, address: Address, step: Step, work: Work, observer: Observer) -> Load:
        """Run one step. Raises LoadError."""


def lines_of(
    argv: Sequence[str | Path], deadline_seconds: float, env: Mapping[str, str] | None = None
) -> Iterator[tuple[int, str]]:
    """Start `argv` and yield (its pid, a line it printed) until it ends.

    Raises LoadError when it fails, with its last lines, or when it is not done after `deadline_seconds`.
    However the caller leaves the loop, the program is gone afterwards.
    """
    process = start(argv, subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    seen: list[str] = []
    try:
        for line in _read_lines(process, Path(argv[0]).name, time.monotonic() + deadline_seconds):
            seen.append(line)
            yield process.pid, line
        status = process.wait()
    finally:
        stop(process, patience=1)
        if process.stdout is not None:
            process.stdout.close()
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
        raise LoadError(f"{Path(argv[0]).name} {how}", hint=tail("\n".join(seen)))


def run_all(commands: Sequence[Sequence[str]], at_most: int, deadline_seconds: float) -> None:
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
                    running[" ".join(argv)] = start(argv, output, stderr=subprocess.STDOUT)
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


def _read_lines(process: "subprocess.Popen[bytes]", program: str, deadline: float) -> Iterator[str]:
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            # A program that never stops printing is late too.
            if left <= 0 or not selector.select(left):
                raise LoadError(
                    f"{program} is not done {OVERTIME_SECONDS} s after its time limit",
                    hint="the server hangs, or the machine is far too slow for this profile",
                )
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def histogram_percentiles(values: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
    """Percentiles of a histogram: the least bucket value that at least that share of events stays within."""
    if not any(counts):
        return {}
    reached = np.cumsum(counts) / np.sum(counts) * 100
    places = {name: int(np.searchsorted(reached, share - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: values[min(place, len(values) - 1)] for name, place in places.items()}

"""Connections that sysbench opens and holds open, whose memory is measured from outside.

They are sysbench's, and not ones of Python, because it has the clients' own libraries for all engines: they
prepare statements in the server's protocol, and connect as fast as clients do.
"""

import os
import re
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suites.generators.drivers import current_folder
from suites.generators.load import COUNT, NUMBER, LoadError
from suites.generators.placement import placement
from suites.generators.plausibility import require_seconds
from suites.generators.programs import lines_of_all
from suites.generators.sysbench import Sysbench
from suites.keys.step import Step
from suites.server import Address

AT_ONCE = 50
"""Connections of one process of sysbench, which connect and work at once."""

OPEN_SECONDS = 120.0
"""Time limit for opening and using the connections of one process, without their transactions."""

TRANSACTION_SECONDS = 1.0
"""Time limit for one more transaction of all of them."""

_CONNECTED = re.compile(rf"tidemark: connected {COUNT} from ({NUMBER}) to ({NUMBER})")
_HOLDING = re.compile(rf"tidemark: holding {COUNT} with ({COUNT}) prepared statements")


@dataclass
class OpeningTranscript:
    """What a process of sysbench has said of the connections that it opens."""

    connected: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end of each connect with its SELECT 1, in seconds of the monotonic clock."""
    prepared: list[int] = field(default_factory=list)
    """Prepared statements of each connection that is ready."""

    def read(self, line: str) -> None:
        """Parse one line of output; irrelevant lines are ignored."""
        if match := _CONNECTED.fullmatch(line):
            self.connected.append((float(match[1]), float(match[2])))
        elif match := _HOLDING.fullmatch(line):
            self.prepared.append(int(match[1]))

    @property
    def seconds(self) -> float:
        """Time from the first begin of a connect to the last end. Raises LoadError if that cannot be."""
        if not self.connected:
            raise LoadError("sysbench has opened no connection", hint="check the server's log")
        seconds = max(end for _, end in self.connected) - min(begin for begin, _ in self.connected)
        require_seconds(seconds)
        return seconds


class HeldConnections:
    """The connections of one process of sysbench, which stay open until `close`."""

    def __init__(self, lines: Generator[tuple[int, int, str]], count: int) -> None:
        """Wait until all `count` connections are ready; `lines` are those of sysbench. Raises LoadError."""
        self.count = count
        self._lines = lines
        self._pid: int | None = None
        self._transcript = OpeningTranscript()
        for _, pid, line in lines:
            self._pid = pid
            self._transcript.read(line)
            if len(self._transcript.prepared) == count:
                return
        raise LoadError(f"sysbench ended before it held {count} connections")

    @property
    def seconds(self) -> float:
        """Time in which they connected."""
        return self._transcript.seconds

    @property
    def prepared(self) -> int:
        """Prepared statements of one connection."""
        return max(self._transcript.prepared)

    def require_held(self) -> None:
        """Raise LoadError if sysbench has ended, and its connections with it."""
        assert self._pid is not None
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            raise LoadError("sysbench ended while it held connections", hint="check the kernel's log")

    def close(self) -> None:
        """End sysbench, and so its connections."""
        self._lines.close()


class Connections(Sysbench):
    """Opens connections that stay open; loads and knows its version as Sysbench does."""

    def hold(self, address: Address, step: Step, count: int, *, scan: bool = False) -> HeldConnections:
        """Open `count` connections, use them as `step` says, and hold them.

        With `scan` they read all tables first. Raises LoadError.
        """
        options = [f"--{name}={value}" for name, value in step.options.items()]
        limits = [f"--threads={count}", "--time=0", "--events=0", f"--rand-seed={self.suite.seed}"]
        argv = self._command(address, [*limits, *options, f"--scan={'on' if scan else 'off'}", "run"])
        seconds = OPEN_SECONDS + TRANSACTION_SECONDS * float(step.options.get("transactions", 0))
        cores = placement(step, self.sizes).client
        return HeldConnections(self._lines(argv, seconds, cores, current_folder(address)), count)

    def _lines(
        self, argv: Sequence[str], seconds: float, cores: Collection[int] | None, cwd: Path | None
    ) -> Generator[tuple[int, int, str]]:
        yield from lines_of_all([argv], seconds, self.environment, bound_to=cores, cwd=cwd)

"""perf: by which event it can sample here, and one recording of some processes."""

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from suites.processes import ProcessError, start, stop, tool, tree_of
from suites.profiling.output import in_a_sentence

FREQUENCY = 997
"""Samples in a second of CPU time: a prime, so that nothing periodic stays in step with it."""

LEAST_FREQUENCY = 49

MOST_SAMPLES = 200_000
"""In one recording, roughly."""

CYCLES = "cycles"
"""Hardware cycles: also what runs while interrupts are off, and without a timer's skid."""

CPU_CLOCK = "cpu-clock"
"""A timer of the kernel's, for machines without counters, such as most virtual ones."""

PATIENCE_SECONDS = 20
"""For perf to attach, to answer, and to write what it has."""

ATTEMPTS = 5

_MANY = 500
"""Processes in one recording; a server with more is attached to in part, and says so by its quality."""


class PerfError(TidemarkError):
    """A profile that could not be taken or read. What was measured stands without it."""


@dataclass(frozen=True)
class Perf:
    """A perf that works here."""

    program: str
    event: str
    """CYCLES or CPU_CLOCK, with `:u` where only a process' own code may be sampled."""
    machine_wide: bool = True
    """Whether it samples all cores, and what is not a server's is left out later; else it is attached to the
    servers' processes, and every switch from one to another has to stop and start it."""

    @property
    def described(self) -> str:
        """What a profile says it was sampled by."""
        return self.event if self.machine_wide else f"{self.event}, attached"


def find_perf() -> Perf:
    """The best way that perf may sample. Raises PerfError that says what to do."""
    try:
        program = tool("perf")
    except ProcessError as error:
        raise PerfError("perf is not installed", hint="apt-get install linux-perf") from error
    reasons = []
    ways = [(CYCLES, True), (CPU_CLOCK, True), (CYCLES, False), (CPU_CLOCK, False)]
    for event, machine_wide in [*ways, (f"{CYCLES}:u", False), (f"{CPU_CLOCK}:u", False)]:
        perf = Perf(program, event, machine_wide)
        reason = _refusal(perf)
        if reason is None:
            return perf
        reasons.append(f"{perf.described}: {reason}")
    raise PerfError(
        "perf may not sample here",
        where="; ".join(reasons),
        hint="./tidemark check --fix lowers perf_event_paranoid; a container must allow perf_event_open",
    )


def _refusal(perf: Perf) -> str | None:
    """None when perf can sample that way, else what it said."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "perf.data"
        command = [perf.program, "record", *_what(perf, []), "--output", str(output), "--quiet", "--", "true"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {PATIENCE_SECONDS} s"
        if done.returncode != 0 or not output.exists():
            said = [line.strip() for line in done.stderr.splitlines() if line.strip(" \t:")]
            return said[1] if len(said) > 1 and said[0] == "Error:" else (said or ["no reason given"])[0]
        # Without counters perf takes another event for `cycles` and says so at most in passing.
        command = [perf.program, "evlist", "--input", str(output)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        taken = {each.split(":")[0] for each in listed}
        return None if perf.event.split(":")[0] in taken else "not supported"


def _what(perf: Perf, pids: Sequence[int]) -> list[str]:
    """The options that say what is sampled: a machine's cores while they are not idle, or processes."""
    if perf.machine_wide:
        return ["--event", f"{perf.event}:I", "--all-cpus"]
    processes = ["--pid", ",".join(map(str, pids[:_MANY]))] if pids else []
    return ["--event", perf.event, *processes]


def frequency(core_seconds: float) -> float:
    """Samples in a second of CPU time: fewer where so many busy cores would be sampled for so long.

    All samples go through a text of perf's, of about a KiB each.
    """
    return min(FREQUENCY, max(LEAST_FREQUENCY, MOST_SAMPLES // max(1.0, core_seconds)))


class Recording:
    """perf on the machine, or on some processes and all that they start, from `enable` on."""

    def __init__(
        self,
        perf: Perf,
        pids: Sequence[int],
        output: Path,
        per_second: float,
        bound_to: Collection[int] | None,
    ) -> None:
        """Start perf, which itself runs on the cores `bound_to`. Raises PerfError."""
        self.output = output
        self._log = output.with_suffix(".log")
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        argv: list[str | Path] = [perf.program, "record", *_what(perf, pids)]
        argv += ["--freq", f"{per_second:.0f}", "--call-graph", "fp", "--output", output]
        # Attached, but not sampling before an order that comes through a pipe, and is answered. Times are
        # those of the clock that windows of a load are told by.
        argv += ["--delay", "-1", "--control", f"fd:{orders},{answers}", "--clockid", "monotonic"]
        argv.append("--no-buildid-cache")
        try:
            with self._log.open("wb") as log:
                self._process = start(
                    argv, log, bound_to=bound_to, stderr=subprocess.STDOUT, pass_fds=(orders, answers)
                )
        finally:
            os.close(orders)
            os.close(answers)

    def enable(self) -> None:
        """Begin to sample; returns when every process is attached to. Raises PerfError."""
        try:
            os.write(self._orders, b"enable\n")
        except OSError as error:
            raise PerfError("perf ended before it could sample", hint=self._said()) from error
        ready, _, _ = select.select([self._answers], [], [], PATIENCE_SECONDS)
        if not ready or not os.read(self._answers, 64).startswith(b"ack"):
            raise PerfError("perf does not begin to sample", hint=self._said())

    def finish(self) -> Path:
        """End perf and return the file with the samples. Raises PerfError."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise PerfError("perf does not end", where=str(self.output)) from error
        finally:
            self.close()
        if not self.output.is_file() or not self.output.stat().st_size:
            raise PerfError("perf wrote no samples", hint=self._said())
        return self.output

    def close(self) -> None:
        """End perf, if it still runs; what it has recorded is of no use then."""
        stop(self._process, patience=1)
        for end in (self._orders, self._answers):
            if end >= 0:
                os.close(end)
        self._orders = self._answers = -1

    def _said(self) -> str:
        try:
            return in_a_sentence("perf", self._log.read_text(errors="replace"))
        except OSError:
            return "perf said nothing"


def record(
    perf: Perf, roots: Sequence[int], output: Path, per_second: float, bound_to: Collection[int] | None
) -> Recording:
    """A recording of the processes `roots` and all their descendants, which samples already.

    An attached perf gives up when one of the processes has ended meanwhile, as a backend does whose client
    has gone, so that it is tried ATTEMPTS times. Raises PerfError.
    """
    for attempt in range(1, ATTEMPTS + 1):
        pids = [pid for root in roots for pid in tree_of(root)]
        recording = Recording(perf, pids, output, per_second, bound_to)
        try:
            recording.enable()
        except PerfError:
            recording.close()
            if attempt == ATTEMPTS:
                raise
            time.sleep(0.1)
        else:
            return recording
    raise AssertionError("the last attempt returns or raises")

"""Recording samples with perf, by the best event that this machine supports."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from build import environment
from build.addresses import redacted
from build.errors import TidemarkError
from build.files import make_folder
from build.home import locate
from build.host import why_not
from suites.processes import ProcessError, start, stop, tool, tree_of

LOG = "profiles.log"
"""The file below the home's logs in which the whole output is kept."""

MAX_CHARACTERS = 200


def in_a_sentence(program: str, output: str) -> str:
    """Return the line of a program's output that says what was wrong; all of it goes to LOG."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return f"{program} said nothing"
    shown = "".join(character if character.isprintable() else "?" for character in redacted(lines[0]))
    if len(shown) > MAX_CHARACTERS:
        shown = shown[: MAX_CHARACTERS - 1] + "…"
    return shown if len(lines) == 1 or not _kept(program, output) else f"{shown} (more in logs/{LOG})"


def _kept(program: str, output: str) -> bool:
    """Append the output to LOG; return whether that was possible, for which no measurement fails."""
    with contextlib.suppress(OSError):
        path = make_folder(locate().logs) / LOG
        with path.open("a", encoding="utf-8", errors="replace") as log:
            log.write(
                f"--- {program}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n{redacted(output).rstrip()}\n"
            )
        return True
    return False


FREQUENCY = 997
"""Samples per second of CPU time: a prime, so that sampling does not synchronize with periodic work."""

MIN_FREQUENCY = 49
"""The minimum of samples per second of CPU time."""

MAX_SAMPLES = 200_000
"""The approximate maximum number of samples in one recording."""

CYCLES = "cycles"
"""Hardware cycles, which also sample code with disabled interrupts, without the skid of a timer."""

CPU_CLOCK = "cpu-clock"
"""A timer of the kernel, for machines without hardware counters, such as most virtual machines."""

PATIENCE_SECONDS = 20
"""Time limit for perf to attach, to answer, and to write its file."""

ATTEMPTS = 5

_MANY = 500
"""The most processes that perf attaches to. Of a server with more, the profile is incomplete."""


class PerfError(TidemarkError):
    """A profile could not be taken or read. The measurement itself is still valid."""


@dataclass(frozen=True)
class Perf:
    """A program perf, and a way of sampling that works on this machine."""

    program: str
    event: str
    """CYCLES or CPU_CLOCK, with the suffix `:u` if only user code may be sampled."""
    machine_wide: bool = True
    """Whether all cores are sampled, and samples of other processes are discarded later. Otherwise, perf is
    attached to the servers' processes, and stops and starts with every context switch between them."""

    @property
    def description(self) -> str:
        """The event and the way of sampling, as stored with a profile."""
        return self.event if self.machine_wide else f"{self.event}, attached"


def find_perf() -> Perf:
    """Return the best way of sampling that perf supports here. Raises PerfError if there is none."""
    try:
        program = tool("perf")
    except ProcessError as error:
        raise PerfError("perf is not installed", hint=error.hint) from error
    broken = why_not(program, env=environment.measured())
    if broken is not None:
        raise PerfError(
            f"perf does not work: {broken}", where=program, hint="install the perf of this kernel"
        )
    reasons = []
    ways = [(CYCLES, True), (CPU_CLOCK, True), (CYCLES, False), (CPU_CLOCK, False)]
    for event, machine_wide in [*ways, (f"{CYCLES}:u", False), (f"{CPU_CLOCK}:u", False)]:
        perf = Perf(program, event, machine_wide)
        reason = _refusal(perf)
        if reason is None:
            return perf
        reasons.append(f"{perf.description}: {reason}")
    raise PerfError(
        "perf may not sample here",
        where="; ".join(reasons),
        hint="./tidemark check --fix lowers perf_event_paranoid; a container must allow perf_event_open",
    )


def _refusal(perf: Perf) -> str | None:
    """Return None if perf can sample in this way, else its error message."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "perf.data"
        targets = _targets(perf, [])
        command = [perf.program, "record", *targets, "--output", str(output), "--quiet", "--", "true"]
        try:
            completed = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env=environment.measured(),
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {PATIENCE_SECONDS} s"
        if completed.returncode != 0 or not output.exists():
            errors = [line.strip() for line in completed.stderr.splitlines() if line.strip(" \t:")]
            return (
                errors[1] if len(errors) > 1 and errors[0] == "Error:" else (errors or ["no reason given"])[0]
            )
        # Without hardware counters, perf silently replaces `cycles` by another event.
        command = [perf.program, "evlist", "--input", str(output)]
        listed = subprocess.run(
            command, capture_output=True, text=True, env=environment.measured(), check=False
        )
        recorded = {event.split(":")[0] for event in listed.stdout.split()}
        return None if perf.event.split(":")[0] in recorded else "not supported"


def _targets(perf: Perf, pids: Sequence[int]) -> list[str]:
    """Return the options that select what is sampled: all cores while they are not idle, or processes."""
    if perf.machine_wide:
        return ["--event", f"{perf.event}:I", "--all-cpus"]
    processes = ["--pid", ",".join(map(str, pids[:_MANY]))] if pids else []
    return ["--event", perf.event, *processes]


def frequency(core_seconds: float) -> float:
    """Return the samples per second of CPU time, fewer if a recording covers many `core_seconds`.

    The number of samples is limited because perf writes about 1 KiB of text per sample.
    """
    return min(FREQUENCY, max(MIN_FREQUENCY, MAX_SAMPLES // max(1.0, core_seconds)))


class Recording:
    """A running perf that samples the machine, or processes and their descendants, after `enable`."""

    def __init__(
        self,
        perf: Perf,
        pids: Sequence[int],
        output: Path,
        per_second: float,
        bound_to: Collection[int] | None,
    ) -> None:
        """Start perf, without sampling yet, on the cores `bound_to`. Raises PerfError."""
        self.output = output
        self._log = output.with_suffix(".log")
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        argv: list[str | Path] = [perf.program, "record", *_targets(perf, pids)]
        argv += ["--freq", f"{per_second:.0f}", "--call-graph", "fp", "--output", output]
        # perf attaches, but samples only after a command through a pipe, which it acknowledges. The clock is
        # the one of the windows.
        argv += ["--delay", "-1", "--control", f"fd:{commands},{answers}", "--clockid", "monotonic"]
        argv.append("--no-buildid-cache")
        try:
            with self._log.open("wb") as log:
                self._process = start(
                    argv, log, bound_to=bound_to, stderr=subprocess.STDOUT, pass_fds=(commands, answers)
                )
        finally:
            os.close(commands)
            os.close(answers)

    def enable(self) -> None:
        """Start sampling, and wait until perf is attached to every process. Raises PerfError."""
        try:
            os.write(self._commands, b"enable\n")
        except OSError as error:
            raise PerfError(f"perf ended before it could sample: {self._output()}") from error
        ready, _, _ = select.select([self._answers], [], [], PATIENCE_SECONDS)
        if not ready or not os.read(self._answers, 64).startswith(b"ack"):
            raise PerfError(f"perf did not start sampling within {PATIENCE_SECONDS} s: {self._output()}")

    def finish(self) -> Path:
        """End perf, and return the file with the samples. Raises PerfError."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise PerfError(
                f"perf did not end within {PATIENCE_SECONDS} s", where=str(self.output)
            ) from error
        finally:
            self.close()
        if not self.output.is_file() or not self.output.stat().st_size:
            raise PerfError(f"perf wrote no samples: {self._output()}")
        return self.output

    def close(self) -> None:
        """End perf if it still runs, without waiting for a complete file."""
        stop(self._process, patience=1)
        for descriptor in (self._commands, self._answers):
            if descriptor >= 0:
                os.close(descriptor)
        self._commands = self._answers = -1

    def _output(self) -> str:
        try:
            return in_a_sentence("perf", self._log.read_text(errors="replace"))
        except OSError:
            return "perf printed nothing"


def record(
    perf: Perf, roots: Sequence[int], output: Path, per_second: float, bound_to: Collection[int] | None
) -> Recording:
    """Return a recording of the processes `roots` and all their descendants, which is already sampling.

    An attached perf fails if one of the processes ends meanwhile, such as a backend whose client has
    disconnected. It is therefore tried up to ATTEMPTS times. Raises PerfError.
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

"""Running the commands of a compile: output to a log, progress from the log, nothing left behind."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from build.errors import TidemarkError

TAIL_LINES = 30
"""How much of the log an error shows."""

STAGE_SECONDS = 4 * 3600.0
"""How long one command of a compile may take: MySQL's takes an hour on two cores."""

SILENT_SECONDS = 25 * 60.0
"""A command that writes nothing to the log for so long hangs; less than what makes a night count as hung."""

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 3.0


class CompileError(TidemarkError):
    """A command of a compile failed."""


@dataclass
class CompileCommands:
    """One compile's commands, all appending to one log."""

    label: str
    """What is being made, for errors: `postgres@18.6`."""

    log: Path
    environment: Mapping[str, str]
    counted: re.Pattern[bytes]
    """Matches the log lines that announce one compiler run."""

    on_count: Callable[[int], None] = lambda _: None
    """Told the number of compiler runs so far whenever it has grown."""

    on_stage: Callable[[str], None] = lambda _: None
    """Told the name of each stage when it starts."""

    inherit: tuple[int, ...] = ()
    """File descriptors, of locks, that the children keep open should this process be killed."""

    count: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage took."""

    def run(self, stage: str, command: Sequence[str], folder: Path, stdin: IO[bytes] | None = None) -> None:
        """Run one command to its end in `folder`.

        Raises CompileError, with the end of the log, when it fails, hangs or cannot be started. On any way
        out, Ctrl-C included, no process of it is left.
        """
        started = time.monotonic()
        self.on_stage(stage)
        with self.log.open("ab") as log, self.log.open("rb") as reading:
            log.write(f"\n=== {stage}: {' '.join(command)}\n".encode())
            log.flush()
            reading.seek(0, os.SEEK_END)
            status = self._finished(stage, command, folder, log, reading, stdin)
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - started, 3)
        if status != 0:
            raise self.failure(stage, f"exit status {status}" if status > 0 else f"signal {-status}")

    def failure(self, stage: str, reason: str) -> CompileError:
        """The error for a stage that failed: the last lines of the log, and where the rest is."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return CompileError(
            f"{self.label}: {stage} failed ({reason}); the log ends with\n" + "\n".join(lines),
            where=str(self.log),
        )

    def _finished(
        self,
        stage: str,
        command: Sequence[str],
        folder: Path,
        log: IO[bytes],
        reading: IO[bytes],
        stdin: IO[bytes] | None,
    ) -> int:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(self.environment),
                stdin=stdin or subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # A group of its own: make's children are ended with it, and Ctrl-C reaches Python first.
                start_new_session=True,
                pass_fds=self.inherit,
                umask=0o022,  # The server's unprivileged user has to read what is installed.
            )
        except OSError as error:
            raise self.failure(stage, str(error)) from error
        try:
            return self._watched(stage, process, reading)
        finally:
            end_group(process)

    def _watched(self, stage: str, process: subprocess.Popen[bytes], reading: IO[bytes]) -> int:
        # The command writes the log itself and Python only looks now and then: a compile is not slowed by
        # whoever watches it.
        rest = b""
        began = heard = time.monotonic()
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
            now, new_text = time.monotonic(), reading.read()
            heard = now if new_text else heard
            lines = (rest + new_text).split(b"\n")
            rest = lines.pop()
            new = sum(1 for line in lines if self.counted.search(line))
            if new:
                self.count += new
                self.on_count(self.count)
            if process.returncode is not None:
                return process.returncode
            if now - began > STAGE_SECONDS:
                raise self.failure(stage, f"not done after {STAGE_SECONDS / 3600:g} hours")
            if now - heard > SILENT_SECONDS:
                raise self.failure(stage, f"silent for {SILENT_SECONDS / 60:g} minutes: it hangs")


def end_group(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    """End a process that leads its own group, and the whole group with it; returns when none is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

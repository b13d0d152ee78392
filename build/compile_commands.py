"""Running the commands of a compile: their output goes to a log, from which progress and errors are read.

No process of a compile outlives the call that started it.
"""

import errno
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from build import accounts
from build.errors import TidemarkError

TAIL_LINES = 30
"""Lines of the log that an error message quotes of a command that says no error, or hangs."""

FIRST_ERROR = "the first error in the log:"
"""How the first line of a CompileError ends if such an error is known."""

MARK = "=== "
"""What the line in the log begins with before the output of each command."""

NOTES = ("config.log", "*/CMakeFiles/CMakeError.log", "*/CMakeFiles/CMakeConfigureLog.yaml")
"""Files below the folder of a command, in which configure and CMake note why a check failed."""

LINES_BEFORE = 3
LINES_AFTER = 8

LONGEST_LINE = 300
"""The most characters of a line that is shown: commands of a compile have thousands."""

_OF_COMPILER = re.compile(
    r":\d+: (?:fatal )?error: |^[\w./+-]+: (?:fatal )?error: |^error(?:\[\w+\])?: |internal compiler error"
    r"|undefined reference to|multiple definition of|\bld: cannot find |^configure: error: |^CMake Error\b"
    r"|No space left on device|[Cc]annot allocate memory|Killed signal"
)
"""What compilers, linkers, configure and CMake say when they fail."""

_OF_SHELL = re.compile(
    r"^FATAL|^ERROR\b|syntax error|command not found|: not found$|: No such file or directory"
    r"|: Permission denied|[Oo]ut of memory|^Killed"
)
"""What other programs say, some of them also of what does not matter."""

_OF_MAKE = re.compile(r"^\S*make\S*: \*\*\* (?!.*\(ignored\))|^ninja: (?:error|build stopped): |^FAILED: ")
"""What make and ninja say of a program that failed, after its own words."""

_CHECK = re.compile(r"^configure:\d+: (?:checking|error)\b")
_CONFIGURE_FAILED = re.compile(r"^configure:\d+: error: ")
_TEST_PROGRAM = ("|", "configure: failed program was:")

STAGE_SECONDS = 4 * 3600.0
"""Time limit of one command of a compile; compiling MySQL takes an hour on two cores."""

SILENT_SECONDS = 25 * 60.0
"""A command that writes nothing to the log for this long is considered hung. The limit is shorter than the
one after which a night counts as hung."""

READ_BYTES = 10_000_000
"""The most that is read of a file that a command has written."""

READ_SECONDS = "10"
"""Time limit of reading it: it may be a pipe."""

_CLOCK_SECONDS = 1.0
"""How much older the time of a file may be than the moment in which it was written."""

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 3.0


class CompileError(TidemarkError):
    """A command of a compile failed, hung, or could not be started."""


@dataclass
class CompileCommands:
    """Runs the commands of one compile, which all append to one log."""

    label: str
    """The version that is compiled, for error messages: `postgres@18.6`."""

    log: Path
    environment: Mapping[str, str]
    counted: re.Pattern[bytes]
    """Matches each line of the log that announces a run of the compiler."""

    on_count: Callable[[int, int | None], None] = lambda count, total: None
    """Called with the number of compiler runs so far whenever it has grown, and with that of all of them if
    `counted` has the group `total` and the last line says it, as those of ninja do."""

    on_stage: Callable[[str], None] = lambda _: None
    """Called with the name of each stage when it starts."""

    inherit: tuple[int, ...] = ()
    """File descriptors of locks that the children keep open if this process is killed; not those of another
    user, who could release the locks."""

    account: pwd.struct_passwd | None = None
    """The user who runs the commands; None for the current one."""

    count: int = 0
    """Compiler runs so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each stage in seconds."""

    def run(
        self,
        stage: str,
        command: Sequence[str],
        folder: Path,
        stdin: IO[bytes] | None = None,
        again: Sequence[Sequence[str]] = (),
    ) -> None:
        """Run one command in `folder` and wait until it ends.

        When it fails, the commands in `again` are run one after the other until one does not. Raises
        CompileError with the first error of the last command if all fail, or if one hangs or cannot be
        started. However the call ends, Ctrl-C included, all processes of the commands have ended.
        """
        started = time.monotonic()
        self.on_stage(stage)
        for argv in (command, *again):
            with self.log.open("ab") as log, self.log.open("rb") as reading:
                log.write(f"\n{MARK}{stage}: {' '.join(argv)}\n".encode())
                log.flush()
                reading.seek(0, os.SEEK_END)
                status = self._execute(stage, argv, folder, log, reading, stdin)
            if status == 0:
                break
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.monotonic() - started, 3)
        if status != 0:
            reason = f"exit status {status}" if status > 0 else f"signal {-status}"
            raise self._first_error(stage, reason, folder, time.monotonic() - started)

    def failure(self, stage: str, reason: str) -> CompileError:
        """Return the error for a failed stage, with the last lines of the log and its path."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return CompileError(
            f"{self.label}: {stage} failed ({reason}); the log ends with\n" + "\n".join(lines),
            where=str(self.log),
        )

    def _first_error(self, stage: str, reason: str, folder: Path, seconds: float) -> CompileError:
        """Return the error for a command that failed in `folder` after `seconds`, with its first error.

        What configure or CMake has noted meanwhile in the folder, which is going to be deleted, is kept
        beside the log.
        """
        shown = first_error(last_output(self.log.read_text(errors="replace")))
        what = f"{self.label}: {stage} failed ({reason}); {FIRST_ERROR}"
        lines = [what, *shown] if shown else [self.failure(stage, reason).what]
        since = time.time() - seconds - _CLOCK_SECONDS
        notes = [found for pattern in NOTES for found in sorted(folder.glob(pattern))]
        for note in (note for note in notes if note.stat().st_mtime >= since):
            kept = self.log.with_suffix(f".{note.name}")
            kept.write_bytes(self.read(note))
            kept.chmod(0o644)
            lines += [*failed_check(kept.read_text(errors="replace")), f"{note.name} is kept: {kept}"]
        return CompileError("\n".join(lines), where=str(self.log))

    def read(self, path: Path) -> bytes:
        """Return the first READ_BYTES of a file that the commands can write, read with their user's rights.

        The path may be a link by now, which root would follow. Empty if that user cannot read it.
        """
        head = ["timeout", READ_SECONDS, "head", f"--bytes={READ_BYTES}", "--", str(path)]
        done = subprocess.run(
            [*accounts.become(self.account), *head],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.stdout

    def _execute(
        self,
        stage: str,
        command: Sequence[str],
        folder: Path,
        log: IO[bytes],
        reading: IO[bytes],
        stdin: IO[bytes] | None,
    ) -> int:
        program = command[0]
        try:
            if "/" not in program and shutil.which(program, path=self.environment.get("PATH")) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
            process = subprocess.Popen(
                [*accounts.become(self.account), *command],
                cwd=folder,
                env=dict(self.environment),
                stdin=stdin or subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # In its own process group, make ends with all its children, and Ctrl-C reaches only Python.
                start_new_session=True,
                pass_fds=() if self.account else self.inherit,
                umask=0o022,  # The unprivileged user of the servers has to read what is installed.
            )
        except OSError as error:
            raise self.failure(stage, str(error)) from error
        _keep_priority(process.pid)
        try:
            return self._wait(stage, process, reading)
        finally:
            end_group(process)

    def _wait(self, stage: str, process: subprocess.Popen[bytes], reading: IO[bytes]) -> int:
        # The command writes directly to the log, which Python only polls, so that watching a compile does not
        # slow it down.
        rest = b""
        began = last_output = time.monotonic()
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
            now, new_text = time.monotonic(), reading.read()
            last_output = now if new_text else last_output
            lines = (rest + new_text).split(b"\n")
            rest = lines.pop()
            new = [match for line in lines if (match := self.counted.search(line))]
            if new:
                self.count += len(new)
                total = new[-1].groupdict().get("total")
                self.on_count(self.count, int(total) if total else None)
            if process.returncode is not None:
                return process.returncode
            if now - began > STAGE_SECONDS:
                raise self.failure(stage, f"stopped after {STAGE_SECONDS / 3600:g} hours")
            if now - last_output > SILENT_SECONDS:
                raise self.failure(stage, f"stopped after {SILENT_SECONDS / 60:g} minutes without output")


def last_output(log: str) -> list[str]:
    """Return the lines that the last command of a log, given as its text, has written.

    Those before it are of other stages, or of an attempt whose errors were gone when it was repeated.
    """
    _, mark, output = log.rpartition(f"\n{MARK}")
    return output.splitlines()[1 if mark else 0 :]  # without the command itself


def _keep_priority(leader: int) -> None:
    """Give a session that has just begun the niceness of this process.

    The niceness of its processes counts between them alone: the kernel shares cores out by session first
    (sched(7), on autogroups).
    """
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness:
        with suppress(OSError):  # a kernel without autogroups; or not root, and asked twice within 0.1 s
            Path(f"/proc/{leader}/autogroup").write_text(str(niceness))


def end_group(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    """End a process that leads its own process group, and the whole group; return when all have ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def first_error(lines: Sequence[str]) -> list[str]:
    """Return the first error in the output of a command, with some lines around it; none if it says none.

    What other programs say counts only if no compiler says one, and what make says only if nobody does.
    """
    around = (LINES_BEFORE, LINES_AFTER)
    for pattern, (before, after) in (
        (_OF_COMPILER, around),
        (_OF_SHELL, around),
        (_OF_MAKE, (LINES_AFTER, LINES_BEFORE)),
    ):
        place = next((place for place, line in enumerate(lines) if pattern.search(line)), None)
        if place is not None:
            return shortened(lines[max(0, place - before) : place + 1 + after])
    return []


def failed_check(config_log: str) -> list[str]:
    """Return the check in a config.log of Autoconf at which configure gave up; none if there is none.

    Other checks fail too, as that is how configure finds things out; the program that a check compiles is
    left out.
    """
    lines = config_log.splitlines()
    end = next((place for place, line in enumerate(lines) if _CONFIGURE_FAILED.match(line)), None)
    if end is None:
        return []
    begins = (place for place in range(end - 1, -1, -1) if _CHECK.match(lines[place]))
    check = [line for line in lines[next(begins, end) : end] if not line.startswith(_TEST_PROGRAM)]
    return shortened(check[: LINES_BEFORE + LINES_AFTER])


def shortened(lines: Sequence[str]) -> list[str]:
    """Return lines of at most LONGEST_LINE characters."""
    return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in lines]

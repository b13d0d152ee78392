"""Running the programs of load generators: their lines as they come, time limits, and why they failed."""

import contextlib
import os
import pwd
import selectors
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from suites.generators.complaints import complaint, shortened_command
from suites.generators.load import LoadError
from suites.processes import start, stop

OVERTIME_SECONDS = 30
"""Time that a load generator may take beyond its time limit for starting and reporting."""

TRIAL_SECONDS = 600
"""Time limit for one transaction of a script before it is measured."""


def lines_of(
    argv: Sequence[str | Path],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
    cwd: Path | None = None,
    account: pwd.struct_passwd | None = None,
) -> Iterator[tuple[int, str]]:
    """Start `argv`, and yield its pid and one line of output until it ends; see lines_of_all."""
    for _, pid, line in lines_of_all([argv], deadline_seconds, env, bound_to, cwd, account):
        yield pid, line


def lines_of_all(
    commands: Sequence[Sequence[str | Path]],
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    bound_to: Collection[int] | None = None,
    cwd: Path | None = None,
    account: pwd.struct_passwd | None = None,
) -> Iterator[tuple[int, int, str]]:
    """Start all `commands`, and yield the index of a command, its pid and one line until all have ended.

    `env` is added to their variables, `cwd` is their current folder, and they run as `account`, if any.
    `bound_to` are the cores that the programs may use; None does not restrict them. Raises LoadError if a
    program fails, with its last lines, or runs longer than `deadline_seconds`. However the caller leaves the
    loop, the programs have ended afterwards.
    """
    processes: list[subprocess.Popen[bytes]] = []
    seen: list[list[str]] = [[] for _ in commands]
    try:
        for argv in commands:
            process = start(
                argv,
                subprocess.PIPE,
                bound_to=bound_to,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                account=account,
            )
            processes.append(process)
        program = Path(commands[0][0]).name
        try:
            for place, line in _read_lines(processes, program, time.monotonic() + deadline_seconds):
                seen[place].append(line)
                yield place, processes[place].pid, line
        except LateError as error:
            heard = seen if error.place is None else [seen[error.place]]
            said = complaint((line for lines in heard for line in lines), is_over=False)
            raise error.with_words(said) from None
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
            raise LoadError(f"{Path(argv[0]).name} {ended(status, complaint(lines))}", place=place)


def ended(status: int, said: str) -> str:
    """Return how a program with an exit status other than 0 ended, and what it `said`, if anything."""
    how = f"was killed by signal {-status}" if status < 0 else f"failed with exit status {status}"
    return f"{how}: {said}" if said else how


def run_all(
    commands: Sequence[Sequence[str]],
    at_most: int,
    deadline_seconds: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    account: pwd.struct_passwd | None = None,
) -> None:
    """Run `commands`, up to `at_most` of them in parallel, for up to `deadline_seconds` per command.

    `env` is added to their variables, `cwd` is their current folder, and they run as `account`, if any.
    Raises LoadError if one fails.
    Threads are not used, because an interrupt must end all programs immediately.
    """
    waiting = list(commands)
    running: list[tuple[Sequence[str], subprocess.Popen[bytes], IO[bytes]]] = []
    limit = deadline_seconds * len(commands)
    deadline = time.monotonic() + limit
    with contextlib.ExitStack() as outputs:
        try:
            while waiting or running:
                while waiting and len(running) < at_most:
                    output = outputs.enter_context(tempfile.TemporaryFile())
                    argv = waiting.pop(0)
                    process = start(argv, output, stderr=subprocess.STDOUT, env=env, cwd=cwd, account=account)
                    running.append((argv, process, output))
                time.sleep(0.01)
                for place in [entry for entry in running if entry[1].poll() is not None]:
                    running.remove(place)
                    _require_success(*place)
                if time.monotonic() > deadline:
                    raise LoadError(
                        f"loading data is not finished after {limit:g} s",
                        where=", ".join(shortened_command(argv) for argv, _, _ in running),
                        hint="check whether the server hangs or the disk is overloaded",
                    )
        finally:
            for _, process, _ in running:
                stop(process, patience=1)


def _require_success(argv: Sequence[str], process: "subprocess.Popen[bytes]", output: IO[bytes]) -> None:
    if process.returncode != 0:
        output.seek(0)
        said = complaint(output.read().decode(errors="replace").splitlines())
        raise LoadError(
            f"loading data failed: {Path(argv[0]).name} {ended(process.returncode, said)}",
            where=shortened_command(argv),
        )


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


def _late(program: str, places: Sequence[int]) -> "LateError":
    return LateError(program, places[0] if len(places) == 1 else None)


class LateError(LoadError):
    """A load generator still runs after its time limit."""

    def __init__(self, program: str, place: int | None, said: str = "") -> None:
        why = f": {said}" if said else ""
        hangs = "check the server's log: it may hang, or the machine is far too slow for this profile"
        super().__init__(
            f"{program} is still running {OVERTIME_SECONDS} s after its time limit{why}",
            hint="" if said else hangs,
            place=place,
        )
        self._program = program

    def with_words(self, said: str) -> "LateError":
        """Return the error with what the program has said, which may be why it does not end."""
        return LateError(self._program, self.place, said)

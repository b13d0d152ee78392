"""Finding valgrind, and the command line with which it counts a server's instructions."""

import re
from dataclasses import dataclass
from pathlib import Path

from suites.counting.callgrind import CallgrindError
from suites.processes import run, tool

OLDEST = (3, 18)
"""The oldest version of valgrind that reads DWARF 5, which gcc writes since 11."""

CALLERS = 80
"""The callers by which counts of a function are kept apart: more than any stack of a server has."""

LOG = "valgrind"
"""The name, before the process id, of the file into which valgrind writes what it could not do."""

_VERSION = re.compile(r"valgrind-([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9]{1,4})?.*")


@dataclass(frozen=True)
class Callgrind:
    """An installed valgrind."""

    program: str
    version: str
    """Such as `valgrind-3.19.0`."""

    def command(self, folder: Path, mark: str, options: tuple[str, ...], *, stacks: bool) -> tuple[str, ...]:
        """Return the words that run a server, which writes its counts into `folder` before it calls `mark`.

        `mark` is the name of a function without its parameters. Addresses are not randomised, and the
        environment is the same for every build, because both decide where a stack begins, and so which path
        copying and comparing of strings takes. With `stacks` counts are kept apart by the stack of callers,
        which takes about twice as long.
        """
        return (
            *("env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "setarch", "--addr-no-randomize"),
            *(self.program, "--tool=callgrind", f"--callgrind-out-file={folder}/counts.%p"),
            # Without further options, a quiet valgrind does not say which instruction it does not know.
            *(f"--log-file={folder}/{LOG}.%p", "--vgdb=no", "--quiet", "--sigill-diagnostics=yes"),
            *(f"--dump-before={mark}*", *options),
            *((f"--separate-callers={CALLERS}", "--separate-recs=1") if stacks else ()),
        )


def find_callgrind() -> Callgrind:
    """Return the installed valgrind.

    Raises ProcessError when there is none, and CallgrindError when it is too old.
    """
    program = tool("valgrind")
    version = run([program, "--version"], what="valgrind --version").strip()
    match = _VERSION.fullmatch(version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        raise CallgrindError(
            f"{version[:100]} is too old to count instructions",
            where=program,
            hint=f"install valgrind {OLDEST[0]}.{OLDEST[1]} or newer, which reads the debug format of gcc 11",
        )
    return Callgrind(program, version)

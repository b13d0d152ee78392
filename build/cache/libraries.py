"""The shared libraries that the programs of an install tree need and this machine lacks."""

import os
import subprocess
from pathlib import Path

from build.programs import accounts, environment

FOLDERS = ("bin", "sbin", "libexec")
"""Where recipes install programs."""


def missing(tree: Path) -> dict[str, Path]:
    """Return each library that the dynamic loader does not find, with a program that needs it.

    A build of another distribution lacks some although its C library is older: between Debian 12 and 13
    libaio.so.1 became libaio.so.1t64. `ldd` asks the loader and runs none of the programs; what is not a
    program for this loader, such as a script, lacks nothing. As root the user of the servers asks, who needs
    access to the tree. Raises AccountError.
    """
    accounts.require_access(accounts.server_account(), tree)
    found: dict[str, Path] = {}
    for program in (path for name in FOLDERS for path in sorted((tree / name).glob("*"))):
        if program.is_file() and os.access(program, os.X_OK):
            for name in _not_found(program):
                found.setdefault(name, program)
    return found


def _not_found(program: Path) -> list[str]:
    # Without the variables that add libraries, which servers do not get either. The loader runs the library
    # that a program names as its auditor (ld.so(8), DT_AUDIT).
    asked = subprocess.run(
        [*accounts.become(accounts.server_account()), "ldd", program],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=environment.measured(),
    )
    return [line.split(" => ")[0].strip() for line in asked.stdout.splitlines() if line.endswith("not found")]

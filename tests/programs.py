"""act and actionlint, which run and read the workflows: compiled with Go, once for a home, at these versions.

`./tidemark test` calls this module. Without Go or without a network it says so, and their tests are skipped.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.home import Home, locate
from build.lock import held

GO_FOLDER = Path("/usr/local/go/bin")
"""Where Go's own archive puts it, should it not be on the path."""

LOG_LINES = 5


@dataclass(frozen=True)
class GoProgram:
    """A program that `go install` compiles."""

    name: str
    package: str
    version: str

    def folder(self, home: Home) -> Path:
        """Where it lies in a home."""
        return home.tools / f"{self.name}-{self.version}"

    def find(self, home: Home) -> Path | None:
        """The program, if it is there."""
        path = self.folder(home) / self.name
        return path if path.is_file() else None


ACT = GoProgram("act", "github.com/nektos/act", "v0.2.89")
"""Runs workflows on this machine."""

ACTIONLINT = GoProgram("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12")
"""Finds mistakes in workflows."""


class ProgramError(TidemarkError):
    """A program could not be compiled."""


def required(program: GoProgram) -> Path:
    """The program; skips the test where it is not."""
    found = program.find(locate())
    if found is None:
        pytest.skip(f"{program.name} {program.version} is not installed: ./tidemark test installs it with Go")
    return found


def provide(program: GoProgram, home: Home) -> Path:
    """The program; compiles it when it is not there. Raises ProgramError."""
    found = program.find(home)
    if found is not None:
        return found
    go = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), str(GO_FOLDER)]))
    if go is None:
        raise ProgramError(f"{program.name} needs Go to be compiled, and there is none")
    with held(home.tools / f"{program.name}.lock"):
        return program.find(home) or _compiled(program, go, home)


def _compiled(program: GoProgram, go: str, home: Home) -> Path:
    folder = program.folder(home)
    print(f"tidemark: compiling {program.name} {program.version}", file=sys.stderr)
    done = subprocess.run(
        [go, "install", f"{program.package}@{program.version}"],
        env={**os.environ, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        check=False,
    )
    found = program.find(home)
    if done.returncode != 0 or found is None:
        said = "\n".join(done.stderr.rstrip().splitlines()[-LOG_LINES:])
        raise ProgramError(f"{program.name} {program.version} could not be compiled", where=said)
    return found


def main() -> None:
    """Compile what is missing; what cannot be compiled is told, and is no failure."""
    for program in (ACT, ACTIONLINT):
        try:
            provide(program, locate())
        except TidemarkError as error:
            print(f"tidemark: {error}\n  the tests that need it are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()

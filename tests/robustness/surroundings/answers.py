"""One command in one kind of surroundings, and what is wrong with its answer.

Surroundings are a line of shell that runs the command as `"$@"`, so that a fault can be repeated by hand: it
sets variables, limits, a folder or where the output goes.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from build.home import ROOT

PATIENCE_SECONDS = 120.0
"""For one command, on a machine that others use."""

CODES = (0, 1, 2)
"""The exit codes that docs/cli.md promises; negative ones are signals."""

MAX_SHOWN = 400
"""Characters of an output in the sentence about a fault."""


class Expected(StrEnum):
    """What a command has to do in some surroundings."""

    SAME = "the same answer"
    """As in plain surroundings: exit code and standard output, to the byte."""

    ANSWER = "an answer"
    """An exit code of CODES, with a sentence."""

    REFUSAL = "a refusal"
    """Exit code 2 and a sentence on standard error."""

    SILENCE = "an end"
    """An exit code of CODES, with nowhere to say why."""


@dataclass(frozen=True)
class Surroundings:
    """A kind of surroundings."""

    name: str
    line: str
    """The line of shell; `"$@"` is the command, and `$HERE` an empty folder that only it uses."""

    expected: Expected = Expected.SAME
    needs: str = ""
    """A program without which it cannot be tried."""

    root: bool = False
    """Whether only root can make them."""

    @property
    def lacking(self) -> str:
        """Why they cannot be tried here; empty if they can."""
        if self.needs and shutil.which(self.needs) is None:
            return f"{self.needs} is not installed"
        return "only root can" if self.root and os.geteuid() != 0 else ""


@dataclass(frozen=True)
class CommandAnswer:
    """What a command did."""

    code: int | None
    """The exit code; None when it had to be killed."""

    output: bytes
    errors: bytes


def answer(words: Sequence[str], surroundings: Surroundings, home: Path) -> CommandAnswer:
    """Run `./tidemark WORDS` in the surroundings, on the history of a home."""
    with folder_of_its_own() as folder:
        variables = {**_plain(), "TIDEMARK_HOME": str(home), "HERE": str(folder)}
        variables["TIDEMARK_LOCK"] = str(home / "measuring.lock")
        command = ["sh", "-c", surroundings.line, "sh", str(ROOT / "tidemark"), *words]
        try:
            done = subprocess.run(
                command,
                env=variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return CommandAnswer(None, late.stdout or b"", late.stderr or b"")
    return CommandAnswer(done.returncode, done.stdout, done.stderr)


def _plain() -> Mapping[str, str]:
    """The variables that every trial begins with, whatever the caller has."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {"HOME": "/", "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", **kept}


def faults(given: CommandAnswer, expected: Expected, plain: CommandAnswer) -> Iterator[str]:
    """What is wrong with an answer, in sentences; `plain` is the one in plain surroundings."""
    said = given.output + given.errors
    if given.code is None:
        yield f"no answer within {PATIENCE_SECONDS:g} s; it said {_shown(said)}"
        return
    if b"Traceback (most recent call last)" in said or b"Fatal Python error" in said:
        yield f"a traceback: {_shown(said, tail=True)}"
        return
    if given.code not in CODES:
        yield f"exit code {given.code}: {_shown(said, tail=True)}"
    elif expected is Expected.SAME and (given.code, given.output) != (plain.code, plain.output):
        yield (
            f"exit code {given.code} instead of {plain.code}, or another output: "
            f"{_shown(given.errors or given.output, tail=True)}"
        )
    elif expected is Expected.REFUSAL and given.code != 2:
        yield f"exit code {given.code} instead of a refusal: {_shown(said)}"
    if expected is not Expected.SILENCE and given.code == 2 and not said.strip():
        yield "exit code 2 without a word"


def repeated(words: Sequence[str], surroundings: Surroundings) -> str:
    """The words and surroundings as a person can type them."""
    return f"./tidemark {shlex.join(words)} in: {surroundings.line}"


def _shown(text: bytes, tail: bool = False) -> str:
    cut = text[-MAX_SHOWN:] if tail else text[:MAX_SHOWN]
    return ascii(cut.decode(errors="replace"))


def content(home: Path) -> str:
    """A digest of the files of a home's history, which a command that reads may not change."""
    digest = sha256()
    for path in sorted(home.glob("history.db*")):
        # Readers share an index over the -wal, and may leave it and an empty -wal behind.
        if path.stat().st_size and not path.name.endswith("-shm"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def folder_of_its_own() -> Iterator[Path]:
    """A folder that every user can reach, with a short path that no format escapes."""
    folder = Path("/tmp") / f"tmk-{uuid4().hex[:10]}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

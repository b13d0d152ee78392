"""inferno, which folds stacks and draws flame graphs: compiled once per home, at one version."""

import os
import shutil
import subprocess
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.progress import Progress
from build.work import end_group

VERSION = "0.12.8"
"""Of the Rust package; its `Cargo.lock` pins what it is made of."""

PROGRAMS = ("inferno-collapse-perf", "inferno-diff-folded", "inferno-flamegraph")

LOG_LINES = 15

COMPILE_SECONDS = 3600.0


class InfernoError(TidemarkError):
    """inferno could not be compiled."""


def find_inferno(home: Home) -> Path | None:
    """The folder of its programs, if they are there."""
    folder = home.tools / f"inferno-{VERSION}" / "bin"
    return folder if all((folder / name).is_file() for name in PROGRAMS) else None


def provide_inferno(home: Home, progress: Progress) -> Path:
    """The folder of its programs; compiles them if they are not there. Raises InfernoError."""
    found = find_inferno(home)
    if found is not None:
        return found
    cargo = shutil.which("cargo", path=os.pathsep.join([os.environ.get("PATH", ""), *_RUST_FOLDERS]))
    if cargo is None:
        raise InfernoError(
            "inferno needs Rust to be compiled, and there is no cargo",
            hint="./tidemark setup installs it, or install Rust and run the command again",
        )
    make_folder(home.tools)
    with held(home.tools / "inferno.lock", lambda: progress.note("another process compiles inferno")):
        return find_inferno(home) or _compiled(cargo, home, progress)


_RUST_FOLDERS = (str(Path.home() / ".cargo/bin"),)


def _compiled(cargo: str, home: Home, progress: Progress) -> Path:
    root = home.tools / f"inferno-{VERSION}"
    command = [cargo, "install", "inferno", "--version", f"={VERSION}", "--locked", "--root", str(root)]
    with progress.task(f"compile inferno {VERSION}"):
        done = _done(command, cargo)
    found = find_inferno(home)
    if done.returncode != 0 or found is None:
        said = "\n".join(done.stderr.rstrip().splitlines()[-LOG_LINES:])
        raise InfernoError(f"inferno {VERSION} could not be compiled", where=cargo, hint=said)
    progress.note(f"inferno {VERSION}: compiled")
    return found


def _done(command: list[str], cargo: str) -> "subprocess.CompletedProcess[str]":
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        raise InfernoError(
            f"inferno {VERSION} is not compiled after {COMPILE_SECONDS:g} s", where=cargo
        ) from None
    finally:
        end_group(process)
    return subprocess.CompletedProcess(command, process.returncode, "", said)

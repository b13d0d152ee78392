"""Inferno, which folds stacks and draws flame graphs: one pinned version, compiled once per home."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder
from build.home import Home
from build.lock import held
from build.programs import environment
from build.programs.excerpts import first_error
from build.programs.work import end_group
from build.programs.working import why_not
from build.progress import Progress
from build.sources import certificates

VERSION = "0.12.8"
"""Version of the Rust package, whose `Cargo.lock` pins its dependencies."""

PROGRAMS = ("inferno-collapse-perf", "inferno-diff-folded", "inferno-flamegraph")

CRATES = 51
"""How many crates cargo compiles for it on Linux, each announced by a line."""

LOG_LINES = 15

COMPILE_SECONDS = 3600.0


class InfernoError(TidemarkError):
    """Inferno could not be compiled."""


def find_inferno(home: Home) -> Path | None:
    """Return the folder of inferno's programs; None unless all of them are there."""
    folder = home.tools / f"inferno-{VERSION}" / "bin"
    return folder if all((folder / name).is_file() for name in PROGRAMS) else None


def provide_inferno(home: Home, progress: Progress) -> Path:
    """Return the folder of inferno's programs, which are compiled if necessary. Raises InfernoError."""
    folder = find_inferno(home)
    if folder is not None:
        return folder
    cargo = _find_cargo()
    make_folder(home.tools)
    with held(
        home.tools / "inferno.lock", lambda: progress.note("another process compiles inferno; waiting")
    ):
        return find_inferno(home) or _compile(cargo, home, progress)


def _find_cargo() -> str:
    """Return the first cargo that works. Raises InfernoError without one.

    rustup's stands on the path without a toolchain, too, and then fails whatever it is asked.
    """
    folders = [*os.environ.get("PATH", "").split(os.pathsep), str(Path.home() / ".cargo/bin")]
    found = dict.fromkeys(filter(None, (shutil.which("cargo", path=folder) for folder in folders if folder)))
    reasons = []
    for cargo in found:
        reason = why_not(cargo, env=environment.cargo())
        if reason is None:
            return cargo
        reasons.append(f"{cargo} does not work: {reason}")
    raise InfernoError(
        "compiling inferno needs Rust, and cargo is not installed",
        where="; ".join(reasons),
        hint="install it (Debian: apt-get install cargo-web; elsewhere rustup with a toolchain); "
        "then run the command again",
    )


def _compile(cargo: str, home: Home, progress: Progress) -> Path:
    root = home.tools / f"inferno-{VERSION}"
    command = [cargo, "install", "inferno", "--version", f"={VERSION}", "--locked", "--root", str(root)]
    with progress.task(f"compile inferno {VERSION}, once per home", CRATES, "crates") as task:
        completed = _run(command, cargo, lambda crates: task.update(crates, max(crates, CRATES)))
    folder = find_inferno(home)
    if completed.returncode != 0 or folder is None:
        lines = completed.stderr.rstrip().splitlines()
        said = "\n".join(first_error(lines) or lines[-LOG_LINES:])
        raise InfernoError(f"inferno {VERSION} could not be compiled; cargo said:\n{said}", where=cargo)
    progress.note(f"inferno {VERSION}: compiled")
    return folder


def _run(
    command: list[str], cargo: str, on_crate: Callable[[int], None]
) -> "subprocess.CompletedProcess[str]":
    """Run cargo, and call `on_crate` with the crates so far that it has begun to compile."""
    process = subprocess.Popen(
        command,
        env={**environment.cargo(), **certificates.cargo_environment()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    lines: list[str] = []

    def read() -> None:
        crates = 0
        for line in process.stderr or ():
            lines.append(line)
            if line.lstrip().startswith("Compiling "):
                crates += 1
                on_crate(crates)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        process.wait(timeout=COMPILE_SECONDS)
    except subprocess.TimeoutExpired:
        raise InfernoError(
            f"compiling inferno {VERSION} took longer than {COMPILE_SECONDS:g} s and was stopped", where=cargo
        ) from None
    finally:
        end_group(process)
        reading.join()
    return subprocess.CompletedProcess(command, process.returncode, "", "".join(lines))

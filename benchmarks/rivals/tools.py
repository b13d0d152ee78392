"""The Python environment of the rivals below Tidemark's home, and running their program in it."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.rivals.scores import Reports
from benchmarks.simulation.detection_series import Array
from build.errors import TidemarkError
from build.files import make_folder
from build.home import ROOT, Home
from build.lock import held

REQUIREMENTS = ROOT / "benchmarks/rivals/requirements.txt"
PROGRAM = ROOT / "benchmarks/rivals/program.py"
PROCESSES = 2
LOG_LINES = 15


class RivalsError(TidemarkError):
    """The rivals could not be installed or run."""


@dataclass(frozen=True)
class RivalJob:
    """One job: a tool, its parameter and some series; see program.py for the fields."""

    tool: str
    parameter: float
    series: list[list[float | None]]
    start: list[int] | None = None
    stop_early: bool = False


def rows_of(values: Array) -> list[list[float | None]]:
    """Return a matrix [series, nights] as lists for JSON, with None for a gap."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def provide_rivals(home: Home) -> Path:
    """Return the Python of the rivals' environment, which is created if necessary. Raises RivalsError."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = home.tools / f"rivals-{digest}"
    python, done = folder / "bin/python", folder / "installed"
    if done.exists():
        return python
    make_folder(home.tools)
    with held(home.tools / "rivals.lock"):
        if not done.exists():
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            options = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
            _run([str(python), "-m", "pip", "install", *options, "-r", str(REQUIREMENTS)])
            done.touch()
    return python


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = "\n".join(done.stderr.rstrip().splitlines()[-LOG_LINES:])
        raise RivalsError("the rivals could not be installed", where=" ".join(command), hint=said)


def answers(python: Path, jobs: Sequence[RivalJob]) -> list[Reports]:
    """Return the answers to the jobs, which run in PROCESSES parallel processes. Raises RivalsError."""
    parts = [jobs[start::PROCESSES] for start in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        answered = list(pool.map(lambda part: _ask(python, part), parts))
    ordered: list[Reports] = [[] for _ in jobs]
    for start, part in enumerate(answered):
        ordered[start::PROCESSES] = part
    return ordered


def _ask(python: Path, jobs: Sequence[RivalJob]) -> list[Reports]:
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        # -P, because the rivals import the standard module `bisect`, not the one of this project.
        [str(python), "-P", str(PROGRAM)],
        input=json.dumps([asdict(job) for job in jobs]),
        env=os.environ | one_thread,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(done.stderr.rstrip().splitlines()[-LOG_LINES:])
        raise RivalsError("the rivals' program failed", where=str(PROGRAM), hint=said)
    found: list[Reports] = json.loads(done.stdout)
    return [[[(index, night) for index, night in series] for series in job] for job in found]

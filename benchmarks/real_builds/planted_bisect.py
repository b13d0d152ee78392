"""A bisect of a git history of Postgres with a planted slow-down, on real builds."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.output.figures import Figure
from benchmarks.real_builds.planted_history import BRANCH, RELEASE, PlantedHistory, make_history
from build.errors import TidemarkError
from build.home import ROOT, Home, locate
from build.sources.git import mirror

STEP = "update-nonindex"

LARGER = 240
"""Number of further commits in the larger history."""


def larger_figures() -> Iterator[Figure]:
    """Return the figures of `planted_figures` for many more commits, which are not in the build cache yet."""
    return planted_figures(LARGER, "larger")


def planted_figures(fillers: int = 0, name: str = "planted") -> Iterator[Figure]:
    """Yield the figures of one bisect in a new history. Raises TidemarkError if it ends without an answer."""
    home = locate()
    with tempfile.TemporaryDirectory(prefix="tidemark-planted-", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o755)
        planted = make_history(path / "postgres", home, fillers)
        began = time.monotonic()
        try:
            answer = bisected(home, planted, path / "history.db", "--step", STEP, "--seconds", "1")
        finally:  # the mirror of this temporary repository is never used again
            shutil.rmtree(mirror(str(planted.repository), RELEASE.engine, home).path, ignore_errors=True)
        minutes = (time.monotonic() - began) / 60
    named = [commit["commit"] for commit in answer["blamed"]]
    verdict, measured = answer["verdict"], len(answer["measured"])
    yield Figure(
        f"{name}: the commit that is named is the planted one",
        float(named == [planted.culprit]),
        "",
        at_least=1,
        note=f"{100 * (verdict['size'] - 1):+.1f} %, confidence {100 * verdict['confidence']:.1f} %",
    )
    yield Figure(
        f"{name}: machine time",
        minutes,
        "minutes",
        note=f"{len(planted.candidates)} candidates, {measured} of them measured, {verdict['rounds']} rounds",
    )


def bisected(home: Home, planted: PlantedHistory, history: Path, *question: str) -> dict[str, Any]:
    """Return the exported log of a bisect from good to bad; `question` are further words of the command.

    Raises TidemarkError if it ends without an answer.
    """
    where = ("--git", str(planted.repository), "--history", str(history))
    completed = _tidemark(home, *where, "--good", planted.good, "--bad", BRANCH, *question)
    if completed.returncode != 0:
        raise TidemarkError("the planted bisect ended without an answer", where=completed.stderr[-2000:])
    printed = _tidemark(home, "report", "--history", str(history), "--format", "json")
    answer: dict[str, Any] = json.loads(printed.stdout)
    return answer


def _tidemark(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "runners", "bisect", *words]
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)

"""A bisect of a git history of Postgres, on real builds: is the planted commit named, and at what cost?"""

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

from benchmarks.figures import Figure
from benchmarks.planted_history import BRANCH, RELEASE, PlantedHistory, make_history
from build.errors import TidemarkError
from build.home import ROOT, Home, locate
from build.sources.git import mirror

LARGER = 240
"""Further commits of the larger history."""


def larger_figures() -> Iterator[Figure]:
    """As `planted_figures`, among many more commits, none of which is in the build cache at first."""
    return planted_figures(LARGER, "larger")


def planted_figures(fillers: int = 0, name: str = "planted") -> Iterator[Figure]:
    """Figures of one bisect, in a history of its own. Raises TidemarkError when it ends without an answer."""
    home = locate()
    with tempfile.TemporaryDirectory(prefix="tidemark-planted-", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o755)
        planted = make_history(path / "postgres", home, fillers)
        began = time.monotonic()
        try:
            told = _bisect(home, planted, path / "history.db")
        finally:  # nobody else will ever ask for this repository
            shutil.rmtree(mirror(str(planted.repository), RELEASE.engine, home).path, ignore_errors=True)
        minutes = (time.monotonic() - began) / 60
    named = [each["commit"] for each in told["blamed"]]
    verdict, measured = told["verdict"], len(told["measured"])
    yield Figure(
        f"{name}: the commit that is named is the planted one",
        float(named == [planted.culprit]),
        "",
        at_least=1,
        note=f"{verdict['size'] - 1:+.1%}, confidence {verdict['confidence']:.1%}",
    )
    yield Figure(
        f"{name}: machine time",
        minutes,
        "minutes",
        note=f"{len(planted.candidates)} candidates, {measured} of them measured, {verdict['rounds']} rounds",
    )


def _bisect(home: Home, planted: PlantedHistory, history: Path) -> dict[str, Any]:
    where = ("--git", str(planted.repository), "--history", str(history))
    asked = ("--good", planted.good, "--bad", BRANCH, "--step", "update-nonindex", "--seconds", "1")
    done = _tidemark(home, *where, *asked)
    if done.returncode != 0:
        raise TidemarkError("the planted bisect found no answer", where=done.stderr[-2000:])
    told = _tidemark(home, "report", "--history", str(history), "--format", "json")
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def _tidemark(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "runners", "bisect", *words]
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)

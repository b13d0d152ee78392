"""The tables of a page of results, and the history from which they are and which everybody can open."""

import math
import re
from collections.abc import Iterator, Set

import pytest

from build.home import ROOT
from history.open import open_reader
from history.series.matrix import judged_matrices
from history.store import bisects
from history.store.reader import Reader
from runners.bisect.report.state import BisectState
from runners.bisect.run.event_log import read_log

RESULTS = ROOT / "docs/results"
PAGE, KEPT = RESULTS / "postgres.md", RESULTS / "postgres.db.gz"

BRANCH = "postgres@year#ivy"

MAX_BYTES = 5_000_000
"""Everybody who clones the repository gets it."""


@pytest.fixture(scope="module")
def kept() -> Iterator[Reader]:
    with open_reader(KEPT) as reader:
        yield reader


def tables(first: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the tables of the page whose head begins with a word, by the names of columns."""
    text = PAGE.read_text(encoding="utf-8")
    for head, body in re.findall(rf"^\| ({first} \|.*)\|\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        names = [name.strip() for name in head.split("|")]
        for line in body.splitlines():
            yield dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))


def test_the_points_are_those_of_the_history(kept: Reader) -> None:
    points: dict[str, dict[str, str]] = {}
    with kept.database.reading() as connection:
        for matrix in judged_matrices(connection, 400, ["instructions_per_op"]):
            if matrix.branch != BRANCH:  # two commits beside each other
                continue
            for (_, step, _), ratios in zip(matrix.series, matrix.ratios, strict=True):
                for night, ratio in zip(matrix.nights, ratios, strict=True):
                    at = f"{night.started_at:%Y-%m-%d} {night.version.split(':')[1][:10]}"
                    if not math.isnan(ratio):
                        points.setdefault(at, {})[step] = f"{100 * (ratio - 1):+.1f}"
    shown: dict[str, dict[str, str]] = {}
    for row in tables("date"):
        at = f"{row.pop('date')} {row.pop('commit')}"
        shown.setdefault(at, {}).update({step: value for step, value in row.items() if value})
    assert shown == points


def test_the_culprits_are_those_of_its_bisects(kept: Reader) -> None:
    with kept.database.reading() as connection:
        logs = [read_log(kept, bisect) for bisect in bisects.load_all(connection)]
    found = {named for log in logs for named in culprits(BisectState(log))}
    assert {(row["step"], row["commit"], row["change, %"]) for row in tables("step")} == found


def culprits(state: BisectState) -> Set[tuple[str, str, str]]:
    """The commits that a bisect names, each with its step and the change in per cent."""
    verdict, step = state.verdict, state.log.question.step
    assert verdict is not None
    places = [(verdict.high, verdict.size)] if verdict.kind == "culprit" else []
    if verdict.kind in ("two-steps", "several-steps"):
        places += [(part.suspects[-1], part.size) for part in verdict.steps]
    return {(step, state.point(place).commit[:10], f"{100 * (size - 1):+.1f}") for place, size in places}


def test_it_is_small_and_names_no_path_of_the_machine(kept: Reader) -> None:
    assert KEPT.stat().st_size < MAX_BYTES
    with kept.database.reading() as connection:
        commands = connection.exec_driver_sql("SELECT command || options FROM sessions").scalars().all()
    assert commands
    assert not [command for command in commands if re.search(r"/(tmp|work|root|home)/", command)]

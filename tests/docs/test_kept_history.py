"""The page of what was found commit by commit, and what is kept of any history: everybody can open it."""

import gzip
import math
import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

import pytest

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_reader
from history.series.matrix import judged_matrices
from history.store import bisects
from history.store.reader import Reader
from runners.bisect.report.state import BisectState, load_state
from runners.bisect.run.event_log import read_log
from suites.metrics import INSTRUCTIONS
from tests.docs.result_tables import RESULTS, ratio_text, tables

COMMITS = "postgres"
"""The name of the page, and of the history beside it."""

BRANCH = "postgres@year#ivy"

RELEASES = ("postgres@13.23", "postgres@15.18", "postgres@17.11", "postgres@18.6")

READS = ("postgres@git:e170e2651cd#ivy", "postgres@git:449bc4aaa8b#ivy")
"""The commit of 18 by which reads into shared buffers go through asynchronous I/O, behind its parent."""

EARLY = "postgres@git:33bf83042d9#ivy"

COUNTS = [
    (COMMITS, "step of releases", [*pairwise(RELEASES), (RELEASES[0], RELEASES[-1])], None),
    (COMMITS, "step of the commit", [READS], None),
    (COMMITS, "step before it", [("postgres@17.11", EARLY), (EARLY, READS[0])], None),
    (COMMITS, "step without messages", [("postgres@18.6", "postgres@18.6#quiet")], None),
    ("mariadb", "step by counts", [("mariadb@10.11.18", "mariadb@11.8.6")], "07ec99e5"),
    ("mariadb", "step with a patch", [("mariadb@11.8.6", "mariadb@11.8.6#restore")], "65b76f43"),
]
"""Page, first column, versions that its other columns compare by counted instructions, and the session."""

ROUNDS_OF_MARIADB = "d70fa01f"

TIMES_OF_MARIADB = [
    ("step by rounds", "mariadb@10.11.18", "mariadb@11.8.6"),
    ("step by rounds with a patch", "mariadb@11.8.6", "mariadb@11.8.6#restore"),
]

MAX_BYTES = 5_000_000
"""Everybody who clones the repository gets it."""


@pytest.fixture(scope="module")
def kept() -> Iterator[Reader]:
    with open_reader(RESULTS / f"{COMMITS}.db.gz") as reader:
        yield reader


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
    for row in tables(COMMITS, "date"):
        at = f"{row.pop('date')} {row.pop('commit')}"
        shown.setdefault(at, {}).update({step: value for step, value in row.items() if value})
    assert shown == points


@pytest.mark.deep("figures of the documents are computed again from whole kept histories")
@pytest.mark.parametrize(("page", "column", "pairs", "session"), COUNTS)
def test_the_counts_are_those_of_the_history(
    page: str, column: str, pairs: Sequence[tuple[str, str]], session: str | None
) -> None:
    shown = {row.pop(column): tuple(row.values()) for row in tables(page, column)}
    found: dict[str, tuple[str, ...]] = {}
    options = CompareOptions(metric=INSTRUCTIONS, session=session)
    with open_reader(RESULTS / f"{page}.db.gz") as reader:
        for base, contender in pairs:
            versions = parse_version(base), (parse_version(contender),)
            (compared,) = compare(reader, *versions, options).contenders
            for step in compared.steps:
                assert step.judged.value is not None
                first = found.get(step.step, (f"{step.judged.base:,.0f}",))
                found[step.step] = (*first, f"{100 * (step.judged.value - 1):+.1f}")
    assert shown == found


@pytest.mark.parametrize(("column", "base", "contender"), TIMES_OF_MARIADB)
def test_the_times_of_mariadb_are_those_of_the_history(column: str, base: str, contender: str) -> None:
    shown = {row.pop(column): tuple(row.values()) for row in tables("mariadb", column)}
    options = CompareOptions(session=ROUNDS_OF_MARIADB)
    with open_reader(RESULTS / "mariadb.db.gz") as reader:
        versions = parse_version(base), (parse_version(contender),)
        (compared,) = compare(reader, *versions, options).contenders
    found = {
        step.step: (
            f"{step.judged.base:,.0f}",
            ratio_text(step.judged),
            *(ratio_text(cost) for cost in step.metrics if cost.metric == "server_cpu_us_per_op"),
        )
        for step in compared.steps
    }
    assert shown == found


def test_the_culprits_are_those_of_its_bisects(kept: Reader) -> None:
    with kept.database.reading() as connection:
        logs = [read_log(kept, bisect) for bisect in bisects.load_all(connection)]
    found = {named for log in logs for named in culprits(BisectState(log))}
    assert {(row["step"], row["commit"], row["change, %"]) for row in tables(COMMITS, "step")} == found


@pytest.mark.deep("figures of the documents are computed again from whole kept histories")
def test_the_costs_of_culprits_are_those_of_their_bisects(kept: Reader) -> None:
    said = {
        (row["step"], row["commit"], COSTS[name]): f"{times} {interval}"
        for row in tables(COMMITS, "step")
        for times, name, interval in re.findall(r"(\d\.\d\d) times the ([^(]*) (\(.*?\))", row["where"])
    }
    with kept.database.reading() as connection:
        states = [load_state(kept, read_log(kept, bisect)) for bisect in bisects.load_all(connection)]
    found = {
        (state.log.question.step, state.point(place).commit[:10], cost.metric): ratio_text(cost)
        for state in states
        for place, costs in state.costs.items()
        for cost in costs
    }
    assert len(said) == 4
    assert said == {place: found.get(place) for place in said}


COSTS = {"context switches": "server_cs_per_op", "server's CPU time": "server_cpu_us_per_op"}


def culprits(state: BisectState) -> Set[tuple[str, str, str]]:
    """The commits that a bisect names, each with its step and the change in per cent."""
    verdict, step = state.verdict, state.log.question.step
    assert verdict is not None
    places = [(verdict.high, verdict.size)] if verdict.kind == "culprit" else []
    if verdict.kind in ("two-steps", "several-steps"):
        places += [(part.suspects[-1], part.size) for part in verdict.steps]
    return {(step, state.point(place).commit[:10], f"{100 * (size - 1):+.1f}") for place, size in places}


@pytest.mark.parametrize("name", sorted(file.name for file in RESULTS.glob("*.db.gz")))
def test_it_is_small_and_names_no_path_of_the_machine(name: str) -> None:
    file = RESULTS / name
    assert file.stat().st_size < MAX_BYTES
    assert not re.search(rb"/(tmp|work|root|home|var/cache)/", gzip.decompress(file.read_bytes()))

"""The page of what was found commit by commit, and what is kept of any history: everybody can open it."""

import math
import re
from collections.abc import Iterator, Set

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
from suites.metric_names import INSTRUCTIONS
from tests.docs.result_tables import RESULTS, ratio_text, tables

COMMITS = "postgres"
"""The name of the page, and of the history beside it."""

BRANCH = "postgres@year#ivy"

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


def test_the_releases_are_those_of_the_history(kept: Reader) -> None:
    old, middle, new = (parse_version(f"postgres@{release}") for release in ("15.17", "17.11", "18.6"))
    shown = {row.pop("step of releases"): tuple(row.values()) for row in tables(COMMITS, "step of releases")}
    found: dict[str, tuple[str, ...]] = {}
    for base, contender in ((old, middle), (middle, new), (old, new)):
        (compared,) = compare(kept, base, (contender,), CompareOptions(metric=INSTRUCTIONS)).contenders
        for step in compared.steps:
            assert step.judged.value is not None
            first = found.get(step.step, (f"{step.judged.base:,.0f}",))
            found[step.step] = (*first, f"{100 * (step.judged.value - 1):+.1f}")
    assert shown == found


def test_what_messages_cost_is_what_the_history_says(kept: Reader) -> None:
    versions = parse_version("postgres@18.6"), (parse_version("postgres@18.6#quiet"),)
    (compared,) = compare(kept, *versions, CompareOptions(metric=INSTRUCTIONS)).contenders
    shown = {
        row.pop("step without messages"): tuple(row.values())
        for row in tables(COMMITS, "step without messages")
    }
    found = {}
    for step in compared.steps:
        assert step.judged.value is not None
        found[step.step] = (f"{step.judged.base:,.0f}", f"{100 * (step.judged.value - 1):+.1f}")
    assert shown == found


def test_the_culprits_are_those_of_its_bisects(kept: Reader) -> None:
    with kept.database.reading() as connection:
        logs = [read_log(kept, bisect) for bisect in bisects.load_all(connection)]
    found = {named for log in logs for named in culprits(BisectState(log))}
    assert {(row["step"], row["commit"], row["change, %"]) for row in tables(COMMITS, "step")} == found


def test_the_costs_of_a_culprit_are_those_of_its_bisect(kept: Reader) -> None:
    (row,) = [row for row in tables(COMMITS, "step") if "context switches" in row["where"]]
    with kept.database.reading() as connection:
        states = [load_state(kept, read_log(kept, bisect)) for bisect in bisects.load_all(connection)]
    (costs,) = [
        costs
        for state in states
        for place, costs in state.costs.items()
        if state.point(place).commit.startswith(row["commit"])
    ]
    switches, cpu = ({cost.metric: ratio_text(cost) for cost in costs}[name] for name in COSTS_OF_CULPRIT)
    said = re.findall(r"(\d\.\d\d) times [^(]*(\(.*?\))", row["where"])
    assert [" ".join(figures) for figures in said] == [switches, cpu]


COSTS_OF_CULPRIT = ("server_cs_per_op", "server_cpu_us_per_op")


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
    with open_reader(file) as history, history.database.reading() as connection:
        commands = connection.exec_driver_sql("SELECT command || options FROM sessions").scalars().all()
    assert commands
    assert not [command for command in commands if re.search(r"/(tmp|work|root|home|var/cache)/", command)]

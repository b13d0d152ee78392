"""The tables of pages of results, and the histories from which they are and which everybody can open."""

import math
import re
from collections.abc import Iterator, Set
from statistics import fmean, median, pstdev

import pytest

from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.verdict import Judged, MetricChange
from history.open import open_reader
from history.series.matrix import judged_matrices
from history.store import bisects
from history.store.reader import Reader
from runners.bisect.report.state import BisectState, load_state
from runners.bisect.run.event_log import read_log
from suites.metric import Role
from suites.metric_names import INSTRUCTIONS
from suites.metrics import METRICS

RESULTS = ROOT / "docs/results"
COMMITS, STUDY = "postgres", "write-heavy-io"
"""Names of pages, and of the histories beside them."""

BRANCH = "postgres@year#ivy"

OLD, *NEW = (parse_version(f"postgres@{release}") for release in ("15.17", "17.9", "18.3"))
"""The versions of the study."""

MAX_BYTES = 5_000_000
"""Everybody who clones the repository gets it."""


@pytest.fixture(scope="module")
def kept() -> Iterator[Reader]:
    with open_reader(RESULTS / f"{COMMITS}.db.gz") as reader:
        yield reader


@pytest.fixture(scope="module")
def study() -> Iterator[Reader]:
    with open_reader(RESULTS / f"{STUDY}.db.gz") as reader:
        yield reader


def tables(page: str, first: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the tables of a page whose head begins with a word, by the names of columns."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
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


def compared(study: Reader) -> dict[str, dict[str, Judged]]:
    """The newer versions against the oldest: step -> release or `RELEASE METRIC` -> what was judged."""
    found: dict[str, dict[str, Judged]] = {}
    for contender in compare(study, OLD, NEW).contenders:
        for step in contender.steps:
            row = found.setdefault(step.step, {})
            row[contender.contender.ref] = step.judged
            row |= {f"{contender.contender.ref} {judged.metric}": judged for judged in step.beside}
    return found


def test_the_ratios_of_the_study_are_those_of_its_history(study: Reader) -> None:
    found = {
        step: {
            "15.17, queries/s": f"{row[NEW[0].ref].base:,.0f}",
            **{version.ref: ratio_text(row[version.ref]) for version in NEW},
        }
        for step, row in compared(study).items()
    }
    shown = {row.pop("throughput of"): row for row in tables(STUDY, "throughput of")}
    assert {step: {name: row[name] for name in found[step]} for step, row in shown.items()} == found


def ratio_text(judged: Judged) -> str:
    assert judged.interval is not None
    estimate, low, high = (judged.interval.estimate, judged.interval.low, judged.interval.high)
    return f"{estimate:.2f} ({low:.2f} to {high:.2f})"


COSTS = {
    "CPU": "server_cpu_us_per_op",
    "switches": "server_cs_per_op",
    "read": "server_read_kb_per_op",
    "written": "server_written_kb_per_op",
    "WAL": "wal_bytes_per_op",
}
SIGNS = {MetricChange.MORE: "+", MetricChange.LESS: "-"}


def test_the_costs_of_the_study_are_those_of_its_history(study: Reader) -> None:
    found = {
        (step, version.ref): {
            name: "" if judged.value is None else f"{judged.value:.2f}{SIGNS.get(judged.change, '')}"
            for name, metric in COSTS.items()
            for judged in [row[f"{version.ref} {metric}"]]
        }
        for step, row in compared(study).items()
        for version in NEW
    }
    shown = {(row.pop("costs of"), row.pop("version")): row for row in tables(STUDY, "costs of")}
    assert shown == found


def test_the_variation_of_the_study_is_that_of_its_history(study: Reader) -> None:
    session = study.latest_session((OLD, *NEW))
    assert session is not None
    runs = study.runs(session.id)
    for row in tables(STUDY, "variation of"):
        samples = study.samples(session.id, row["variation of"])
        for version in (OLD, *NEW):
            own = [run.id for run in runs if run.version == str(version) and run.id in samples]
            seconds = [rate for run in own for rate in samples[run]]
            slow = sum(rate < median(seconds) / 2 for rate in seconds)
            assert row[version.ref] == f"{100 * pstdev(seconds) / fmean(seconds):.0f} %, {slow} s"


def test_what_varies_more_for_certain_is_named(study: Reader) -> None:
    steady = {name for name, metric in METRICS.items() if metric.role is Role.VARIATION}
    moved = {
        (step, name): judged
        for step, row in compared(study).items()
        for name, judged in row.items()
        if judged.metric in steady and judged.change in SIGNS
    }
    assert {step for step, _ in moved} == {"insert"}
    assert {name.split()[0] for _, name in moved} == {NEW[0].ref}
    page = " ".join((RESULTS / f"{STUDY}.md").read_text(encoding="utf-8").split())
    assert f"within a block is {ratio_text(moved['insert', f'{NEW[0].ref} qps_cv'])} times as large" in page


@pytest.mark.parametrize("name", [COMMITS, STUDY])
def test_it_is_small_and_names_no_path_of_the_machine(name: str) -> None:
    file = RESULTS / f"{name}.db.gz"
    assert file.stat().st_size < MAX_BYTES
    with open_reader(file) as history, history.database.reading() as connection:
        commands = connection.exec_driver_sql("SELECT command || options FROM sessions").scalars().all()
    assert commands
    assert not [command for command in commands if re.search(r"/(tmp|work|root|home|var/cache)/", command)]

"""The pages of studies larger than memory, and their histories."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median, pstdev

import pytest

from build.engines import ENGINES
from build.version import Version, parse_version
from history.comparison.compare import compare
from history.comparison.verdict import Judged, MetricChange
from history.open import open_reader
from history.store.reader import Reader
from suites.accounting.activity import DATA_WAIT, FLUSH, PURGE, VACUUM
from suites.metrics import METRICS, Role
from tests.docs.result_tables import RESULTS, ratio_text, tables

pytestmark = pytest.mark.deep("figures of the documents are computed again from whole kept histories")

COSTS = {
    "CPU": "server_cpu_us_per_op",
    "switches": "server_cs_per_op",
    "read": "server_read_kb_per_op",
    "written": "server_written_kb_per_op",
    "log": "wal_bytes_per_op",
}
SIGNS = {MetricChange.MORE: "+", MetricChange.LESS: "-"}


@dataclass(frozen=True)
class Study:
    """A page whose tables compare the versions of one session."""

    page: str
    history: Reader
    old: Version
    new: tuple[Version, ...]

    def name(self, version: Version) -> str:
        """The name in the heads of tables: the engine's too if there are several."""
        several = any(other.engine != self.old.engine for other in self.new)
        return f"{ENGINES[version.engine].title} {version.ref}" if several else version.ref

    @property
    def names(self) -> dict[str, str]:
        """Version -> name, of those that are compared with the oldest."""
        return {str(version): self.name(version) for version in self.new}

    def compared(self) -> dict[str, dict[tuple[str, str], Judged]]:
        """Step -> name and metric -> what was judged; of the metric of verdicts, which is empty, too."""
        found: dict[str, dict[tuple[str, str], Judged]] = {}
        for contender in compare(self.history, self.old, self.new).contenders:
            name = self.name(contender.contender)
            for step in contender.steps:
                row = found.setdefault(step.step, {})
                row[name, ""] = step.judged
                row |= {(name, judged.metric): judged for judged in step.beside}
        return found

    def rows(self, first: str) -> Iterator[dict[str, str]]:
        """The rows of its page's tables whose head begins with a word."""
        return tables(self.page, first)


STUDIES = {
    "write-heavy-io": ("postgres@15.17", "postgres@17.9", "postgres@18.3"),
    "write-heavy-engines": ("postgres@18.3", "mysql@9.7.2", "mariadb@11.8.6"),
}
"""The versions of the studies by their pages."""


@contextmanager
def opened(page: str) -> Iterator[Study]:
    old, *new = map(parse_version, STUDIES[page])
    with open_reader(RESULTS / f"{page}.db.gz") as history:
        yield Study(page, history, old, tuple(new))


@pytest.fixture(scope="module", params=STUDIES)
def study(request: pytest.FixtureRequest) -> Iterator[Study]:
    with opened(request.param) as study:
        yield study


@pytest.fixture(scope="module")
def releases() -> Iterator[Study]:
    with opened("write-heavy-io") as study:
        yield study


@pytest.fixture(scope="module")
def engines() -> Iterator[Study]:
    with opened("write-heavy-engines") as study:
        yield study


def test_ratios_of_throughput(study: Study) -> None:
    base = f"{study.name(study.old)}, queries/s"
    found = {}
    for step, row in study.compared().items():
        ratios = {name: ratio_text(row[name, ""]) for name in study.names.values()}
        found[step] = {base: f"{next(iter(row.values())).base:,.0f}", **ratios}
    shown = {row.pop("throughput of"): row for row in study.rows("throughput of")}
    assert {step: {name: row[name] for name in found[step]} for step, row in shown.items()} == found


MEANS = {
    "CPU, µs": ("server_cpu_us_per_op", 1, 0),
    "switches": ("server_cs_per_op", 1, 2),
    "read, KiB": ("server_read_kb_per_op", 1, 1),
    "written, KiB": ("server_written_kb_per_op", 1, 1),
    "log, KiB": ("wal_bytes_per_op", 1024, 1),
    "binary log, KiB": ("binlog_bytes_per_op", 1024, 1),
}
"""The metric of a column, its unit in that of the metric, and the decimals."""


def test_means(engines: Study) -> None:
    versions = (engines.old, *engines.new)
    session = engines.history.latest_session(versions)
    assert session is not None
    runs = engines.history.runs(session.id)
    found = {}
    for step, version in product(dict.fromkeys(run.step for run in runs), versions):
        row = found[step, engines.name(version)] = dict.fromkeys(MEANS, "")
        for column, (metric, unit, digits) in MEANS.items():
            own = [run for run in runs if (run.step, run.version) == (step, str(version))]
            values = [run.values[metric] for run in own if metric in run.values]
            if values:
                row[column] = f"{fmean(values) / unit:.{digits}f}"
    shown = {(row.pop("mean per query"), row.pop("version")): row for row in engines.rows("mean per query")}
    assert shown == found


def test_costs(releases: Study) -> None:
    found = {
        (step, name): {
            column: "" if judged.value is None else f"{judged.value:.2f}{SIGNS.get(judged.change, '')}"
            for column, metric in COSTS.items()
            for judged in [row[name, metric]]
        }
        for step, row in releases.compared().items()
        for name in releases.names.values()
    }
    shown = {(row.pop("costs of"), row.pop("version")): row for row in releases.rows("costs of")}
    assert shown == found


def test_variation(study: Study) -> None:
    versions = (study.old, *study.new)
    session = study.history.latest_session(versions)
    assert session is not None
    runs = study.history.runs(session.id)
    for row in study.rows("variation of"):
        samples = study.history.samples(session.id, row["variation of"])
        for version in versions:
            own = [run.id for run in runs if run.version == str(version) and run.id in samples]
            seconds = [rate for run in own for rate in samples[run]]
            slow = sum(rate < median(seconds) / 2 for rate in seconds)
            shown = f"{100 * pstdev(seconds) / fmean(seconds):.0f} %, {slow} s"
            assert row[study.name(version)] == shown


NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def test_how_many_steps_are_faster_and_slower(engines: Study) -> None:
    compared = engines.compared()
    verdicts = {
        name: [row[name, ""].change for row in compared.values()]
        for name in ("MySQL 9.7.2", "MariaDB 11.8.6")
    }
    mysql, mariadb = (
        [NUMBERS[found.count(change)] for change in (MetricChange.MORE, MetricChange.LESS)]
        for found in verdicts.values()
    )
    told = (
        f"MySQL is faster than Postgres in {mysql[0]} of {NUMBERS[len(compared)]} steps and slower in "
        f"{mysql[1]}, MariaDB in {mariadb[0]} and {mariadb[1]}"
    )
    page = (RESULTS / f"{engines.page}.md").read_text(encoding="utf-8")
    assert told in " ".join(page.split())


WAITS = {
    ("MySQL 9.7.2", "free pages"): ("mysql@9.7.2", FLUSH),
    ("MariaDB 11.8.6", "free pages"): ("mariadb@11.8.6", FLUSH),
    ("MariaDB 11.8.6", "purge"): ("mariadb@11.8.6", PURGE),
    ("Postgres 18.3", "data files"): ("postgres@18.3", DATA_WAIT),
    ("Postgres 18.3", "autovacuum"): ("postgres@18.3", VACUUM),
}
"""Columns -> what they have the seconds of."""


def test_seconds_with_waits_and_background_work(engines: Study) -> None:
    """In per cent of all seconds of a version in a step."""
    session = engines.history.latest_session((engines.old, *engines.new))
    assert session is not None
    runs, going_on = engines.history.runs(session.id), engines.history.activities(session.id)
    rows = list(engines.rows("seconds with"))
    assert {row["seconds with"] for row in rows} == {run.step for run in runs}
    for row, ((title, what), (version, name)) in product(rows, WAITS.items()):
        own = [run.id for run in runs if (run.step, run.version) == (row["seconds with"], version)]
        seconds = sum(len(engines.history.samples(session.id, row["seconds with"])[run]) for run in own)
        found = sum(a.last - a.first + 1 for run in own for a in going_on.get(run, ()) if a.name == name)
        assert row[f"{title}: {what}"] == f"{100 * found / seconds:.0f}"


def test_what_varies_more_in_newer_releases_is_named(releases: Study) -> None:
    """In one step of one release, for certain."""
    compared = releases.compared()
    steady = {name for name, metric in METRICS.items() if metric.role is Role.VARIATION}
    moved = {
        (step, name, metric): judged
        for step, row in compared.items()
        for (name, metric), judged in row.items()
        if metric in steady and judged.change in SIGNS
    }
    assert {(step, name) for step, name, _ in moved} == {("insert", "17.9")}
    page = " ".join((RESULTS / "write-heavy-io.md").read_text(encoding="utf-8").split())
    depth = ratio_text(moved["insert", "17.9", "qps_p1_over_median"])
    assert f"in its slowest seconds it has {depth} times as much of its median" in page

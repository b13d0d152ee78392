"""The site says what the history says: a planted regression, on every page that has to show it."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from build.version import parse_version
from history.changes import repository
from history.changes.boxes.notes import NoiseChange
from history.changes.report import ChangeReport, report_changes
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.metric_words import words_of
from history.open import open_reader
from history.series.series import Night
from history.store.records import Environment
from report import addresses
from report.charts.seconds import RoundSeconds, seconds_figure
from report.markup.formats import amount
from report.markup.frame import rendered
from report.pages.machine import machine_page
from report.values.catalog import read_catalog
from report.values.machine_page import read_machine
from runners.cli import main
from suites.metrics import PRIMARY
from tests.report.parsed import parsed
from tests.report.rich import BASE, BRANCH, FACTOR, NIGHTS, REGRESSION, SLOWED, commit, settings_of


@pytest.fixture(scope="module")
def change(rich: Path) -> ChangeReport:
    """The one change of the history."""
    with open_reader(rich) as history, history.database.reading() as connection:
        (found,) = report_changes(connection, repository.load(connection))
    return found


def test_the_list_of_changes_has_the_regression(site: Path, change: ChangeReport) -> None:
    page = parsed(site / addresses.CHANGES)
    (row,) = (row for row in page.rows if row and change.change.fingerprint in row[0])
    assert row[1].startswith("−12.")
    assert row[2].startswith(SLOWED)
    assert row[2].endswith("% slower")
    assert row[3] == BRANCH
    assert row[-1] == "open"


def test_its_chart_is_marked_at_the_right_nights(site: Path, change: ChangeReport) -> None:
    page = parsed(site / addresses.change(change.change.fingerprint))
    last, first = change.change.last_before, change.change.first_after
    assert (last.version, first.version) == (commit(REGRESSION - 1), commit(REGRESSION))
    marked = [
        row
        for row in page.rows
        if len(row) == 5 and f"{last.started_at:%Y-%m-%d} to {first.started_at:%Y-%m-%d}" in row[4]
    ]
    assert marked
    assert all(row[0].startswith(f"{first.started_at:%Y-%m-%d}") for row in marked)
    ranges = [
        given for tag, given in page.tags if tag == "rect" and given.get("class") == "range worse confirmed"
    ]
    assert ranges


def test_its_page_says_what_the_command_says(
    site: Path, rich: Path, change: ChangeReport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "changes", "--history", str(rich)]) == 0
    said = capsys.readouterr().out
    page = parsed(site / addresses.change(change.change.fingerprint))
    text = " ".join(page.text.split()).replace("−", "-")
    main_series = change.main_series
    assert f"{100 * (main_series.ratio - 1):+.1f} %" in said
    assert f"{100 * (1 - main_series.ratio):.1f} % slower" in text
    for member in change.change.members:
        size = f"{100 * (member.ratio - 1):+.1f} %"
        assert size in said
        assert any(size in cell.replace("−", "-") for row in page.rows for cell in row)


def test_it_is_in_the_ladder_with_the_colour_of_worse(site: Path) -> None:
    page = parsed(site / addresses.ladder("write-heavy", "db1", "short relaxed", "postgres@17"))
    cells = [given for tag, given in page.tags if tag == "td" and "heat" in given.get("class", "")]
    worst = min((cell for cell in cells if "data-v" in cell), key=lambda cell: float(cell["data-v"]))
    assert float(worst["data-v"]) == pytest.approx(FACTOR, abs=0.02)
    assert worst["class"] == "heat worse-4"


def test_its_page_has_what_a_person_asks_for(site: Path, change: ChangeReport) -> None:
    page = parsed(site / addresses.change(change.change.fingerprint))
    text = " ".join(page.text.split())
    confirmed = change.confirmation
    assert confirmed is not None
    said = f"Session {confirmed.uid} measured the old and the new commit in {confirmed.rounds} interleaved"
    assert f"{said} rounds" in text
    assert "2 boxes have it" in text
    assert "Bisect b15ec7" in text
    assert "server CPU" in text
    assert f"./tidemark run --suite write-heavy --profile short --step {SLOWED}" in text
    links = {link.split("#")[0] for link in page.links}
    assert {"../sessions/confirm37.html", "../bisects/b15ec7.html"} <= links


def test_an_inconclusive_step_is_never_shown_as_clean(site: Path) -> None:
    """A step without a decided verdict is hatched, and counted on the first page."""
    uid = sorted(path.stem for path in (site / "sessions").glob("db1n*.html"))[-1]
    page = parsed(site / f"sessions/{uid}.html")
    verdicts = [row for row in page.rows if row and row[-1].startswith("? inconclusive")]
    hatched = [given for tag, given in page.tags if tag == "td" and given.get("class") == "heat open"]
    assert len(verdicts) == len(hatched)


def test_the_step_page_shows_the_same_seconds_and_why_a_round_was_dropped(site: Path) -> None:
    uid = sorted(path.stem for path in (site / "sessions").glob("db1n*.html"))[-1]
    page = parsed(site / f"sessions/{uid}/{SLOWED}.html")
    assert any(tag == "path" and given.get("class") == "seconds contender" for tag, given in page.tags)
    assert "dropped: other processes took 31 % of the CPU: backup.sh" in page.text
    assert "tidemark_burn" in page.text
    assert len([row for row in page.rows if row and row[0] in ("1", "2", "3") and len(row) == 4]) == 120


def test_rounds_of_one_second_are_drawn_too() -> None:
    """A step that uses up its rows, as `delete` does in the demo, ends within a second: a path with one point
    draws nothing."""
    rounds = [RoundSeconds(1, [900.0], [1000.0]), RoundSeconds(2, [900.0, 950.0], [1000.0])]
    chart = str(seconds_figure(rounds, BASE, "postgres@18.6", "seconds"))
    lines = re.findall(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="seconds', chart)
    assert len(lines) == 4
    assert all(float(line[2]) - float(line[0]) > 100 for line in lines)


# Rows of tables, each with its own values. A generator inside a row is read when the page is rendered, and
# had the values of the last row then.


@pytest.mark.parametrize("is_public", [False, True])
def test_the_page_of_a_box_has_what_was_noted_of_its_noise(rich: Path, is_public: bool) -> None:
    night = Night(7, datetime(2026, 10, 5, tzinfo=UTC), BASE, 1)
    notes = [
        NoiseChange(Environment(box, "write-heavy", "short, 4 clients"), BRANCH, night, 1.84, 24)
        for box in ("db1", "db2")
    ]
    with open_reader(rich) as history, history.database.reading() as connection:
        catalog = read_catalog(connection, is_public=is_public)
        values = read_machine(connection, catalog, "db1", notes)
    text = rendered(machine_page(values, catalog), public=is_public)
    assert text.count("the noise is 1.8 times what it was, since 2026-10-05, over 24 series") == 1
    assert ("box db1" in text) is not is_public


def newest(site: Path) -> str:
    return sorted(path.stem for path in (site / "sessions").glob("db1n*.html"))[-1]


def test_group_means_are_those_of_the_comparison(site: Path, rich: Path) -> None:
    uid = newest(site)
    with open_reader(rich) as history:
        base, contender = parse_version(BASE), parse_version(commit(NIGHTS))
        (found,) = compare(history, base, [contender], CompareOptions(session=uid)).contenders
    rows = [
        row
        for row in parsed(site / f"sessions/{uid}.html").rows
        if row and row[0].endswith(": geometric mean of 2 steps")
    ]
    shown = {(row[0], *filter(None, row[1:])) for row in rows}
    for mean in found.group_means():
        columns = [name for name in mean.ratios if words_of(name).column and mean.ratios[name] is not None]
        ratios = [mean.ratios[PRIMARY], *(mean.ratios[name] for name in columns if name != PRIMARY)]
        assert (f"{mean.group}: geometric mean of 2 steps", *(f"{ratio:.2f}" for ratio in ratios)) in shown


def test_each_setting_has_its_own_values(site: Path) -> None:
    rows = {row[0]: row[1:] for row in parsed(site / f"sessions/{newest(site)}/setup.html").rows}
    for name in ("data_directory", "io_method"):
        assert rows[name] == [
            settings_of(version)[name] for version in (BASE, "postgres@18.6", commit(NIGHTS))
        ]
    assert rows["shared_buffers"] == ["16GB"]


def test_the_variables_that_were_left_out_are_named(site: Path) -> None:
    text = (site / f"sessions/{newest(site)}/setup.html").read_text()
    assert "did not get: PGOPTIONS, SECRET_DEPLOY_KEY." in text


def test_every_value_of_every_round_is_that_of_the_history(site: Path, rich: Path) -> None:
    uid = newest(site)
    rows = {row[0]: row[2:] for row in parsed(site / f"sessions/{uid}/{SLOWED}.html").rows if len(row) == 11}
    with open_reader(rich) as history:
        session = history.latest_session([], uid=uid)
        assert session is not None
        runs = [run for run in history.runs(session.id) if run.step == SLOWED]
    ordered = sorted(runs, key=lambda run: rows["metric"].index(f"{run.version}, round {run.repetition}"))
    for metric in ("qps", "wal_bytes_per_op", "reset_seconds"):
        assert rows[metric] == [amount(run.values[metric]) for run in ordered]

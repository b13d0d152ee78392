"""The trend: a year of nights of one box, whose branch changed three times."""

import math
import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from build.lock import held
from history.changes import repository
from history.changes.report import report_changes
from history.open import open_reader
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.store.records import Environment
from report import addresses
from report.markup.frame import rendered
from report.values.catalog import read_catalog
from report.values.trend.means import trend_of
from report.writing.site import STATIC
from report.writing.tree import renewed
from report.writing.trend_file import write_trend
from suites.metrics import METRICS
from tests.history.handmade import NIGHT
from tests.report.browser import sideways, violations
from tests.report.histories.year import CHANGES, FAILED, NIGHTS, RELEASES, YearHistory
from tests.report.rich import BRANCH


@pytest.fixture(scope="module")
def year(of_all: Path) -> Path:
    """A folder with the page of the trend, and the files that all pages need."""
    folder = of_all / "year-site"
    with held(of_all / "year.lock"):
        if not (of_all / "year.db").exists():
            YearHistory(of_all / "year.db").write()
            _write(of_all / "year.db", folder)
            (folder / "static").symlink_to(STATIC)
    return folder


def _write(path: Path, folder: Path) -> None:
    with open_reader(path) as history, renewed(folder, NIGHT) as tree:
        with history.database.reading() as connection:
            catalog = read_catalog(connection)
            reports = report_changes(connection, repository.load(connection))
        write_trend(
            history.database, catalog, reports, tree, "", lambda page: tree.write(page.path, rendered(page))
        )


@pytest.fixture
def trend(page: Page, year: Path) -> Page:
    page.goto((year / addresses.TREND).as_uri())
    return page


def level(number: int) -> float:
    """Return the mean of both steps of the branch in a night, as it was planted."""
    moved = [factor for night, factor in CHANGES.items() if night <= number]
    return math.prod(moved) ** 0.5


def test_the_mean_of_each_branch_is_drawn_with_its_releases_and_changes(trend: Page) -> None:
    assert trend.locator(".trend path.release").count() == len(RELEASES) - 1
    assert trend.locator(".trend .mark").all_text_contents()[:2] == ["18.5", "18.6"]
    tones = trend.locator(".trend .range").evaluate_all("(found) => found.map((range) => range.classList[1])")
    assert sorted(tones) == ["better", "worse", "worse"]
    signs = trend.locator(".trend .change-sign").all_text_contents()
    assert sorted(signs) == ["▴", "▾", "▾"]
    label = trend.get_attribute(".plot", "aria-label") or ""
    assert re.match(r"write-heavy on db1, geometric mean of qps: postgres@18 [+±−]0\.\d %, ", label)
    assert f"{BRANCH} −4." in label
    assert "from 2026-03-02 to 2027-03-01; 2 releases, 3 changes" in label
    links = trend.locator(".trend a").evaluate_all(
        "(found) => found.map((link) => link.getAttribute('href'))"
    )
    assert all(re.fullmatch(r"changes/\w+\.html", link) for link in links)
    assert violations(trend) == []


def test_its_numbers_are_those_of_the_same_steps_and_a_night_without_one_is_left_out(trend: Page) -> None:
    text = trend.inner_text("main")
    assert "Every mean is of the same 2 steps: insert, delete." in text
    assert f"Left out, because they lack one of these steps: postgres@18 1 night, {BRANCH} 1 night." in text
    assert "geometric mean of qps (queries/s), more is better, relative to postgres@17" in text
    trend.click("summary")
    rows = trend.locator("details tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    means = {row[0]: float(row[2]) for row in rows}
    assert len(means) == NIGHTS - 1
    for number in (1, 89, 91, 199, 201, 299, 301, 365):
        when = f"{NIGHT + timedelta(days=number):%Y-%m-%d}"
        assert means[when] == pytest.approx(level(number), abs=0.015), when
    assert f"{NIGHT + timedelta(days=FAILED):%Y-%m-%d}" not in means
    happened = {row[0]: row[3] for row in rows if row[3]}
    assert happened[f"{NIGHT + timedelta(days=120):%Y-%m-%d}"].endswith(
        "postgres@18 is postgres@18.5, before postgres@18.4"
    )
    assert sum("insert" in text for text in happened.values()) == len(CHANGES)


def test_on_a_phone_the_newest_nights_are_seen(trend: Page) -> None:
    trend.set_viewport_size({"width": 390, "height": 844})
    trend.reload()
    assert sideways(trend) == []
    place = trend.locator(".trend .mark", has_text=BRANCH).bounding_box()
    assert place is not None
    assert place["x"] + place["width"] <= 390


def test_the_trend_is_linked_from_branches_and_the_overview(page: Page, site: Path) -> None:
    for name in ("branches/index.html", "index.html"):
        page.goto((site / name).as_uri())
        page.locator("main").get_by_role("link", name=re.compile("^Trend")).click()
        assert page.url.endswith(addresses.TREND)
        assert page.locator(".chart.trend").count() == 2


def test_a_step_that_is_new_is_in_no_mean_and_takes_no_night_away() -> None:
    nights = tuple(Night(number, NIGHT + timedelta(days=number), BRANCH, 1) for number in range(10))
    ratios = np.full((3, 10), 1.1)
    ratios[1] = 0.9
    ratios[2, :9] = np.nan
    ratios[1, 4] = np.nan
    ratios[:, 7] = np.nan
    place = Environment("db1", "write-heavy", "short")
    steps = ((1, "insert", "qps"), (2, "delete", "qps"), (3, "new", "qps"))
    matrix = SeriesMatrix(place, BRANCH, "base", nights, steps, ratios)
    found = trend_of(place, METRICS["qps"], "base", [matrix])
    assert found is not None
    (branch,) = found.branches
    assert found.steps == ("insert",)
    assert found.others == {"delete": 8, "new": 1}
    assert (len(branch.means), branch.empty) == (9, 1)
    ratios[1, 4] = 0.9
    again = trend_of(place, METRICS["qps"], "base", [matrix])
    assert again is not None
    assert again.steps == ("insert", "delete")
    assert [round(mean, 4) for _, mean in again.branches[0].means] == [round((1.1 * 0.9) ** 0.5, 4)] * 9

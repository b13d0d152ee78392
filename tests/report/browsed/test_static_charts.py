"""Charts that are written as SVG: the keyboard on them, their labels, their scales, and narrow screens."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page

from report.charts.intervals import IntervalRow, interval_figure
from report.charts.nights import NightChart, NightMark, night_figure
from suites.metrics import Better
from tests.history.handmade import NIGHT
from tests.report.browsed.conftest import Show
from tests.report.browser import sideways, violations
from tests.report.histories.ten_boxes import LONG_NAME

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def change_page(site: Path) -> str:
    (found,) = [path for path in (site / "changes").glob("*.html") if path.stem != "index"]
    return found.as_uri()


def chart_of(days: Sequence[int], interval_of: dict[int, tuple[float, float]] | None = None) -> NightChart:
    marks = [
        NightMark(
            NIGHT + timedelta(days=day),
            "postgres@git:c0ffee",
            1 + 0.02 * (number % 2),
            interval=(interval_of or {}).get(number, (0.99, 1.03)),
            is_open=False,
        )
        for number, day in enumerate(days)
    ]
    return NightChart("insert, qps", marks, Better.HIGHER, 0.01, 0.02)


def test_a_chart_is_one_stop_that_states_its_finding_and_its_table_is_the_next(
    page: Page, change_page: str
) -> None:
    page.goto(change_page)
    page.focus(".plot:has(.nights)")
    label = page.evaluate("document.activeElement.ariaLabel")
    assert label.startswith("update-index, qps, postgres@master, write-heavy on db1: 13 % lower")
    assert " % lower since 2026-04-07, 46 nights" in label
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "The same as a table"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == label
    labels = page.locator(".plot").evaluate_all("(found) => found.map((frame) => frame.ariaLabel)")
    assert len(labels) > 3
    assert all(": " in label and any(letter.isdigit() for letter in label) for label in labels), labels
    stops = page.evaluate(
        "[...document.querySelectorAll('svg *')].filter((inner) => inner.tabIndex >= 0).length"
    )
    assert stops == 0
    assert violations(page) == []


def test_arrows_go_from_mark_to_mark_within_a_chart(page: Page, change_page: str) -> None:
    page.goto(change_page)
    page.focus(".plot:has(.nights)")
    label = "document.activeElement.ariaLabel"
    page.keyboard.press("End")
    assert page.evaluate(label).startswith("2026-04-16")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(label).startswith("2026-04-15")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(label).startswith("2026-03-03")
    page.keyboard.press("Escape")
    assert " nights" in page.evaluate(label)
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "The same as a table"


def test_on_a_phone_a_chart_opens_at_its_change(page: Page, change_page: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(change_page)
    assert sideways(page) == []
    place = page.locator(".plot:has(.nights) .range").first.bounding_box()
    assert place is not None
    assert 13 <= place["x"] <= PHONE["width"] - 13


def test_on_a_phone_a_strip_and_a_ladder_open_at_their_newest_end(page: Page, site: Path) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto((site / "branches/postgres-master.html").as_uri())
    newest = page.locator(".strip g").first.locator(".cell").last.bounding_box()
    assert newest is not None
    assert newest["x"] + newest["width"] <= PHONE["width"]
    page.goto((site / "compare/write-heavy--db1--short_relaxed--postgres-17.html").as_uri())
    row = page.locator("table.ladder tr[data-step]").first
    step, latest = row.locator("th").bounding_box(), row.locator("td").last.bounding_box()
    assert step is not None
    assert latest is not None
    assert step["x"] >= 0
    assert step["width"] <= 0.4 * PHONE["width"]
    assert latest["x"] >= step["x"] + step["width"] - 1
    assert latest["x"] + latest["width"] <= PHONE["width"]


def test_on_a_phone_a_list_of_changes_shows_their_sizes(page: Page, site: Path) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for name in ("changes/index.html", "branches/postgres-master.html"):
        page.goto((site / name).as_uri())
        size = page.locator("td:visible", has_text="−12.").first.bounding_box()
        assert size is not None
        assert size["x"] + size["width"] <= PHONE["width"], name


def test_one_wide_interval_does_not_set_the_axis_and_ends_in_an_arrow(page: Page, show: Show) -> None:
    show(night_figure(chart_of(range(9), {4: (0.3, 3.0)})))
    heights = page.locator(".point").evaluate_all("(found) => found.map((point) => point.cy.baseVal.value)")
    assert max(heights) - min(heights) > 25
    assert page.locator(".beyond").count() == 2
    assert "one that leaves the chart ends in an arrow" in page.inner_text(".key")
    rows = [IntervalRow(f"round {number}", 1.02, 1.0, 1.03) for number in range(6)]
    show(interval_figure([*rows, IntervalRow("round 7", 1.02, 0.2, 4.0)], "rounds", what="round"))
    ends = page.locator(".whisker").first.bounding_box()
    assert ends is not None
    assert ends["width"] > 60
    assert page.locator(".beyond").count() == 2
    assert "ends in an arrow" in page.inner_text(".key")


def test_one_point_is_a_chart_of_its_day(page: Page, show: Show) -> None:
    show(night_figure(chart_of([0])))
    ticks = page.locator(".chart .tick").all_text_contents()
    assert [text for text in ticks if "-" in text] == [f"{NIGHT:%Y-%m-%d}"]
    at = page.locator(".point").evaluate("(point) => point.cx.baseVal.value")
    hours = NIGHT.hour + NIGHT.minute / 60
    assert at == pytest.approx(52 + (960 - 12 - 52) * hours / 24, abs=1)


@pytest.mark.parametrize("days", [5, 30, 82, 190, 365, 800, 2400])
@pytest.mark.parametrize("small", [False, True])
def test_labels_of_days_months_and_years_do_not_collide(
    page: Page, show: Show, days: int, small: bool
) -> None:
    show(night_figure(chart_of(range(0, days, max(1, days // 40))), small=small))
    boxes = page.locator(".chart .tick[text-anchor=middle]").evaluate_all(
        "(found) => found.map((tick) => tick.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    assert len(boxes) >= 2
    for (_, right), (left, _) in pairwise(sorted(boxes)):
        assert left - right >= 4


def test_a_long_name_is_cut_in_the_middle_and_whole_on_hover_and_in_the_table(page: Page, show: Show) -> None:
    name = f"{LONG_NAME}: update-index"
    rows = [IntervalRow(name, 1.02, 1.0, 1.03)]
    show(interval_figure(rows, "boxes", what="box and step"))
    label = page.locator(".row-label")
    shown = label.evaluate("(text) => text.lastChild.textContent")
    assert shown.startswith("perf-lab-frankfurt")
    assert shown.endswith(": update-index")
    assert len(shown) <= 44
    assert label.locator("title").text_content() == name
    page.click("summary")
    assert name in page.inner_text("table")

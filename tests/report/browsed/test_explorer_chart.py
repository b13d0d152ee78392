"""The chart of the series explorer: ten boxes on one axis, its scales, and the keyboard on it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from build.lock import held
from report import addresses
from tests.report.browser import violations
from tests.report.conftest import write
from tests.report.histories.ten_boxes import BOXES, LONG_NAME, NIGHTS, ODD_BASE, STEP, TenBoxes
from tests.report.rich import BRANCH, SLOWED

SLOWED_SERIES = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, SLOWED, "qps")

KEEP_CHART = """() => {
  const real = uPlot;
  window.uPlot = function (options, data, place) { return (window.kept = new real(options, data, place)); };
  Object.assign(window.uPlot, real);
}"""
"""Lets a test see the chart that the page draws next."""


@pytest.fixture(scope="module")
def ten(of_all: Path) -> Path:
    """The site of ten boxes."""
    with held(of_all / "ten.lock"):
        if not (of_all / "ten-site").exists():
            TenBoxes(of_all / "ten.db").write()
            write(of_all / "ten.db", of_all / "ten-site")
    return of_all / "ten-site"


def series_of(box: str) -> str:
    return addresses.series_id(box, "write-heavy", "short relaxed", BRANCH, STEP, "qps")


def chart(page: Page, site: Path, view: str) -> Any:
    """Open the explorer with a view; return the scales and lines of its chart."""
    page.goto("about:blank")
    page.goto(f"{(site / 'series.html').as_uri()}#{view}&y=abs")
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    page.evaluate(KEEP_CHART)
    page.select_option("#axis", "rel")
    page.wait_for_function("() => window.kept")
    return page.evaluate(
        """() => ({ x: [kept.scales.x.min, kept.scales.x.max], y: [kept.scales.y.min, kept.scales.y.max],
          lines: kept.series.slice(1).map((line) =>
            [line.label, String(line.stroke()), JSON.stringify(line.dash)]) })"""
    )


def test_only_boxes_with_the_same_base_share_an_axis_and_the_others_are_named(page: Page, ten: Path) -> None:
    lines = chart(page, ten, f"s={series_of(BOXES[0])}&boxes=all")["lines"]
    assert len(lines) == len(BOXES)
    assert not any(ODD_BASE in label for label, _, _ in lines)
    assert f"{ODD_BASE} (base mysql@8.4" in page.inner_text("#left-out")
    assert f"{len(BOXES)} boxes" in page.title()
    page.select_option("#boxes", "one")
    page.wait_for_selector("#left-out", state="hidden")


def test_ten_boxes_are_told_apart_without_the_colours_of_better_and_worse(page: Page, ten: Path) -> None:
    lines = chart(page, ten, f"s={series_of(BOXES[0])}&boxes=all")["lines"]
    style = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    assert len({dash for _, _, dash in lines}) == len(BOXES)
    assert {colour for _, colour, _ in lines}.isdisjoint(
        {page.evaluate(style, "--better"), page.evaluate(style, "--worse")}
    )
    ends = page.locator("#chart .line-end")
    boxes = ends.evaluate_all("(found) => found.map((end) => [end.title, end.getBoundingClientRect().top])")
    assert {name for name, _ in boxes} == set(BOXES)
    tops = sorted(top for _, top in boxes)
    assert all(lower - upper >= 14 for upper, lower in pairwise(tops))
    assert violations(page) == []


def test_a_long_name_is_cut_in_the_middle_and_whole_on_hover_and_in_the_table(page: Page, ten: Path) -> None:
    chart(page, ten, f"s={series_of(LONG_NAME)}&boxes=all")
    (cut,) = page.locator(f'#chart .line-end[title="{LONG_NAME}"]').all_inner_texts()
    assert cut.startswith("perf-lab")
    assert cut.endswith("db10")
    assert len(cut) <= 18
    assert page.get_attribute("#chart .u-legend .u-series:nth-child(2) .u-label", "title") == LONG_NAME
    assert LONG_NAME in page.inner_text("#rows caption")
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_one_wide_interval_does_not_set_the_axis(page: Page, ten: Path) -> None:
    shown = chart(page, ten, f"s={series_of(BOXES[0])}")
    intervals = page.locator("#rows tbody td:nth-child(6)").all_inner_texts()
    assert any(float(text.split(" to ")[1].rstrip(" %")) > 50 for text in intervals)
    assert 0.8 < shown["y"][0] < shown["y"][1] < 1.2


def test_a_single_night_is_a_chart_of_its_day(page: Page, ten: Path) -> None:
    first, last = chart(page, ten, f"s={series_of(BOXES[0])}&from=2026-03-05&to=2026-03-05")["x"]
    assert page.evaluate(f"new Date({first} * 1000).toISOString()") == "2026-03-05T00:00:00.000Z"
    assert last - first == 24 * 3600
    assert "1 night from 2026-03-05 to 2026-03-05" in (page.get_attribute("#chart", "aria-label") or "")


@pytest.mark.parametrize("width", [390, 1440])
def test_labels_of_months_do_not_collide(page: Page, ten: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(
        """window.written = [];
        const fill = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          if (/^\\d{4}-\\d\\d$/.test(text)) window.written.push([x, this.measureText(text).width]);
          return fill.call(this, text, x, y);
        };"""
    )
    view = f"s={series_of(BOXES[0])}&zoom=2025-01-01T00:00,2026-11-01T00:00"
    page.goto(f"{(ten / 'series.html').as_uri()}#{view}")
    page.wait_for_selector("html[data-ready]")
    months = sorted({tuple(month) for month in page.evaluate("window.written")})
    assert len(months) >= 2
    for (left, wide), (right, wider) in pairwise(months):
        assert right - left >= (wide + wider) / 2 + 8


def test_a_chart_is_one_tab_stop_that_states_its_finding_and_arrows_read_it(page: Page, site: Path) -> None:
    page.goto(f"{(site / 'series.html').as_uri()}#s={SLOWED_SERIES}")
    page.wait_for_selector("html[data-ready]")
    label = page.get_attribute("#chart", "aria-label") or ""
    assert label.startswith(
        f"{SLOWED} qps, {BRANCH} on db1, relative to postgres@17: 46 nights from 2026-03-02"
    )
    assert "changes: −12." in label
    assert "confirmed" in label
    page.focus("#chart")
    page.keyboard.press("End")
    latest = page.get_attribute("#chart", "aria-valuetext") or ""
    assert latest.startswith("2026-04-16")
    assert "−1" in latest
    assert page.inner_text("#chart .u-legend .u-series:first-child .u-value").startswith("2026-04-16")
    page.keyboard.press("ArrowLeft")
    assert (page.get_attribute("#chart", "aria-valuetext") or "").startswith("2026-04-15")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('picked=db1n045')")
    page.keyboard.press("+")
    page.wait_for_function("() => location.hash.includes('zoom=')")
    assert page.evaluate("document.activeElement.id") == "chart"
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('zoom=')")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "The same as a table"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "chart"


def test_every_control_is_named_by_what_it_acts_on(page: Page, ten: Path) -> None:
    page.goto(f"{(ten / 'series.html').as_uri()}#s={series_of(BOXES[0])}")
    page.wait_for_selector("#rows button.pick")
    names = page.locator("#rows button.pick").evaluate_all("(found) => found.map((pick) => pick.ariaLabel)")
    assert len(set(names)) == NIGHTS
    assert names[0] == "pick the night of 2026-03-09 02:00 UTC"

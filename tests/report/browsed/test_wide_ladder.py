"""A ladder of thirty versions: on a screen, on a phone and on paper."""

import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page

from history.comparison.verdict import Judged, MetricChange, Verdict
from history.store.records import Environment
from report.markup.frame import dated, rendered
from report.pages.ladder import ladder_page
from report.values.clearance import Clearance
from report.values.ladder import MAX_VERSIONS, Ladder, LadderColumn
from report.writing.site import STATIC
from suites.metrics import METRICS
from tests.history.handmade import NIGHT
from tests.report.browser import sideways, violations

STEPS = [f"step-with-a-name-{number}" for number in range(40)]
PAPER = {"width": 1062, "height": 733}
"""A4 on its side without margins of 8 mm, in CSS pixels."""


@pytest.fixture
def ladder(page: Page, tmp_path: Path) -> Page:
    """The page of a ladder in which every step got slower in the newest version."""
    columns = tuple(_column(number) for number in range(MAX_VERSIONS))
    place = Environment("db1", "write-heavy", "short relaxed")
    made = Ladder(place, METRICS["qps"], True, "postgres@17.0", "postgres@17", columns, 0)
    (tmp_path / "static").symlink_to(STATIC)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/written.js").touch()
    text = rendered(ladder_page([made], Clearance(False, "")))
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare/a.html").write_text(dated(text, NIGHT), encoding="utf-8")
    page.goto((tmp_path / "compare/a.html").as_uri())
    return page


def _column(number: int) -> LadderColumn:
    ratio = 0.87 if number == MAX_VERSIONS - 1 else 1.01
    verdict = Verdict.REGRESSION if ratio < 0.9 else Verdict.UNCHANGED
    judged = Judged(
        "qps", 1000.0, 1000 * ratio, ratio, None, MetricChange.LESS, 6, 0.02, "round", verdict=verdict
    )
    return LadderColumn(
        f"postgres@17.{number + 1}",
        "postgres@17",
        f"n{number}",
        NIGHT + timedelta(days=number),
        "postgres@17.0",
        dict.fromkeys(STEPS, judged),
        dict.fromkeys(STEPS, ""),
    )


def edges(page: Page) -> tuple[float, float, float, float]:
    """Return the left and right edges of the frame of the table, and of the table."""
    found = page.locator(".scroll:has(.ladder)").evaluate(
        """(frame) => [frame, frame.querySelector('table')].flatMap((box) => {
          const place = box.getBoundingClientRect(); return [place.left, place.right]; })"""
    )
    return tuple(found)


def test_thirty_versions_fit_a_screen_of_1440_pixels(ladder: Page) -> None:
    left, right, first, last = edges(ladder)
    assert 0 <= left <= first + 1
    assert last <= right + 1 <= 1441
    assert ladder.locator("tr[data-step]").first.locator("td").count() == MAX_VERSIONS + 1
    cells = (
        ladder.locator("tr[data-step]")
        .first.locator("td")
        .evaluate_all("(found) => found.every((cell) => cell.scrollWidth <= cell.clientWidth + 1)")
    )
    assert cells
    heads = ladder.locator(".ladder thead button").evaluate_all(
        "(found) => found.map((head) => head.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    assert all(right <= left + 1 for (_, right), (left, _) in pairwise(heads))
    assert violations(ladder) == []


def test_on_a_phone_it_opens_at_the_newest_version(ladder: Page) -> None:
    ladder.set_viewport_size({"width": 390, "height": 844})
    ladder.reload()
    assert sideways(ladder) == []
    newest = ladder.locator("tr[data-step]").first.locator("td").last.bounding_box()
    name = ladder.locator("tr[data-step] th").first.bounding_box()
    assert newest is not None
    assert name is not None
    assert name["x"] >= 0
    assert name["x"] + name["width"] <= newest["x"]
    assert newest["x"] + newest["width"] <= 390


def test_it_is_printed_whole_with_its_heads_on_every_sheet(ladder: Page) -> None:
    pdf = ladder.pdf(prefer_css_page_size=True)
    boxes = {tuple(map(float, box)) for box in re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", pdf)}
    assert any(width > height for width, height in boxes)
    ladder.emulate_media(media="print")
    ladder.set_viewport_size(PAPER)  # type: ignore[arg-type]
    frame = ladder.locator(".scroll:has(.ladder)")
    assert frame.evaluate("(frame) => getComputedStyle(frame).overflowX") == "visible"
    assert ladder.locator(".ladder thead").evaluate("(head) => getComputedStyle(head).display") == (
        "table-header-group"
    )
    _, _, first, last = edges(ladder)
    assert first >= 0
    assert last <= PAPER["width"]

"""What servers did beside queries, below the chart of their seconds."""

from itertools import combinations

import pytest
from playwright.sync_api import Page

from report.charts.meanwhile import DRAWN
from report.charts.seconds import RoundSeconds, seconds_figure
from suites.accounting.activity import CHECKPOINT, STALL, Activity
from tests.report.browsed.conftest import Show

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

BOX = (
    "marks => marks.map(mark => { const box = mark.getBoundingClientRect(); return [box.top, box.bottom]; })"
)
COLOURS = """items => items.map(item => {
  const style = getComputedStyle(item);
  return item.classList.contains("swatch") ? style.backgroundColor : style.fill;
})"""


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_have_a_row_of_each_version_and_a_legend(
    page: Page, show: Show, size: dict[str, int], scheme: str
) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    done = [Activity(name, 5 * place + 1, 5 * place + 4) for place, name in enumerate(DRAWN)]
    seconds = [100.0, *[0.0] * 58, 90.0]
    show(seconds_figure([RoundSeconds(1, seconds, seconds, (), done, done)], "base", "new", "seconds"))
    marks = page.eval_on_selector_all(".meanwhile", BOX)
    ends = "lines => lines.map(line => line.getBBox().y + line.getBBox().height)"
    lines = page.eval_on_selector_all(".seconds", ends)
    tops = page.eval_on_selector_all(".meanwhile", "marks => marks.map(mark => mark.getBBox().y)")
    assert len(marks) == 2 * len(DRAWN)
    assert min(tops) > max(lines), "no mark hides a second without a query"
    assert all(bottom - top >= 1.5 for top, bottom in marks), "marks are seen on a phone too"
    items = page.eval_on_selector_all(".item", "items => items.map(item => item.getClientRects().length)")
    assert items == [1] * len(DRAWN), "no colour is parted from its word by the end of a line"
    swatches = page.eval_on_selector_all(".item .swatch", COLOURS)
    # Autovacuum and purge are never of one engine.
    different = [name for name in DRAWN if name != "purge"]
    colours = [colour for name, colour in zip(DRAWN, swatches, strict=True) if name in different]
    assert all(one != other for one, other in combinations(colours, 2))
    assert page.eval_on_selector_all(".meanwhile", COLOURS)[: len(DRAWN)] == swatches


def test_a_stall_is_below_what_may_have_been_its_cause(page: Page, show: Show) -> None:
    done = [Activity(CHECKPOINT, 3, 9), Activity(STALL, 5, 6)]
    seconds = [100.0] * 10
    show(seconds_figure([RoundSeconds(1, seconds, seconds, (), done, done)], "base", "new", "seconds"))
    (checkpoint, other), (stall, _) = (
        page.eval_on_selector_all(f".meanwhile.{name}", BOX) for name in ("checkpoint", "stall")
    )
    assert checkpoint[1] <= stall[0] + 0.1 < stall[1] <= other[0]

"""Long tables begin with what moved, and say how many rows they hide."""

from pathlib import Path

import htpy as h
import pytest
from playwright.sync_api import Page

from report.markup.frame import Page as SitePage
from report.markup.frame import dated, rendered
from report.markup.parts import numeric, row, table
from report.writing.site import STATIC
from tests.history.handmade import NIGHT
from tests.report.browser import violations


@pytest.fixture
def long_table(tmp_path: Path) -> Path:
    """A page with a table of twenty steps, of which two moved."""
    rows: list[h.Node] = [
        row(f"step {number}", numeric("1.00"), moved=number in (3, 17)) for number in range(20)
    ]
    still, other = (
        h.tr(".group")[h.th(scope="rowgroup", colspan="2")[name]] for name in ("still group", "other group")
    )
    short = [row(f"short {number}", numeric("1.00"), moved=False) for number in range(4)]
    rows = [*rows[:4], still, *rows[4:17], other, *rows[17:]]
    body: list[h.Node] = [
        table(("step", "ratio"), rows, caption="Long", class_="moved"),
        table(("step", "ratio"), short, caption="Short", class_="moved"),
        h.p["end"],
    ]
    (tmp_path / "static").mkdir()
    for name in ("site.js", "tables.js", "site.css"):
        (tmp_path / "static" / name).write_bytes((STATIC / name).read_bytes())
    page = tmp_path / "a.html"
    page.write_text(dated(rendered(SitePage("a.html", "A", body, None)), NIGHT), encoding="utf-8")
    return page


def test_a_long_table_begins_with_what_moved_and_shows_all_when_asked(page: Page, long_table: Path) -> None:
    page.goto(long_table.as_uri())
    assert page.locator("tbody tr:visible").all_inner_texts() == [
        *("step 3\t1.00", "other group", "step 17\t1.00"),
        *(f"short {number}\t1.00" for number in range(4)),
    ]
    assert page.inner_text(".only-moved p") == "2 of 20 steps: 18 that did not move are hidden"
    page.get_by_role("button", name="Show all 20 steps").click()
    assert page.locator("tbody tr:visible").count() == 26
    assert page.evaluate("location.hash") == "#rows=all"
    page.go_back()
    page.wait_for_function("() => document.querySelector('.only-moved p').textContent.startsWith('2 of 20')")
    assert page.locator("tbody tr:visible").count() == 7
    assert violations(page) == []


def test_all_is_printed(page: Page, long_table: Path) -> None:
    page.goto(long_table.as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody tr:visible").count() == 26


def test_rows_of_verdicts_and_ladders_say_whether_they_moved(page: Page, site: Path) -> None:
    """A step that is undecided or has no value stays in sight."""
    page.goto((site / "sessions/confirm37.html").as_uri())
    assert page.locator("table.verdicts").first.locator("tr[data-moved=yes]").count() == 1
    page.goto((site / "compare/write-heavy--db1--short_relaxed--postgres-17.html").as_uri())
    ladder = page.locator("[data-metric=qps] table.ladder tbody tr[data-step]")
    assert ladder.count() == page.locator("[data-metric=qps] tr[data-moved]").count()
    assert page.locator("[data-metric=qps] tr[data-step=update-index]").get_attribute("data-moved") == "yes"

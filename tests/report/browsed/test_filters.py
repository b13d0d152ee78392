"""Filters of the lists of changes and sessions in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from report.pages import sessions
from tests.report.browser import violations
from tests.report.conftest import write
from tests.report.rich import NIGHTS, commit


def shown(page: Page) -> int:
    """Return how many rows are seen."""
    return page.locator("tbody tr:visible").count()


def test_sessions_are_filtered_by_all_that_they_have(page: Page, site: Path) -> None:
    page.goto((site / "sessions/index.html").as_uri())
    total = page.locator("tbody tr").count()
    assert page.inner_text(".count") == f"{total} sessions"
    page.select_option("#filter-box", "db2")
    page.select_option("#filter-kind", "night")
    of_box = page.locator("tbody tr[data-box=db2][data-kind=night]").count()
    assert shown(page) == of_box < total
    page.fill("#filter-from", "2026-03-10")
    page.fill("#filter-to", "2026-03-12")
    assert page.inner_text(".count") == f"3 of {total} sessions"
    page.locator("#filter-text").press_sequentially("db2n010")
    assert page.inner_text(".count") == f"1 of {total} sessions"
    again = page.context.new_page()
    again.goto(page.evaluate("location.href"))
    assert (shown(again), again.input_value("#filter-text")) == (1, "db2n010")
    assert violations(again) == []
    page.go_back()
    page.wait_for_function("() => document.getElementById('filter-text').value === ''")
    assert shown(page) == 3
    for name in ("suite", "metric", "status"):
        assert page.locator(f"#filter-{name} option").count() > 1, name


def test_filters_that_nothing_fits_say_so_and_let_go(page: Page, site: Path) -> None:
    page.goto((site / "changes/index.html").as_uri() + "#status=closed&box=db7")
    total = page.locator("tbody tr").count()
    assert (shown(page), page.inner_text(".count")) == (0, "0 of 1 change")
    assert page.title() == "Changes, status closed, box db7 · Tidemark"
    assert "None of the changes" in page.inner_text("main .note")
    assert (page.input_value("#filter-status"), page.input_value("#filter-box")) == ("closed", "db7")
    page.get_by_role("button", name="Show all changes").click()
    assert (shown(page), page.evaluate("location.hash")) == (total, "")
    assert page.locator("main .note:visible").count() == 0


def test_a_session_is_found_by_a_whole_version(page: Page, site: Path) -> None:
    """The list has short ones, but what one copies is the whole."""
    page.goto((site / "sessions/index.html").as_uri())
    page.fill("#filter-text", commit(NIGHTS))
    assert shown(page) == 2


def test_a_change_is_found_by_each_of_its_boxes(page: Page, site: Path) -> None:
    page.goto((site / "changes/index.html").as_uri())
    for box in ("db1", "db2"):
        page.select_option("#filter-box", box)
        assert shown(page) == 1
    page.fill("#filter-text", "no such step")
    assert shown(page) == 0
    for name in ("status", "kind", "branch", "suite", "metric"):
        assert page.locator(f"#filter-{name} option").count() > 1, name


def test_filters_go_along_to_the_page_of_a_year(
    page: Page, rich: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_ROWS", 20)
    write(rich, tmp_path / "site")
    page.goto((tmp_path / "site/sessions/index.html").as_uri() + "#box=db2")
    assert page.inner_text(".count") == "10 of 20 sessions"
    assert "The latest 20 of 94 sessions" in page.inner_text("main")
    page.get_by_role("link", name="2026: 94").click()
    page.wait_for_url("**/in-2026.html*")
    assert page.inner_text(".count") == "45 of 94 sessions"

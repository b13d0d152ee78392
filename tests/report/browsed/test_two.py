"""Any two versions or nights of a suite and box, compared in a real browser."""

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from report import addresses
from tests.report.browser import violations
from tests.report.rich import BRANCH, FACTOR, NIGHTS, REGRESSION, SLOWED, STEPS

PLACE = addresses.two(("db1", "write-heavy", "short relaxed"))


def compare(page: Page, site: Path, first: str, second: str, more: str = "") -> None:
    """Open the page with two sides, and wait for what it says."""
    page.goto("about:blank")
    page.goto(f"{site.as_uri()}/{PLACE}&first={quote(first, safe='')}&second={quote(second, safe='')}{more}")
    page.wait_for_selector("html[data-ready]", timeout=20_000)


def quotients(page: Page) -> dict[str, float]:
    """Return the shown quotient of each step."""
    rows = page.locator("#steps tbody tr").all()
    return {
        row.locator("th").inner_text(): float(row.locator("td.heat").get_attribute("data-v") or 0)
        for row in rows
    }


def test_two_nights_are_compared_by_the_quotient_of_their_ratios(page: Page, site: Path) -> None:
    compare(page, site, f"{BRANCH},db1n{REGRESSION - 5:03}", f"{BRANCH},db1n{REGRESSION + 5:03}")
    found = quotients(page)
    assert found.keys() == set(STEPS)
    assert found[SLOWED] == pytest.approx(FACTOR, rel=0.02)
    assert found["delete"] == pytest.approx(1, abs=0.02)
    said = page.inner_text("#said")
    assert "quotient of two ratios to the base of their nights, without an interval" in said
    assert "./tidemark run --suite write-heavy --until-decided postgres@git:" in said
    assert page.title().startswith("postgres@git:")
    assert violations(page) == []


def test_two_releases_that_a_session_has_link_its_comparison(page: Page, site: Path) -> None:
    compare(page, site, "postgres@17.11", "postgres@18.6")
    assert quotients(page)["insert"] == pytest.approx(1.06, rel=0.01)
    assert "Both are of one session" in page.inner_text("#said")
    link = page.locator("#said a").get_attribute("href") or ""
    assert link.endswith(f"sessions/db1n{NIGHTS:03}.html")
    page.locator("#said a").click()
    page.wait_for_url("**/sessions/*.html")


def test_the_session_that_confirmed_a_change_is_linked_from_its_two_nights(page: Page, site: Path) -> None:
    compare(page, site, f"{BRANCH},db1n{REGRESSION - 1:03}", f"{BRANCH},db1n{REGRESSION:03}")
    assert (page.locator("#said a").get_attribute("href") or "").endswith(f"confirm{REGRESSION}.html")


def test_the_choice_is_in_the_address_and_back_undoes_it(page: Page, site: Path) -> None:
    compare(page, site, "postgres@17.11", "postgres@18.6")
    page.click("#swap")
    page.wait_for_function("() => document.title.startsWith('postgres@17.11 against postgres@18.6')")
    assert quotients(page)["insert"] == pytest.approx(1 / 1.06, rel=0.01)
    page.select_option("#metric", label="server CPU, µs/query")
    page.wait_for_function("() => document.getElementById('steps').textContent.includes('µs/query')")
    page.go_back()
    page.go_back()
    page.wait_for_function("() => document.title.startsWith('postgres@18.6 against postgres@17.11')")


def test_at_first_the_latest_night_is_compared_with_its_base(page: Page, site: Path) -> None:
    page.goto((site / addresses.TWO).as_uri())
    page.wait_for_selector("#steps tbody tr")
    assert "Both are of one session" in page.inner_text("#said")
    assert page.input_value("#first").startswith("postgres@17,")
    page.select_option("#second", "postgres@18.5")
    page.wait_for_function("() => document.title.startsWith('postgres@18.5 against postgres@17.11')")
    assert "first=postgres@17,db1" in page.evaluate("location.hash")


def test_what_the_site_does_not_have_is_said(page: Page, site: Path) -> None:
    compare(page, site, "postgres@17.11", "postgres@9.6")
    assert "No night of this suite and box measured postgres@9.6" in page.inner_text("#state")
    assert page.locator("#steps table").count() == 0
    page.goto("about:blank")
    page.goto(f"{(site / addresses.TWO).as_uri()}#place=nowhere")
    page.wait_for_selector("html[data-ready]")
    assert "no nights of nowhere" in page.inner_text("#state")


def test_picked_nights_lead_there(page: Page, site: Path) -> None:
    series = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, SLOWED, "qps")
    page.goto(f"{(site / 'series.html').as_uri()}#s={series}&picked=db1n036,db1n038")
    page.get_by_role("link", name="Compare all steps of both").click()
    page.wait_for_selector("#steps tbody tr")
    assert quotients(page)[SLOWED] == pytest.approx(FACTOR, rel=0.02)

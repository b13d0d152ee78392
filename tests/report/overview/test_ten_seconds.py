"""From the first page to the commit behind a change: two clicks at most, and nothing has to be scrolled."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route

from tests.report.browser import chromium

DESK = {"width": 1440, "height": 900}
CULPRIT = "https://github.com/postgres/postgres/"


@pytest.fixture
def page(site: Path) -> Iterator[Page]:
    """The first page of the site of a planted change, whose bisect has found its commit."""

    def upstream(route: Route) -> None:
        route.fulfill(body="a commit", content_type="text/plain")

    with chromium() as browser:
        context = browser.new_context(viewport=DESK)  # type: ignore[arg-type]
        context.route(re.compile("https:"), upstream)
        opened = context.new_page()
        opened.goto((site / "index.html").as_uri())
        yield opened


def click(page: Page, place: Locator) -> None:
    """Click what is wholly in the window, as it is when the page has opened."""
    box = place.bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= DESK["height"]
    assert page.evaluate("scrollY") == 0
    with page.expect_navigation():
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_from_the_card_over_the_change_to_the_commit(page: Page) -> None:
    click(page, page.locator(".card.worse h3 a").first)
    assert "/changes/" in page.url
    click(page, page.get_by_role("link", name="000000000000").first)
    assert page.url.startswith(CULPRIT)
    assert "000000000000" in page.url


def test_from_the_card_to_the_commit(page: Page) -> None:
    click(page, page.locator(".card.worse code").first)
    assert page.url.startswith(CULPRIT)


def test_the_first_screen_says_it_all(page: Page) -> None:
    for shown in (".news", ".card .spark", ".card h3"):
        box = page.locator(shown).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= DESK["height"], shown

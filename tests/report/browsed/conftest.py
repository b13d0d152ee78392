"""A page of a real browser for each test."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.report.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()

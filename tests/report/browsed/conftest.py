"""A page of a real browser for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from report.markup.frame import Page as SitePage
from report.markup.frame import dated, rendered
from report.writing.site import STATIC
from tests.history.handmade import NIGHT
from tests.report.browser import chromium

Show = Callable[[object], None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def show(page: Page, tmp_path: Path) -> Show:
    """Opens a page of the site that has only a chart."""
    (tmp_path / "static").symlink_to(STATIC)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/written.js").touch()

    def shown(chart: object) -> None:
        text = rendered(SitePage("a.html", "a chart", chart, None))  # type: ignore[arg-type]
        (tmp_path / "a.html").write_text(dated(text, NIGHT), encoding="utf-8")
        page.goto((tmp_path / "a.html").as_uri())

    return shown

"""The first page in a real browser where a box is blind, and where the verdict of a session is the news."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.browser import Seen, chromium, sideways, violations
from tests.report.conftest import write
from tests.report.histories.failing import record_failing
from tests.report.histories.single import record_single

NARROW = 320


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("record", [record_failing, record_single])
def test_it_is_usable_in_light_and_dark_and_on_a_phone(
    browser: Browser, tmp_path: Path, record: Callable[[Path], None]
) -> None:
    record(tmp_path / "h.db")
    write(tmp_path / "h.db", tmp_path / "site")
    for scheme, width in (("light", NARROW), ("dark", 1440)):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
        page, seen = context.new_page(), Seen()
        seen.watch(page, (tmp_path / "site").as_uri())
        page.goto((tmp_path / "site/index.html").as_uri(), wait_until="load")
        assert [*seen.problems, *sideways(page), *violations(page)] == []
        context.close()

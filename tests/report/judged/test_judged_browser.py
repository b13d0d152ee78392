"""The choice of a metric in a real browser: by a click, by the address, and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from report import addresses
from suites.metrics import INSTRUCTIONS
from tests.report.browser import Seen, chromium, sideways, violations
from tests.report.judged.judged_history import BRANCH, METRICS, MIXED, suite_of

MIXED_LADDER = addresses.ladder(MIXED, "db1", "short relaxed", "postgres@17")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def shown(page: Page) -> list[str]:
    """The metrics whose parts can be seen."""
    parts = page.locator("[data-metric]:visible")
    return [str(parts.nth(number).get_attribute("data-metric")) for number in range(parts.count())]


def chosen(page: Page) -> str:
    return page.inner_text('nav.metrics a[aria-current="true"]')


def test_a_metric_is_chosen_by_a_click_by_the_address_and_by_going_back(
    browser: Browser, pages: Path
) -> None:
    page, seen = browser.new_page(), Seen()
    seen.watch(page, pages.as_uri())
    page.goto((pages / MIXED_LADDER).as_uri())
    assert (shown(page), chosen(page)) == (["qps"], "qps, queries/s")
    page.click("nav.metrics a >> nth=1")
    page.wait_for_selector(f"[data-metric={INSTRUCTIONS}]:visible")
    assert (shown(page), page.url.partition("#")[2]) == ([INSTRUCTIONS], f"metric={INSTRUCTIONS}")
    assert page.inner_text("[data-metric]:visible tr[data-step] td:last-child") == "▾1.07"
    page.go_back()
    page.wait_for_selector("[data-metric=qps]:visible")
    assert shown(page) == ["qps"]
    assert page.inner_text("[data-metric]:visible tr[data-step] td:last-child") == "▾0.93"
    page.go_forward()
    page.wait_for_selector(f"[data-metric={INSTRUCTIONS}]:visible")
    page.reload()
    assert shown(page) == [INSTRUCTIONS]
    assert seen.problems == []
    page.close()


def test_another_base_has_the_colours_of_its_metric(browser: Browser, pages: Path) -> None:
    """The twin of the base is as good as it: as the base it changes neither ratios nor colours much."""
    metric = METRICS[0]
    page = browser.new_page()
    page.goto((pages / addresses.ladder(suite_of(metric), "db1", "short relaxed", "postgres@17")).as_uri())
    heads = page.locator("table.ladder thead button")
    twin = [str(head.get_attribute("data-version")) for head in heads.all()].index("postgres@17.11#twin")
    heads.nth(twin).click()
    assert page.url.partition("#")[2].startswith(f"metric={metric}&base=postgres")
    last = "xpath=//tr[@data-step='{}']/td[last()]"
    assert page.get_attribute(last.format("worse"), "class") == "heat worse-4"
    assert page.get_attribute(last.format("better"), "class") == "heat better-3"
    page.close()


def test_every_page_with_a_choice_is_usable(browser: Browser, pages: Path) -> None:
    problems = {}
    names = [
        addresses.branch(BRANCH),
        MIXED_LADDER,
        addresses.session(f"{METRICS[1]}-40"),
        addresses.step("mixed-40", "insert"),
    ]
    context = browser.new_context(viewport={"width": 320, "height": 900})
    for name in names:
        page, seen = context.new_page(), Seen()
        seen.watch(page, pages.as_uri())
        page.goto((pages / name).as_uri() + f"#metric={INSTRUCTIONS}")
        found = [*seen.problems, *sideways(page), *violations(page)]
        if found:
            problems[name] = found
        page.close()
    context.close()
    assert problems == {}


def test_the_explorer_begins_with_the_metric_of_the_address(browser: Browser, pages: Path) -> None:
    page = browser.new_page()
    page.goto((pages / "series.html").as_uri() + f"#metric={INSTRUCTIONS}")
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    assert "exact instructions" in page.inner_text("#state")
    key = page.inner_text("#chart-key")
    assert "This step can see every change beyond 0.5 %, the threshold." in key
    assert "Bars: the interval of a session" in key
    page.close()

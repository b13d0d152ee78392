"""The view of a page is in its address: of the series explorer, of tables, of filters and of ladders."""

from pathlib import Path

from playwright.sync_api import Page

from report import addresses
from tests.report.rich import BRANCH, NIGHTS, SLOWED

SERIES = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, SLOWED, "qps")


def explore(page: Page, site: Path, view: str) -> None:
    """Open the explorer with a view, and wait for its chart."""
    page.goto("about:blank")
    page.goto(f"{(site / 'series.html').as_uri()}#{view}")
    page.wait_for_selector("html[data-ready]", timeout=20_000)


def address(page: Page) -> str:
    """Return the page's own address: that of Playwright follows a change of it a moment later."""
    return str(page.evaluate("location.hash"))


def span(page: Page) -> list[str]:
    """Return the labels of the first and last night that the keyboard reaches in the chart."""
    found = []
    for key in ("Home", "End"):
        page.focus("#chart")
        page.keyboard.press(key)
        found.append((page.get_attribute("#chart", "aria-valuetext") or "")[:10])
    return found


def test_the_whole_view_of_the_explorer_is_in_its_address_and_back_undoes_a_choice(
    page: Page, site: Path
) -> None:
    explore(page, site, f"s={SERIES}")
    page.select_option("#axis", "abs")
    page.wait_for_function("() => document.title.includes('absolute')")
    page.fill("#from", "2026-03-20")
    page.dispatch_event("#from", "change")
    box = page.locator("#chart .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 90)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 90, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('zoom=')")
    narrow = span(page)
    assert "2026-03-20" < narrow[0] < narrow[1] < "2026-04-16"

    again = page.context.new_page()
    again.goto(page.evaluate("location.href"))
    again.wait_for_selector("html[data-ready]")
    assert (again.input_value("#axis"), again.input_value("#from")) == ("abs", "2026-03-20")
    assert span(again) == narrow

    page.go_back()
    page.wait_for_function("() => !location.hash.includes('zoom=')")
    page.wait_for_timeout(100)
    assert span(page)[0] == "2026-03-20"
    page.go_back()
    page.wait_for_function("() => document.getElementById('from').value === ''")
    page.go_back()
    page.wait_for_function("() => document.getElementById('axis').value === 'rel'")
    assert address(page) == f"#s={SERIES}"


def test_another_metric_is_in_the_address_and_the_title_names_the_view(page: Page, site: Path) -> None:
    explore(page, site, f"s={SERIES}")
    assert page.title() == f"{SLOWED} qps, {BRANCH} on db1, relative · Tidemark"
    page.select_option("#metric", label="server CPU, µs/query")
    page.wait_for_function("() => document.title.includes('server CPU')")
    page.select_option("#boxes", "all")
    page.wait_for_function("() => document.title.includes('2 boxes')")
    page.go_back()
    page.go_back()
    page.wait_for_function("() => document.title.includes('qps,')")
    assert page.locator("#metric option:checked").inner_text().startswith("qps")


def test_an_unknown_series_is_said_and_no_other_one_is_shown(page: Page, site: Path) -> None:
    explore(page, site, "s=c0ffeec0ffee")
    assert "no series c0ffeec0ffee" in page.inner_text("#state")
    assert page.title() == "Unknown series c0ffeec0ffee · Tidemark"
    assert page.locator("#chart canvas").count() == page.locator("#rows tr").count() == 0
    page.select_option("#place", index=1)
    page.wait_for_selector("#chart canvas")
    assert "no series" not in page.inner_text("#state")
    page.go_back()
    page.wait_for_function("() => document.title.startsWith('Unknown')")
    assert page.locator("#chart canvas").count() == 0


def test_picked_nights_are_in_the_address(page: Page, site: Path) -> None:
    explore(page, site, f"s={SERIES}&picked=db1n036,db1n038")
    assert "The second is −1" in page.inner_text("#picked")
    page.locator("#rows button.pick").nth(0).click()
    assert f"picked=db1n038,db1n{NIGHTS:03}" in address(page)
    page.go_back()
    page.wait_for_function("() => location.hash.includes('picked=db1n036,db1n038')")


def test_a_sorted_table_is_in_the_address_and_back_undoes_it(page: Page, site: Path) -> None:
    page.goto((site / "sessions/index.html").as_uri())
    first = page.locator("tbody tr").first.inner_text()
    page.locator("th button", has_text="began").click()
    oldest = page.locator("tbody tr").first.inner_text()
    assert address(page) == "#sort=began"
    assert first != oldest
    again = page.context.new_page()
    again.goto(page.evaluate("location.href"))
    assert again.locator("tbody tr").first.inner_text() == oldest
    page.go_back()
    page.wait_for_function("() => !document.querySelector('th[aria-sort]')")
    assert page.locator("tbody tr").first.inner_text() == first


def test_back_undoes_the_base_of_a_ladder_and_another_metric_keeps_it(page: Page, site: Path) -> None:
    page.goto((site / "compare/write-heavy--db1--short_relaxed--postgres-17.html").as_uri())
    page.locator("table.ladder thead button").nth(1).click()
    assert "base=" in address(page)
    version = page.locator("table.ladder thead button").nth(1).get_attribute("data-version")
    assert page.title().endswith(f", base {version} · Tidemark")
    page.go_back()
    page.wait_for_selector("table.ladder thead button:first-child[aria-pressed=true]")
    assert page.locator("table.ladder thead button").nth(1).get_attribute("aria-pressed") == "false"


def test_the_choice_of_a_metric_hides_no_row_of_a_list(page: Page, site: Path) -> None:
    page.goto((site / "branches/postgres-master.html").as_uri())
    assert page.locator("tr[data-metric]:visible").count() == 1

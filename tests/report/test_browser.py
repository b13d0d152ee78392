"""Every kind of page in a real browser: from disk and served, light and dark, narrow and wide."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.open import open_reader
from report import addresses
from tests.report.browser import Seen, chromium, served, sideways, violations
from tests.report.parsed import parsed
from tests.report.rich import BASE, BRANCH, NIGHTS, SLOWED, commit

NARROW, WIDE = 320, 1600


FILLED = ("series.html",)
"""Pages that a script fills."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def kinds(site: Path) -> list[str]:
    """One page of each kind, the richest."""
    uid = sorted(path.stem for path in (site / "sessions").glob("db1n*.html"))[-1]
    (change,) = [path.name for path in (site / "changes").glob("*.html") if path.name != "index.html"]
    return [
        *("index.html", *FILLED, "help.html", "trend.html"),
        *(
            f"{folder}/index.html"
            for folder in ("changes", "branches", "compare", "sessions", "machines", "bisects")
        ),
        *(f"changes/{change}", "branches/postgres-master.html", "machines/db1.html", "bisects/b15ec7.html"),
        *(f"sessions/{uid}.html", f"sessions/{uid}/{SLOWED}.html", f"sessions/{uid}/setup.html"),
        "compare/write-heavy--db1--short_relaxed--postgres-17.html",
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", NARROW), ("dark", WIDE)])
def test_from_disk_every_page_is_usable_and_asks_nobody(
    browser: Browser, site: Path, kinds: list[str], scheme: str, width: int
) -> None:
    problems = {}
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
    for name in kinds:
        page, seen = context.new_page(), Seen()
        seen.watch(page, site.as_uri())
        page.goto((site / name).as_uri(), wait_until="load")
        if name in FILLED:
            page.wait_for_selector("html[data-ready]", timeout=20_000)
        found = [*seen.problems, *(f"too wide: {sideway}" for sideway in sideways(page)), *violations(page)]
        if found:
            problems[name] = found
        page.close()
    context.close()
    assert problems == {}


def test_from_a_server_every_page_works_the_same(browser: Browser, site: Path, kinds: list[str]) -> None:
    problems = {}
    with served(site) as address:
        context = browser.new_context(color_scheme="light", viewport={"width": WIDE, "height": 900})
        for name in kinds:
            page, seen = context.new_page(), Seen()
            seen.watch(page, address)
            page.goto(f"{address}/{name}", wait_until="load")
            if name in FILLED:
                page.wait_for_selector("html[data-ready]", timeout=20_000)
            if seen.problems:
                problems[name] = seen.problems
            page.close()
        context.close()
    assert problems == {}


def test_a_request_to_elsewhere_an_error_and_a_violation_are_seen(browser: Browser, tmp_path: Path) -> None:
    policy = "default-src 'none'; script-src 'self'; img-src http:"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    head += '<script>inline()</script><script src="a.js"></script>'
    (tmp_path / "a.html").write_text(f'<!doctype html>{head}<img src="http://127.0.0.1:9/x.png"><p>text')
    (tmp_path / "a.js").write_text("missing()")
    page, seen = browser.new_page(), Seen()
    seen.watch(page, tmp_path.as_uri())
    page.goto((tmp_path / "a.html").as_uri(), wait_until="load")
    said = "\n".join(seen.problems)
    assert "asked for http://127.0.0.1:9/x.png" in said
    assert "missing is not defined" in said
    assert "Content Security Policy" in said
    assert any(violation.startswith("image-alt") for violation in violations(page))
    page.close()


def test_only_a_request_that_the_browser_gave_up_is_not_a_failure(browser: Browser, tmp_path: Path) -> None:
    """A reload right after a page has loaded gives up the request for its icon: one in two does."""
    (tmp_path / "icon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    page, seen = browser.new_page(), Seen()
    seen.watch(page, tmp_path.as_uri())
    (tmp_path / "page.html").write_text('<!doctype html><link rel="icon" href="icon.svg"><p>here</p>')
    page.goto((tmp_path / "page.html").as_uri())
    for _ in range(20):
        page.reload()
    assert seen.problems == []
    (tmp_path / "page.html").write_text('<!doctype html><img src="absent.svg" alt="absent">')
    page.reload()
    page.close()
    assert [said for said in seen.problems if said.startswith("failed")] == [
        f"failed: {(tmp_path / 'absent.svg').as_uri()}"
    ]


def test_every_mark_of_a_chart_takes_the_focus(browser: Browser, site: Path, kinds: list[str]) -> None:
    name = next(name for name in kinds if name.startswith("changes/") and "index" not in name)
    marks = sum(tag == "a" and not given.get("class") for tag, given in parsed(site / name).tags)
    page = browser.new_page()
    page.goto((site / name).as_uri())
    inside = page.evaluate(
        """() => [...document.querySelectorAll('svg a')]
          .every((one) => { one.focus(); return document.activeElement === one; })"""
    )
    assert inside
    assert marks > 50
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    page.close()


def test_printed_pages_are_not_empty(browser: Browser, site: Path, kinds: list[str]) -> None:
    page = browser.new_page()
    page.emulate_media(media="print")
    for name in kinds:
        page.goto((site / name).as_uri())
        assert len(page.inner_text("main")) > 60, name
        assert page.locator(".top nav").is_hidden()
    assert len(page.pdf()) > 5000
    page.close()


def test_a_click_makes_another_version_the_base(browser: Browser, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "compare/write-heavy--db1--short_relaxed--postgres-17.html").as_uri())
    rows = "[...document.querySelectorAll('[data-metric=qps] tr[data-step]')]"
    rows += ".map((row) => [...row.cells].slice(1).map("
    before = page.evaluate(f"{rows}(cell) => Number(cell.dataset.v)))")
    page.locator("table.ladder thead button").nth(1).click()
    after = page.evaluate(f"{rows}(cell) => cell.textContent))")
    for old, new in zip(before, after, strict=True):
        assert new == [f"{ratio / old[1]:.2f}" for ratio in old]
    assert "base=" in page.url
    again = browser.new_page()
    again.goto(page.url)
    assert again.locator('[data-metric=qps] thead button[aria-pressed="true"]').get_attribute(
        "data-version"
    ) == page.locator("table.ladder thead button").nth(1).get_attribute("data-version")
    page.close()
    again.close()


@pytest.mark.slow("the page with most JavaScript, in a real browser")
def test_the_explorer_draws_what_its_table_says(browser: Browser, site: Path, kinds: list[str]) -> None:
    page = browser.new_page()
    page.goto((site / "series.html").as_uri())
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    nights = page.locator("#rows tbody tr")
    shown = nights.count()
    (older,) = re.findall(r"Show the (\d+) older", page.inner_text("#rows button.older"))
    page.click("#rows button.older")
    assert (nights.count(), page.locator("#rows button.older").count()) == (shown + int(older), 0)
    rows = page.evaluate(
        "[...document.querySelectorAll('#rows tbody tr[data-y]')].map((row) => Number(row.dataset.y))"
    )
    assert len(rows) > 20
    assert page.locator("#chart canvas").count() == 1
    # The page's own address: that of Playwright follows replaceState a moment later.
    first = page.evaluate("location.href")
    page.select_option("#metric", label="server CPU, µs/query")
    page.wait_for_function("() => document.getElementById('state').textContent.includes('server CPU')")
    assert page.evaluate("location.href") != first
    assert "to " not in page.inner_text("#rows tbody tr:first-child td:nth-child(6)"), "no interval of a cost"
    page.locator("#rows button.pick").nth(0).click()
    page.locator("#rows button.pick").nth(3).click()
    assert "The second is " in page.inner_text("#picked")
    page.close()


def test_the_explorer_says_how_sure_each_night_is(browser: Browser, site: Path, rich: Path) -> None:
    """Intervals and ratios as `compare` gives them; dropped rounds are named."""
    newest = sorted(path.stem for path in (site / "sessions").glob("db1n*.html"))[-1]
    with open_reader(rich) as history:
        options = CompareOptions(session=newest)
        (found,) = compare(history, parse_version(BASE), [parse_version(commit(NIGHTS))], options).contenders
    insert = next(step for step in found.steps if step.step == "insert")
    interval = insert.judged.interval
    assert interval is not None
    key = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, "insert", "qps")
    page = browser.new_page()
    page.goto((site / "series.html").as_uri() + f"#s={key}")
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    shown = page.inner_text("#rows tbody tr:first-child td:nth-child(6)").replace("−", "-")
    assert shown == f"{100 * (interval.low - 1):+.1f} to {100 * (interval.high - 1):+.1f} %"
    ratio = insert.judged.contender / insert.judged.base  # type: ignore[operator]
    drawn = page.get_attribute("#rows tbody tr:first-child", "data-y")
    assert float(drawn or 0) == pytest.approx(ratio, rel=3e-4)
    slowed = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, SLOWED, "qps")
    page.evaluate(f"location.hash = 's={slowed}'")
    page.wait_for_selector(f"html[data-ready='{slowed}']")
    assert "1 dropped round" in page.inner_text("#rows tbody tr:first-child")
    page.close()


def test_the_nights_of_all_boxes_are_read_at_once(browser: Browser, site: Path) -> None:
    """Boxes begin their nights at different times; a cursor over a day shows what each of them measured."""
    slowed = addresses.series_id("db1", "write-heavy", "short relaxed", BRANCH, SLOWED, "qps")
    page = browser.new_page()
    page.goto((site / "series.html").as_uri() + f"#s={slowed}&boxes=all")
    page.wait_for_selector(f"html[data-ready='{slowed}']", timeout=20_000)
    page.hover("#chart .u-over")
    values = page.locator("#chart .u-legend .u-series:not(:first-child) .u-value")
    assert values.count() == 2
    assert all(re.fullmatch(r"[+−]\d+\.\d %", text) for text in values.all_inner_texts())
    page.close()


@pytest.mark.slow("lists in a real browser, by keyboard")
def test_lists_are_sorted_and_filtered_by_keyboard(browser: Browser, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "sessions/index.html").as_uri())
    head = page.locator("th button", has_text="began")
    head.focus()
    page.keyboard.press("Enter")
    first = page.locator("tbody tr").first.inner_text()
    assert page.locator("th[aria-sort=ascending]").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("tbody tr").first.inner_text() != first
    page.goto((site / "changes/index.html").as_uri() + "#status=closed")
    assert page.locator("tbody tr:visible").count() == 0
    page.select_option("#filter-status", "open")
    assert page.locator("tbody tr:visible").count() == 1
    page.close()


@pytest.mark.slow("no text of a history runs in a real browser")
def test_hostile_text_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    import htpy as h

    from report.markup.frame import Page, dated, rendered
    from report.markup.parts import table
    from tests.history.handmade import NIGHT
    from tests.report.hostile import KINDS

    rows = [h.tr[h.th(scope="row")[text], h.td(title=text)[text]] for text in KINDS]
    body = table(("text", "again"), rows, caption=KINDS[0])
    (tmp_path / "a.html").write_text(
        dated(rendered(Page("a.html", KINDS[12], body, None)), NIGHT), encoding="utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "a.html").as_uri())
    assert page.evaluate("window.owned") is None
    assert page.locator("tbody tr").count() == len(KINDS)
    page.close()

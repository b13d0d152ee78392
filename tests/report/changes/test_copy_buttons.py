"""The commands at the top of a change's page, and the buttons that copy them, in a real browser."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from report import addresses
from runners.cli import parser
from tests.report.browser import chromium, served
from tests.report.parsed import parsed

REFUSED = """document.execCommand = () => false;
Object.defineProperty(navigator, 'clipboard', {value: {writeText: () => Promise.reject(new Error('no'))}});"""
"""A browser that copies no selection for a script, nor lets scripts write to its clipboard."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(site: Path) -> str:
    (page,) = [path for path in (site / "changes").glob("*.html") if path.stem != "index"]
    return addresses.change(page.stem)


def pasted(page: Page) -> str:
    """What the clipboard holds, as a person sees it who pastes it."""
    page.evaluate(
        """() => { const field = document.createElement('textarea');
        field.id = 'pasted'; document.body.append(field); field.focus(); }"""
    )
    page.keyboard.press("Control+V")
    text = page.input_value("#pasted")
    page.evaluate("() => document.getElementById('pasted').remove()")
    return text


@pytest.mark.parametrize("is_served", [False, True])
def test_each_command_is_copied_from_disk_and_served(
    browser: Browser, site: Path, address: str, is_served: bool
) -> None:
    with served(site) as origin:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{origin}/{address}" if is_served else (site / address).as_uri())
        for name in ("Acknowledge", "Reproduce"):
            button = page.get_by_role("button", name=f"Copy: {name}")
            box = button.bounding_box()
            assert box is not None
            assert box["y"] < 900, "not on the first screen"
            shown = page.get_by_role("group", name=name).inner_text()
            button.focus()
            page.keyboard.press("Enter")
            block = page.locator(".commands", has=page.get_by_role("heading", name=name))
            block.get_by_role("status").filter(has_text="copied").wait_for()
            assert pasted(page) == shown
        page.close()


def test_what_the_browser_does_not_copy_is_selected(browser: Browser, site: Path, address: str) -> None:
    page = browser.new_page()
    page.add_init_script(REFUSED)
    page.goto((site / address).as_uri())
    page.get_by_role("button", name="Copy: Acknowledge").click()
    page.get_by_text("selected: copy it with the keyboard").wait_for()
    assert page.evaluate("getSelection().toString()").startswith("./tidemark history acknowledge")
    page.close()


def test_without_scripts_the_commands_are_text(browser: Browser, site: Path, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / address).as_uri())
    assert page.get_by_role("button", name="Copy").count() == 0
    assert "./tidemark run --suite" in page.get_by_role("group", name="Reproduce").inner_text()
    context.close()


def test_the_commands_are_accepted(site: Path, address: str) -> None:
    text = parsed(site / address).text
    fingerprint = Path(address).stem
    line = f"./tidemark history acknowledge {fingerprint} --reason 'why it is accepted'"
    assert line in text
    chosen = parser().parse_args(shlex.split(line)[1:])
    assert chosen.reason == "why it is accepted"

"""A real browser for tests: Debian's Chromium, driven by Playwright. Tests without it are skipped."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Request, sync_playwright

from tests.programs import AXE, required_package


@dataclass
class Seen:
    """What a page did that no page may do."""

    problems: list[str] = field(default_factory=list)

    def watch(self, page: Page, origin: str) -> None:
        """Note requests to elsewhere, errors, and violations of the content policy from now on."""

        def requested(request: Request) -> None:
            if not request.url.startswith((origin, "data:", "about:")):
                self.problems.append(f"asked for {request.url}")

        def failed(request: Request) -> None:
            # The icon is asked for after a page has loaded: a reload right then gives that request up.
            if request.failure != "net::ERR_ABORTED":
                self.problems.append(f"failed: {request.url}")

        page.on("request", requested)
        page.on("requestfailed", failed)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on(
            "console",
            lambda said: (
                self.problems.append(f"{said.type}: {said.text}")
                if said.type in ("error", "warning")
                else None
            ),
        )


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium; skip the test where there is none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium: ./tidemark test installs it with apt")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except Error as error:
            pytest.skip(f"chromium does not start here: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the name that it overrides
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; give its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page: rule and elements."""
    # Playwright's evaluation is not subject to the page's content policy.
    page.evaluate(required_package(AXE).read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{violation['id']}: {[node['html'][:160] for node in violation['nodes'][:3]]}" for violation in found
    ]


def sideways(page: Page) -> list[str]:
    """Return the elements that make a page wider than its window, besides what scrolls by itself."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.querySelectorAll('body *')]
          .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
          .filter((one) => !one.closest('.scroll, .plot, pre'))
          .slice(0, 5).map((one) => `${one.tagName} ${one.className}`)"""
    )
    return found

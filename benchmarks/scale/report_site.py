"""Time, memory and size of the report site, and how fast a browser shows it.

The large history has 2,000 sessions, as many as a nightly service writes in years on two boxes; those of the
last nights have rounds, as after `history prune`. Pages are loaded from disk by Debian's Chromium, beside an
empty page in the same run.
"""

import gzip
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.output.figures import Figure
from benchmarks.scale.years import FIRST_NIGHT, HistoryScale, add_night, write
from build.home import ROOT
from history.changes import repository
from history.changes.level_shift import Direction, Shift, ShiftOutcome
from history.open import open_store
from history.series.series import key_of, nights_of, series_query
from history.store.records import ChangeStatus
from report import addresses
from suites.metrics import QPS

SCALE = HistoryScale(nights=1000, boxes=2, branches=16, steps=40, nights_with_rounds=5)
"""10,240 series."""

TEN_BOXES = HistoryScale(nights=1000, boxes=10, branches=2, steps=1, nights_with_rounds=1)
LADDER = HistoryScale(nights=1, boxes=1, branches=31, steps=40, nights_with_rounds=1)
SEED = 20261122
LOADS = 20
FIRST_PAGES = ("index.html", "changes/index.html", "series.html", "help.html")

WRITER = """
import resource, sys, time
from pathlib import Path
from build.progress import Silent
from history.open import open_reader
from report.writing.site import SiteOptions, write_site
began = time.perf_counter()
with open_reader(sys.argv[1]) as history:
    summary = write_site(history, SiteOptions(Path(sys.argv[2])), Silent())
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, summary.changed)
"""


def _plant_change(path: Path) -> str:
    """Insert a change of throughput on all boxes, 100 nights before the last one; return its fingerprint."""
    with open_store(path) as store:
        with store.database.reading() as connection:
            contender = f"postgres@{13 + TEN_BOXES.branches - 1}"
            outcomes = []
            for row in connection.execute(series_query(branch=contender, metric=QPS)).mappings().all():
                key = key_of(row)
                nights = nights_of(connection, key.environment, key.branch)
                before, after = nights[-100], nights[-99]
                where = (row["id"], key.environment, key.branch, key.step, key.metric)
                levels = (1.0, 0.9, 0.88, 0.92, 0.999)
                outcomes.append(ShiftOutcome(Shift(*where, before, after, after, *levels)))
        with store.database.writing() as connection:
            when = FIRST_NIGHT + timedelta(days=TEN_BOXES.nights)
            repository.insert_change(
                connection, "be9c4", outcomes, Direction.WORSE, ChangeStatus.OPEN, None, when
            )
    return "be9c4"


def _write(history: Path, site: Path) -> tuple[float, float, int]:
    """Write a site in a process of its own; return seconds, bytes of memory, and files written."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(history), str(site)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, memory, changed = done.stdout.split()
    return float(seconds), float(memory), int(changed)


def site_figures(folder: Path) -> list[Figure]:
    """Return time, memory and size of the site of the large history, and of its renewal."""
    print(f"writing {SCALE.values:,} values, seed {SEED}", file=sys.stderr)
    write(folder / "large.db", SCALE, SEED)
    print("writing the site of the large history from nothing", file=sys.stderr)
    seconds, memory, _ = _write(folder / "large.db", folder / "large")
    files = [path for path in (folder / "large").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    add_night(folder / "large.db", SCALE, SEED)
    before = {path: path.stat().st_mtime_ns for path in files}
    print("renewing it after one more night", file=sys.stderr)
    again, _, changed = _write(folder / "large.db", folder / "large")
    untouched = sum(path.exists() and path.stat().st_mtime_ns == when for path, when in before.items())
    return [
        Figure("series", SCALE.values / SCALE.nights, ""),
        Figure("written from nothing", seconds, "s", at_most=300, note=f"{len(files):,} files"),
        Figure("memory", memory / 2**20, "MiB", at_most=1024),
        Figure("renewed after one more night", again, "s", at_most=10, note=f"{changed:,} files written"),
        Figure("files that stay as they are", 100 * untouched / len(before), "%"),
        Figure("size without flame graphs", size / 1e6, "MB", at_most=120),
        *_weights(folder / "large"),
    ]


def _weights(site: Path) -> list[Figure]:
    """Return the compressed size of a first page with all that it loads at once."""
    figures = []
    for name in FIRST_PAGES:
        text = (site / name).read_text(encoding="utf-8")
        links = re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', text)
        files = {site / name, *((site / name).parent / link for link in links)}
        weight = sum(len(gzip.compress(path.resolve().read_bytes())) for path in files)
        figures.append(Figure(f"weight of {name}, compressed", weight / 1000, "kB", at_most=150))
    return figures


def page_figures(folder: Path) -> list[Figure]:
    """Return how much longer than an empty page Chromium takes to show pages from disk."""
    program = shutil.which("chromium")
    if program is None:
        print("there is no chromium: apt-get install chromium", file=sys.stderr)
        return [Figure("pages loaded by chromium", 0, "", at_least=1, note="there is no chromium")]
    from playwright.sync_api import sync_playwright  # a package of the tests

    print("writing the histories of ten boxes and of thirty versions, and their sites", file=sys.stderr)
    write(folder / "boxes.db", TEN_BOXES, SEED)
    write(folder / "ladder.db", LADDER, SEED)
    fingerprint = _plant_change(folder / "boxes.db")
    for name in ("boxes", "ladder"):
        _write(folder / f"{name}.db", folder / name)
    (folder / "empty.html").write_text("<!doctype html><title>empty</title><p>empty")
    (ladder,) = [path for path in (folder / "ladder/compare").iterdir() if path.name != "index.html"]
    pages = (
        ("index", folder / "boxes/index.html", "", "", 0.5),
        ("a change's page", folder / "boxes" / addresses.change(fingerprint), "", "", 0.5),
        (
            "a series of 1,000 nights on ten boxes",
            folder / "boxes/series.html",
            "#boxes=all",
            "html[data-ready]",
            0.5,
        ),
        ("the ladder of 30 versions by 40 steps", ladder, "", "", 1.0),
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        figures = []
        for name, path, view, ready, most in pages:
            seconds = _beside(browser, folder / "empty.html", path.as_uri() + view, ready)
            figures.append(
                Figure(f"ready: {name}", seconds, "s", at_most=most, note=f"median of {LOADS} loads")
            )
        browser.close()
    return figures


def _beside(browser: Any, empty: Path, address: str, ready: str) -> float:
    """Return how much longer a page takes than an empty one, in seconds: the difference of medians."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})

    def load(what: str, until: str) -> float:
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(what, wait_until="load")
        if until:
            page.wait_for_selector(until, state="attached")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.perf_counter() - began

    loads: Sequence[Callable[[], float]] = (lambda: load(empty.as_uri(), ""), lambda: load(address, ready))
    times = [[timed() for timed in loads] for _ in range(LOADS)]
    page.close()
    return median(both[1] for both in times) - median(both[0] for both in times)

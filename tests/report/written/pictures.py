"""The pictures of the documents: .venv/bin/python -m tests.report.written.pictures makes them anew.

A picture shows the top of a page as a browser opens it, that of the study of larger tables a chart. Debian's
Chromium is needed.
"""

import hashlib
import sys
import tempfile
from pathlib import Path

from build.home import ROOT
from build.progress import Silent
from history.changes import repository
from history.changes.report import ChangeReport
from history.open import open_reader, open_store
from report import addresses
from report.values.commits import Commits, CommitsBetween, ListedCommit
from report.writing.site import SiteOptions, write_site
from runners.reporting.bisects import read_bisects
from tests.report.browser import chromium
from tests.report.rich import BRANCH, SLOWED, RichHistory, record_bisect

FOLDER = ROOT / "docs/pictures"
WIDTH = 1080
STUDIED = "f725bd70"
NIGHT = "db1n046"
DRAWN_MS = 500
"""After which a script has drawn its chart."""

SUBJECTS = (
    "Read a page of an index once for all tuples of a group",
    "Count the buffers of a parallel vacuum",
    "Speed up the search for a free page",
    "Check the length of a replication slot's name",
    "Remove a lock that nobody takes any more",
    "Sort the attributes of an index tuple before it is formed",
    "Plan a semijoin without a unique step",
    "Reject a snapshot of another database",
    "Keep the pages of a sequence in the ring",
)
"""Of made-up commits, oldest first; that of the culprit is the sixth."""


def main() -> int:
    """Write all pictures; return 0."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        site, fingerprint = _written(Path(name))
        pages = {
            "index": (addresses.INDEX, 620),
            "change": (addresses.change(fingerprint), 900),
            "branch": (addresses.branch(BRANCH), 760),
            "ladder": (addresses.ladder("write-heavy", "db1", "short relaxed", "postgres@17"), 620),
            "trend": (addresses.TREND, 900),
            "series": (addresses.SERIES, 640),
            "session": (addresses.session(NIGHT), 700),
            "step": (addresses.step(NIGHT, SLOWED), 860),
        }
        for picture, (path, height) in pages.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": height})
            page.goto((site / path).as_uri())
            page.wait_for_timeout(DRAWN_MS)
            page.screenshot(path=str(FOLDER / f"{picture}.png"))
            page.close()
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto((_study(Path(name)) / addresses.step(STUDIED, "write-only")).as_uri())
        page.wait_for_timeout(DRAWN_MS)
        chart = page.locator("figure", has_text="The same seconds").first
        chart.screenshot(path=str(FOLDER / "seconds.png"))
    return 0


def _study(folder: Path) -> Path:
    """Write the site of the study of larger tables."""
    with open_reader(ROOT / "docs/results/write-heavy-io.db.gz") as history:
        write_site(history, SiteOptions(folder / "study"), Silent())
    return folder / "study"


def _written(folder: Path) -> tuple[Path, str]:
    """Write the history and its site; return the site, and the fingerprint of the change."""
    history, site = folder / "rich.db", folder / "site"
    rich = RichHistory(history)
    rich.write()
    with open_reader(history) as reader, reader.database.reading() as connection:
        fingerprint = repository.load(connection)[0].fingerprint
    record_bisect(history, fingerprint, rich.moment, _named)
    with open_store(history) as store:
        write_site(store, SiteOptions(site, bisects=read_bisects(store), commits=_commits), Silent())
    return site, fingerprint


def _named(number: int) -> tuple[str, str]:
    return hashlib.sha1(SUBJECTS[number - 1].encode()).hexdigest(), SUBJECTS[number - 1]


def _commits(report: ChangeReport) -> Commits:
    listed = [
        ListedCommit(*_named(number), "A. Committer", "2026-04-06", ("src/backend/access",), 1, "", "")
        for number in range(2, 10)
    ]
    typo = ("83b0f6c4417e".ljust(40, "0"), "Fix a typo in the documentation of ANALYZE", "A. Committer")
    reason = "touches only documentation"
    listed.append(ListedCommit(*typo, "2026-04-06", ("doc/src/sgml/ref/analyze.sgml",), 1, reason, ""))
    return CommitsBetween(tuple(reversed(listed)), len(listed))


if __name__ == "__main__":
    sys.exit(main())

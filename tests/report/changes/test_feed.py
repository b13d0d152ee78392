"""The feed of changes by the rules of RFC 4287, and the pictures of changes as other pages show them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from build.home import ROOT
from build.progress import Silent
from history.changes import repository
from history.changes.report import report_changes
from history.open import open_reader, open_store
from report import addresses
from report.pages.change.feed import change_feed
from report.values.clearance import Clearance
from report.values.commits import NoCommits
from report.writing.site import SiteOptions, write_site
from runners.nightly.plan import Plan
from runners.nightly.site_options import of_plan
from tests.history.handmade import NIGHT
from tests.history.watched import record_regression
from tests.report.browser import chromium
from tests.report.parsed import parsed
from tests.runners.nightly.test_night import PLAN
from tests.suites.golden import require_golden

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"
GOLDEN = ROOT / "tests/golden/report"
HOSTILE = "<script>window.owned=1</script> & ]]> \x1b[31m \u202e"


@pytest.fixture(scope="module")
def regressed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of one change."""
    path = tmp_path_factory.mktemp("regressed") / "history.db"
    record_regression(path, judged=True)
    return path


def written(history: Path, folder: Path, options: SiteOptions | None = None) -> Path:
    with open_reader(history) as reader:
        write_site(reader, options or SiteOptions(folder), Silent(), clock=lambda: NIGHT)
    return folder


def require_atom(text: str) -> ElementTree.Element:
    """Fail unless a feed has what RFC 4287 demands in sections 4.1.1, 4.1.2, 4.2.6, 4.2.7 and 3.3."""
    feed = ElementTree.fromstring(text)
    assert feed.tag == f"{ATOM}feed"
    assert [author.findtext(f"{ATOM}name") for author in feed.findall(f"{ATOM}author")] == ["Tidemark"]
    whole = [feed, *feed.findall(f"{ATOM}entry")]
    for part in whole:
        for name in ("id", "title", "updated"):
            assert len(part.findall(f"{ATOM}{name}")) == 1, name
        assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", part.findtext(f"{ATOM}id") or "")
        times = [part.findtext(f"{ATOM}{name}") for name in ("updated", "published")]
        for time in filter(None, times):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", time)
            datetime.fromisoformat(time)
        kinds = [(link.get("rel"), link.get("type")) for link in part.findall(f"{ATOM}link")]
        assert len(kinds) == len({*kinds})
        assert ("alternate", "text/html") in kinds
    identities = [part.findtext(f"{ATOM}id") for part in whole]
    assert len(identities) == len({*identities})
    for entry in whole[1:]:
        summary = entry.find(f"{ATOM}summary")
        assert summary is not None
        assert summary.get("type", "text") == "text"
        assert len(summary) == 0
    return feed


def test_the_feed_has_every_change_and_its_links_lead_to_pages(regressed: Path, tmp_path: Path) -> None:
    site = written(regressed, tmp_path / "site")
    text = (site / addresses.FEED).read_text(encoding="utf-8")
    require_golden("feed.atom", text, GOLDEN)
    feed = require_atom(text)
    where = (site / addresses.FEED).as_uri()
    for link in feed.iter(f"{ATOM}link"):
        assert Path(urljoin(where, link.get("href", "")).removeprefix("file://")).is_file()
    for page in site.rglob("*.html"):
        (alternate,) = [given for tag, given in parsed(page).tags if given.get("rel") == "alternate"]
        assert alternate["type"] == "application/atom+xml"
        assert (page.parent / alternate["href"]).resolve() == (site / addresses.FEED).resolve()


def test_ids_stay_and_links_have_the_address_of_the_plan(regressed: Path, tmp_path: Path) -> None:
    plan = Plan.model_validate(PLAN | {"site": {"address": "https://perf.example.org/t/"}})
    own, planned = SiteOptions(tmp_path / "own"), of_plan(SiteOptions(tmp_path / "planned"), plan)
    feeds = [
        require_atom((written(regressed, options.folder, options) / addresses.FEED).read_text())
        for options in (own, planned)
    ]
    names = [[found.text for found in feed.iter(f"{ATOM}id")] for feed in feeds]
    assert names[0] == names[1]
    base = feeds[1].get("{http://www.w3.org/XML/1998/namespace}base")
    assert base == "https://perf.example.org/t/changes/"
    assert feeds[0].get("{http://www.w3.org/XML/1998/namespace}base") is None


def test_a_feed_without_changes_is_one_too(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db"):
        pass
    site = written(tmp_path / "history.db", tmp_path / "site")
    assert require_atom((site / addresses.FEED).read_text()).findall(f"{ATOM}entry") == []


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def test_pictures_stand_alone_and_keep_their_addresses(
    browser: Browser, regressed: Path, tmp_path: Path
) -> None:
    site = written(regressed, tmp_path / "site")
    (fingerprint,) = [path.stem for path in (site / "changes").glob("*.html") if path.stem != "index"]
    pictures = sorted((site / "changes").glob("*.svg"))
    assert (site / addresses.picture(fingerprint)) in pictures
    linked = {Path(link).name for link in parsed(site / addresses.change(fingerprint)).links}
    assert {picture.name for picture in pictures} <= linked
    assert len(pictures) > 1
    for picture in pictures:
        root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
        assert root.tag == f"{SVG}svg"
        title, desc = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
        assert title
        assert "%" in str(desc)
        assert not [given for part in root.iter() for given in part.attrib if given.endswith("href")]
        assert picture.stat().st_size < 40_000
    page = browser.new_page()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(pictures[0].as_uri())
        ground, ink = page.evaluate(
            "['.paper', '.headline'].map((name) => getComputedStyle(document.querySelector(name)).fill)"
        )
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 31, 38)"}[scheme]
        assert ink == {"light": "rgb(22, 33, 43)", "dark": "rgb(228, 233, 236)"}[scheme]
    page.close()


def test_a_hostile_text_is_text_in_the_feed(regressed: Path) -> None:
    with open_reader(regressed) as history, history.database.reading() as connection:
        (report,) = report_changes(connection, repository.load(connection))
    named = replace(report, change=replace(report.change, branch=HOSTILE))
    clearance = Clearance(False, "")
    text = change_feed([(named, NoCommits("none"))], clearance, "site", "https://x.org/'><b>", NIGHT)
    feed = require_atom(text)
    assert "<script>window.owned=1</script> & ]]>" in (feed.findtext(f"{ATOM}entry/{ATOM}title") or "")

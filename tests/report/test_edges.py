"""Histories that lack something: nothing at all, one session, one version, a pruned or merged one, tables."""

import re
import resource
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from build.home import ROOT
from history.open import open_store
from history.store.schema import points, series
from history.transfer.format_detection import open_histories
from history.transfer.merging import merge
from history.transfer.pruning import prune
from report import addresses
from report.markup.formats import amount
from runners.cli import main
from tests.history.comparison.findings.test_background import blocks_of
from tests.history.handmade import NIGHT, record_steps, session_start
from tests.history.watched import record_regression
from tests.report.conftest import write
from tests.report.parsed import dead_links, pages_of, parsed

FACTS = ROOT / "tests/golden/facts"


def site_of(history: Path) -> Path:
    folder = history.with_suffix(".site")
    write(history, folder)
    assert list(dead_links(folder)) == []
    return folder


def test_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    open_store(path).close()
    site = site_of(path)
    assert "nothing was measured yet" in parsed(site / "index.html").text
    assert len(pages_of(site)) == 10
    for page in pages_of(site):
        if page.name != "help.html":
            assert "yet" in parsed(page).text, page


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"insert": {"postgres@18.6": [1000.0, 1010.0, 990.0]}}, "it measured one version, postgres@18.6"),
        (
            {"insert": {"postgres@17.11": [1000.0], "postgres@18.6": [990.0]}},
            "1 paired round: a verdict needs 3",
        ),
        (
            {"insert": {"postgres@17.11": [1000.0] * 3, "postgres@18.6": [0.0] * 3}},
            "the server did not start",
        ),
    ],
)
def test_one_session(tmp_path: Path, steps: dict[str, dict[str, list[float]]], said: str) -> None:
    path = tmp_path / "h.db"
    with open_store(path, clock=lambda: NIGHT) as store:
        record_steps(store, session_start("only"), steps)
    site = site_of(path)
    assert said in " ".join(parsed(site / "sessions/only.html").text.split())
    assert (site / "sessions/only/insert.html").is_file()
    if len(steps["insert"]) == 1:
        assert (
            "No session has both a base and another version yet" in parsed(site / "compare/index.html").text
        )


def test_a_session_of_long_mode_has_blocks_on_its_pages(tmp_path: Path) -> None:
    path, rates = tmp_path / "h.db", {"postgres@17.11": [1000.0, 990.0], "postgres@18.6": [980.0, 0.0]}
    with open_store(path, clock=lambda: NIGHT) as store:
        record_steps(store, replace(session_start("only"), options={"mode": "long"}), {"insert": rates})
    site = site_of(path)
    for page in (site / "sessions/only.html", site / "sessions/only/insert.html"):
        assert "block" in parsed(page).text
        assert re.findall(r"\brounds?\b", page.read_text(), re.IGNORECASE) == []
    with open_store(path) as store:
        prune(store, NIGHT + timedelta(days=50))
    write(path, site)
    for page in (site / "sessions/only.html", site / "sessions/only/insert.html"):
        assert re.findall(r"\brounds?\b", page.read_text(), re.IGNORECASE) == []


def test_blocks_that_do_not_count_are_told_where_all_are_drawn(tmp_path: Path) -> None:
    blocks_of(tmp_path, "long")
    (file,) = site_of(tmp_path / "history.db").glob("sessions/*/update.html")
    page = parsed(file)
    remarks = {row[0]: row[-1] for row in page.rows if re.fullmatch(r"(block|other) .*", row[0])}
    assert {name: remark for name, remark in remarks.items() if remark} == {
        "block 3": "left out, autovacuum",
        "block 4": "left out, after autovacuum",
        "block 9": "left out, autovacuum",
        "block 10": "left out, after autovacuum",
        "other blocks": "the verdict's interval",
    }
    assert "ratio of each block, and of all but the 4 that autovacuum reached" in page.text


def test_a_pruned_session_keeps_its_addresses_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    record_regression(path, judged=True)
    site = site_of(path)
    before = {page.relative_to(site) for page in pages_of(site)}
    with open_store(path) as store:
        prune(store, NIGHT + timedelta(days=50))
    write(path, site)
    assert before <= {page.relative_to(site) for page in pages_of(site)}
    assert "its rounds were pruned" in parsed(site / "sessions/night-3.html").text
    kept = parsed(site / "sessions/night-3.html")
    assert "What its night kept" in kept.text
    with open_store(path) as store, store.database.reading() as connection:
        query = select(series.c.step, series.c.branch, points.c.value).where(
            points.c.series_id == series.c.id, series.c.metric == "qps", points.c.session_id == 4
        )
        values = {(step, branch): value for step, branch, value in connection.execute(query)}
    rows = {row[0]: row[1:] for row in kept.rows}
    for step in ("insert", "delete"):
        assert rows[step] == [amount(values[step, branch]) for branch in rows["step"]]
    assert (site / "sessions/night-3/insert.html").is_file()
    assert list(dead_links(site)) == []
    # Written from nothing the page of the session is there too; of its steps, those that a change is about.
    again = tmp_path / "again"
    write(path, again)
    assert "its rounds were pruned" in parsed(again / "sessions/night-3.html").text
    assert not (again / "sessions/night-3/insert.html").exists()
    assert list(dead_links(again)) == []


def test_links_of_a_change_stay_when_a_merged_and_pruned_history_is_written_from_nothing(
    tmp_path: Path,
) -> None:
    first, both = tmp_path / "one.db", tmp_path / "both.db"
    record_regression(first, judged=True)
    site = site_of(first)
    (page,) = (path for path in (site / "changes").glob("*.html") if path.name != "index.html")
    with open_store(both) as store:
        with open_histories([str(first)]) as coming:
            merge(store, coming.sources)
        prune(store, NIGHT + timedelta(days=400))
    again = site_of(both)
    assert (again / "changes" / page.name).is_file()
    for night in ("night-89", "night-90"):
        assert (site / f"sessions/{night}/insert.html").is_file()
        kept = parsed(again / f"sessions/{night}/insert.html")
        assert "The rounds of this step were pruned" in kept.text
        assert [row[0] for row in kept.rows] == ["branch", "postgres@17", "postgres@REL_18_STABLE"]


def test_addresses_stay_after_a_merge(tmp_path: Path) -> None:
    """The ids of the database change, and no address has one."""
    first, other, both = (tmp_path / name for name in ("one.db", "other.db", "both.db"))
    record_regression(first, judged=True)
    with open_store(other, clock=lambda: NIGHT - timedelta(days=400)) as store:
        record_steps(
            store,
            session_start("earlier"),
            {"insert": {"postgres@17.11": [1.0] * 3, "postgres@18.6": [1.0] * 3}},
        )
    with open_store(both) as store:
        for path in (other, first):
            with open_histories([str(path)]) as coming:
                merge(store, coming.sources)
    before, after = site_of(first), site_of(both)
    names = {page.relative_to(before) for page in pages_of(before)}
    assert names <= {page.relative_to(after) for page in pages_of(after)}
    linked = {
        given["href"]
        for tag, given in parsed(before / "branches/postgres-REL_18_STABLE.html").tags
        if tag == "a" and "series.html#s=" in given.get("href", "")
    }
    assert linked
    assert linked <= set(parsed(after / "branches/postgres-REL_18_STABLE.html").links)


def test_the_ladder_of_the_published_tables_is_the_published_one(tmp_path: Path) -> None:
    from tests.history.transfer.test_facts import BASE, CONTENDERS, PUBLISHED, imported

    path = tmp_path / "facts.db"
    imported(path, base=BASE).close()
    site = site_of(path)
    (ladder,) = [page for page in (site / "compare").iterdir() if page.name != "index.html"]
    page = parsed(ladder)
    # One value of each version: a grey cell must not be taken for one that was judged as unchanged.
    assert re.search(r"(\d+) of \1 ratios have no verdict", ladder.read_text(encoding="utf-8"))
    heads = [given["data-version"] for tag, given in page.tags if tag == "button"]
    assert heads == [BASE, *CONTENDERS]
    rows = {row[0]: row[1:] for row in page.rows}
    for step, ratios in PUBLISHED.items():
        assert [float(cell.strip("▾▴=? ")) for cell in rows[f"{step}_range=100"]] == [1.0, *ratios], step


def test_help_has_every_term_of_the_glossary(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    open_store(path).close()
    site = site_of(path)
    ids = parsed(site / "help.html").ids
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = [line.split("**")[1] for line in glossary.splitlines() if line.startswith("- **")]
    assert len(terms) > 100
    assert {addresses.anchor(term) for term in terms} <= ids


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    path = tmp_path / "h.db"
    record_regression(path, judged=True)
    assert main(["report", "--history", str(path)]) == 0
    assert f"{tmp_path}/home/site/index.html: " in capsys.readouterr().out
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine").touch()
    assert main(["report", "--history", str(path), "--out", str(tmp_path / "other")]) == 2
    assert "choose an empty or a new folder" in capsys.readouterr().err
    assert main(["report", "--history", str(tmp_path / "none.db")]) == 2


def test_a_file_that_cannot_be_written_is_exit_code_2_and_the_old_site_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit on the size of files fails in the middle of one, as a full disk does."""
    path, site = tmp_path / "h.db", tmp_path / "site"
    with open_store(path, clock=lambda: NIGHT) as store:
        record_steps(
            store,
            session_start("only"),
            {"insert": {"postgres@17.11": [1.0] * 3, "postgres@18.6": [1.0] * 3}},
        )
    words = ["report", "--history", str(path), "--out", str(site)]
    assert main(words) == 0
    largest = max((file for file in site.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    size = largest.stat().st_size
    largest.unlink()  # it is written again
    before = {file: file.read_bytes() for file in site.rglob("*") if file.is_file()}
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1000, usual[1]))
    try:
        assert main(words) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert "the old one is whole" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in site.rglob("*") if file.is_file()} == before
    assert main(words) == 0
    assert largest.is_file()

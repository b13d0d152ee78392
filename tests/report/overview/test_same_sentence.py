"""The first sentence of a site is what compare.py says of the same sessions, and has its exit code's sign."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, select

import compare
from build.home import ROOT
from history.open import open_store
from history.store.schema import nights, points, sessions
from runners import cli
from tests.history.handmade import record_steps, session_start
from tests.report.histories.single import BASE, NEW
from tests.report.overview.test_first_screen import index, news, words

RESULTS = sorted((ROOT / "docs/results").glob("*.db.gz"))
VERDICTS = re.compile(
    r'<a href="sessions/(\w+)\.html">(\S+) against ([^ ,<]+)[^<]*</a>: (.*?)(?=; <a|; \d+ more| \(too few)'
)
"""A comparison in the sentence: the session, both versions, and what it says of them."""


@pytest.mark.slow("pages and compare say the same of a session")
@pytest.mark.parametrize("history", RESULTS, ids=lambda path: path.name)
def test_the_page_says_what_compare_says(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "--history", str(history), "--out", str(tmp_path)]) == 0
    require_same(history, tmp_path, capsys)


def require_same(history: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless the sentence of a site has what compare prints of each session that it names."""
    (sentence,) = re.findall(r'<p class="sentence.*?</p>', index(site), re.DOTALL)
    named = sentence[: sentence.index("(too few nights")].count("<a ")
    found = VERDICTS.findall(sentence)
    assert len(found) == named > 0
    codes = set()
    capsys.readouterr()
    for uid, contender, base, said in found:
        codes.add(compare.main([base, contender, "--session", uid, "--history", str(history)]))
        assert f"{words(said)}." in " ".join(capsys.readouterr().out.split())
    assert (news(site)[0] == "worse") is (1 in codes)
    assert "no regression" not in sentence
    assert 'class="heat' not in index(site), "a mean has no verdict, and so no colour"


def test_a_session_by_hand_with_rounds_is_no_night_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "h.db"
    by_hand = replace(session_start("only"), options={"threads": 8, "versions": [BASE, NEW]})
    past = "postgres@git:000000000007"
    told = {"branches": {past: "postgres@master"}, "stands_at": {past: "2025-07-07T00:00:00.000Z"}}
    backfill = replace(session_start("past"), options={"threads": 8, **told})
    base = [1000.0, 1002.0, 999.0]
    with open_store(history) as store:
        record_steps(store, backfill, {"insert": {BASE: base, past: base}})
        record_steps(store, by_hand, {"insert": {BASE: base, NEW: [900.0, 901.0, 899.0]}})
        with store.database.writing() as connection:
            (own,) = connection.execute(select(sessions.c.id).where(sessions.c.uid == "only")).one()
            for table in (points, nights):
                connection.execute(delete(table).where(table.c.session_id == own))
    cli.main(["report", "--history", str(history), "--out", str(tmp_path / "site")])
    require_same(history, tmp_path / "site", capsys)


def test_an_import_without_a_base_says_how_it_gets_one(tmp_path: Path) -> None:
    table, history = tmp_path / "runs.csv", tmp_path / "h.db"
    table.write_text(
        "step,version,metric,value\ninsert,postgres@17.11,qps,100\ninsert,postgres@18.6,qps,90\n"
    )
    given = ["--machine", "m", "--when", "2025-11", "--suite", "s", "--history", str(history)]
    assert cli.main(["history", "import", str(table), *given]) == 0
    cli.main(["report", "--history", str(history), "--out", str(tmp_path / "site")])
    assert news(tmp_path / "site")[1] == (
        "? Session of 2025-11-01: imported results are compared once they have a base: "
        "./tidemark history import --base VERSION."
    )

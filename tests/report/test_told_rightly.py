"""What pages say of culprits, bases, engines, missing values and news, read as people read it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

import compare
from build.home import ROOT
from build.progress import Silent
from history.changes.report import ChangeReport
from history.open import open_store
from history.store.records import SessionStatus
from history.store.schema import bisects, sessions
from report.values.commits import CommitsBetween, ListedCommit
from report.writing.site import SiteOptions, write_site
from runners.reporting.bisects import read_bisects
from suites.metrics import INSTRUCTIONS
from tests.history.handmade import record_steps, run_record, session_start
from tests.history.watched import record_regression
from tests.report.histories.failing import record_failing
from tests.report.overview.test_first_screen import cards, index, news, site_of, words

ENGINES = ROOT / "docs/results/write-heavy-engines.db.gz"


def page(site: Path, path: str) -> str:
    return (site / path).read_text(encoding="utf-8")


def the_one(site: Path, folder: str) -> str:
    (found,) = (site / folder).glob("[0-9a-f]*.html")
    return found.read_text(encoding="utf-8")


def always(commits: CommitsBetween) -> Callable[[ChangeReport], CommitsBetween]:
    """What is asked for the commits of a change, which are these."""
    return lambda report: commits


def test_two_engines_differ_and_none_has_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main(["postgres@18.3", "mysql@9.7.2", "--history", str(ENGINES)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "1 trade, 8 worse, 0 better, 0 unchanged, 1 inconclusive; worst: update-one 0.24 (" in said
    assert "regression" not in said
    with open_store(tmp_path / "h.db") as store:
        rounds = {"postgres@18.6": [1000.0, 1002.0, 999.0], "mysql@8.4.6": [500.0, 501.0, 499.0]}
        start = replace(session_start("only"), options={"versions": list(rounds)})
        record_steps(store, start, {"insert": rounds, "delete": dict.fromkeys(rounds, [9.0] * 3)})
    site = site_of(tmp_path / "h.db")
    assert "1 worse, 0 better, 1 unchanged, 0 inconclusive; worst: insert 0.50 (" in news(site)[1]
    ((_, card),) = cards(site)
    assert "insert: worse" in words(card)
    for path in ("index.html", "sessions/only.html"):
        told = page(site, path).partition('<ul class="legend')[0]
        assert "regression" not in words(told)


def test_a_patched_version_is_compared_with_itself_without_the_patch(tmp_path: Path) -> None:
    """As after the demo: counted passes of two releases, and of the newer one with a patch."""
    versions = {"postgres@17.11": 1000.0, "postgres@18.6": 1064.0, "postgres@18.6#planted": 1107.0}
    options = {"exact": {"tool": "valgrind", "passes": 4, "when": "only"}, "versions": list(versions)}
    with open_store(tmp_path / "h.db") as store:
        session = store.start_session(replace(session_start("counted", 4), options=options))
        for version, count in versions.items():
            for number in range(1, 5):
                values = {INSTRUCTIONS: count + number / 10}
                store.record_run(session, run_record(values, version=version, repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
    site = site_of(tmp_path / "h.db")
    for text in (index(site), page(site, "sessions/counted.html")):
        assert "postgres@18.6#planted against postgres@18.6" in words(text)
        assert "postgres@18.6 against postgres@17.11" in words(text)
        assert "#planted against postgres@17.11" not in words(text)
    assert "most: insert 1.040 (" in news(site)[1]


def test_a_bisect_links_its_culprit(site: Path) -> None:
    link = '<a href="https://github.com/postgres/postgres/commit/000000000000'
    for path in ("bisects/b15ec7.html", "bisects.html"):
        found = (site / path).read_text() if (site / path).exists() else page(site, "bisects/index.html")
        assert link in re.sub(r"(?s)<svg.*?</svg>", "", found), path


def test_nobody_is_told_to_find_a_commit_that_is_found(site: Path) -> None:
    told = the_one(site, "changes")
    assert ">Reproduce<" in told
    assert "Find the commit" not in told


def test_a_bisect_of_the_step_that_found_one_of_the_commits_is_the_one_of_a_change(
    rich: Path, tmp_path: Path
) -> None:
    """Many look for a commit without naming the change, before there is one."""
    history = tmp_path / "h.db"
    history.write_bytes(rich.read_bytes())
    with open_store(history) as store:
        with store.database.writing() as connection:
            connection.execute(update(bisects).values(change_fingerprint=None))
        shown = read_bisects(store)
        culprit = next(bisect.culprit for bisect in shown)
        assert culprit is not None
        rows = (ListedCommit(f"{5:040x}", culprit.subject, "A. Committer", "", (), 0, "", ""),)
        for name, commits in (("same", rows), ("other", (replace(rows[0], commit="f" * 40),))):
            options = SiteOptions(tmp_path / name, bisects=shown, commits=always(CommitsBetween(commits, 1)))
            write_site(store, options, Silent())
    assert "found by bisect b15ec7" in words(index(tmp_path / "same"))
    assert "Find the commit" not in the_one(tmp_path / "same", "changes")
    assert "found by bisect" not in words(index(tmp_path / "other"))


def test_a_change_of_imported_nights_that_was_just_found_is_new(tmp_path: Path) -> None:
    history = tmp_path / "h.db"
    record_regression(history, judged=True)
    with open_store(history) as store, store.database.writing() as connection:
        for id_, options in connection.execute(select(sessions.c.id, sessions.c.options)).all():
            changed = (
                '{"imported": true, ' + options[1:]
                if isinstance(options, str)
                else options | {"imported": True}
            )
            connection.execute(update(sessions).where(sessions.c.id == id_).values(options=changed))
    site = site_of(history)
    text = news(site)[1]
    assert "No night yet" not in text
    assert re.match(r"▾ \d+ sessions up to 2026-\d\d-\d\d: 1 new change for the worse", text), text
    assert "known since" not in words(cards(site)[0][1])


def test_sessions_by_hand_are_no_night_that_failed(tmp_path: Path) -> None:
    history = tmp_path / "h.db"
    record_failing(history)
    with open_store(history) as store, store.database.writing() as connection:
        connection.execute(update(sessions).values(command="./tidemark run"))
    site = site_of(history)
    assert "Each box in its last night or session" in words(index(site))
    assert "db1: nothing could be measured in its last 5 sessions" in words(cards(site)[0][1])
    assert "nothing could be measured on db1 in 5 sessions in a row" in news(site)[1]


def test_what_was_not_measured_has_not_failed(tmp_path: Path) -> None:
    """Sessions that time and sessions that count take turns."""
    with open_store(tmp_path / "h.db") as store:
        rates = {"postgres@17.11": [1000.0, 1002.0, 999.0], "postgres@18.6": [1001.0, 1000.0, 999.5]}
        record_steps(store, session_start("timed"), {"insert": rates})
        options = {"exact": {"tool": "valgrind", "passes": 2, "when": "only"}}
        session = store.start_session(replace(session_start("counted", 2), options=options))
        for version in rates:
            for number in range(1, 3):
                values = {INSTRUCTIONS: 1000.0 + number / 10}
                store.record_run(session, run_record(values, version=version, repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
    site = site_of(tmp_path / "h.db")
    branch = page(site, "branches/postgres-18.html")
    assert "missing: no night" in branch
    assert 'class="gap"' not in branch
    trend = words(page(site, "trend.html"))
    assert "Without any value of qps: postgres@18 1 night" in trend


def test_no_chart_says_that_nothing_can_be_seen_where_the_sessions_decided(tmp_path: Path) -> None:
    record_failing(tmp_path / "h.db")
    branch = page(site_of(tmp_path / "h.db"), "branches/postgres-REL_18_STABLE.html")
    assert "unchanged" in branch
    assert "url(#hatch" not in branch


def test_a_branch_has_one_look_in_all_charts_of_the_trend(site: Path) -> None:
    looks: dict[str, set[str]] = {}
    for look, name in re.findall(
        r'class="(trend-\d)"[^>]*/><text[^>]*>(?:<title>[^<]*</title>)?([^<]+)<', page(site, "trend.html")
    ):
        looks.setdefault(name, set()).add(look)
    assert len(looks) > 1
    assert all(len(found) == 1 for found in looks.values()), looks

"""The first screen of the overview: the sentence, the cards, and what a box without values looks like."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, update

from build.progress import Silent
from history.changes import repository
from history.open import open_reader, open_store
from history.store.records import SessionStatus
from history.store.schema import changes, task_states
from history.timestamps import to_text
from report.values.commits import CommitsBetween, ListedCommit
from report.values.overview import MAX_CARDS, SETTLED_DAYS
from report.writing.site import SiteOptions, write_site
from suites.metrics import INSTRUCTIONS
from tests.history.handmade import MACHINE, NIGHT, record_steps, run_record, session_start
from tests.history.watched import Nights, dated, record_regression
from tests.report.conftest import write
from tests.report.histories.failing import BLIND, REASON, record_failing
from tests.report.histories.single import record_single
from tests.report.histories.ten_boxes import TenBoxes
from tests.report.parsed import pages_of, parsed
from tests.report.rich import BRANCH, SLOWED


def words(html: str) -> str:
    """Return the text of a piece of markup, its spaces as one each, and the minus sign as people type it."""
    return " ".join(re.sub(r"<[^>]+>", "", html).replace("\N{MINUS SIGN}", "-").split())


def news(site: Path) -> tuple[str, str]:
    """Return the class and the text of the sentence."""
    (found,) = re.findall(r'<p class="sentence news (\w+)">(.*?)</p>', index(site), re.DOTALL)
    return found[0], words(found[1])


def cards(site: Path) -> list[tuple[str, str]]:
    """Return the class and the markup of each card."""
    return re.findall(r'<li class="card (\w+)">(.*?)</li>', index(site), re.DOTALL)


def index(site: Path) -> str:
    return (site / "index.html").read_text(encoding="utf-8")


def site_of(history: Path) -> Path:
    folder = history.with_suffix(".site")
    write(history, folder)
    return folder


def row_of(site: Path, box: str) -> list[str]:
    (found,) = [row for row in parsed(site / "index.html").rows if row[0] == box and len(row) == 5]
    return found


def test_the_sentence_names_the_night_the_changes_the_boxes_and_what_is_undecided(site: Path) -> None:
    assert news(site) == (
        "worse",
        "▾ Night of 2026-04-16: 1 new change for the worse; 2 of 2 boxes reported; 3 of 4 steps undecided in "
        "one comparison at least; everything was measured.",
    )


def test_a_card_has_all_that_is_asked_of_a_change(site: Path) -> None:
    ((tone, card),) = cards(site)
    text = words(card)
    assert tone == "worse"
    assert f"{SLOWED} 12.6 % slower new" in text
    assert f"{BRANCH} against postgres@17, write-heavy (short relaxed), on db1, db2" in text
    assert "Confirmed side by side: -12.6 % (-16.7 to -8.4) qps of update-index in 8 interleaved" in text
    assert (
        "Culprit: 000000000000 Commit 6: &lt;b&gt;a subject&lt;/b&gt; (A. Committer), found by bisect" in text
    )
    assert re.search(r'<a href="https://[^"]+" rel="noreferrer"><code>000000000000</code></a>', card)
    assert 'role="img" aria-label="update-index, qps on db1: −12.6 % between 2026-04-06 and' in card
    assert card.count('class="range worse confirmed"') == 1
    (dots,) = re.findall(r'<path d="([^"]+)" class="dots"/>', card)
    assert dots.count("M") == 40


def test_a_public_site_does_not_say_who_wrote_the_culprit(rich: Path, tmp_path: Path) -> None:
    write(rich, tmp_path, is_public=True)
    assert "Culprit: 000000000000 Commit 6" in words(cards(tmp_path)[0][1])
    assert not [page for page in pages_of(tmp_path) if "A. Committer" in page.read_text(encoding="utf-8")]


def test_without_a_bisect_the_card_has_its_command(rich: Path, tmp_path: Path) -> None:
    for is_public in (False, True):
        with open_store(rich) as store:
            write_site(store, SiteOptions(tmp_path / f"{is_public}", is_public), Silent())
    ((_, card),) = cards(tmp_path / "False")
    text = words(card)
    assert "postgres@git:04599cc0ffee to postgres@git:04788bc0ffee, between the nights of" in text
    assert "./tidemark bisect --engine postgres --good git:04599cc0ffee --bad git:04788bc0ffee" in text
    ((_, shown),) = cards(tmp_path / "True")
    assert "./tidemark" not in words(shown)


@pytest.mark.parametrize(
    ("immaterial", "said"),
    [
        (
            ("", "", ""),
            "3 commits between the nights of 2026-04-06 and 2026-04-07; the newest: aaaaaaaaaa Sort",
        ),
        (
            ("only documentation", "", "only documentation"),
            "3 commits, 1 of which can change the server between the nights of 2026-04-06 and 2026-04-07; "
            "the only one that can: bbbbbbbbbb Lock b (B. Author)",
        ),
    ],
)
def test_commits_have_subjects(rich: Path, tmp_path: Path, immaterial: tuple[str, ...], said: str) -> None:
    rows = tuple(
        ListedCommit(letter * 40, subject, "B. Author", "", (), 0, why, f"https://example.org/{letter}")
        for letter, subject, why in zip("abc", ("Sort a", "Lock b", "Log c"), immaterial, strict=True)
    )
    options = SiteOptions(tmp_path, commits=lambda report: CommitsBetween(rows, 3))
    with open_store(rich) as store:
        write_site(store, options, Silent())
    assert said in words(cards(tmp_path)[0][1])


def test_a_change_that_no_session_confirmed_is_inferred(tmp_path: Path) -> None:
    record_regression(tmp_path / "h.db", judged=True)
    ((_, card),) = cards(site_of(tmp_path / "h.db"))
    assert "Inferred from nights: -6.7 % (" in words(card)
    assert "not measured side by side yet" in words(card)
    assert "Both nights measured postgres@REL_18_STABLE: it may have moved; no commits are recorded" in words(
        card
    )


def test_a_known_change_is_told_from_a_new_one(tmp_path: Path) -> None:
    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(90)
        nights.more(8, 0.93)
        nights.judge()
        nights.more(3, 0.93)
    site = site_of(tmp_path / "h.db")
    assert "no new change for the worse, 1 known is still open;" in news(site)[1]
    assert "known since 2026-06-07" in words(cards(site)[0][1])


def test_without_a_night_it_says_which_sessions_are_there_and_nothing_of_changes(tmp_path: Path) -> None:
    with open_store(tmp_path / "h.db") as store:
        for month in (7, 8):
            version = f"postgres@git:{month:012x}"
            told = {
                "branches": {version: "postgres@master"},
                "stands_at": {version: f"2025-{month:02}-07T00:00:00.000Z"},
            }
            start = replace(session_start(f"past-{month}"), options={"threads": 8, **told})
            record_steps(store, start, {"insert": {"postgres@18.6": [100.0] * 3, version: [99.0] * 3}})
    tone, text = news(site_of(tmp_path / "h.db"))
    assert tone == "open"
    assert re.fullmatch(r"\? No night yet: 2 sessions, the last of 20\d\d-\d\d-\d\d\.", text), text


def test_five_nights_of_failures_are_red_by_box(tmp_path: Path) -> None:
    record_failing(tmp_path / "h.db")
    site = site_of(tmp_path / "h.db")
    tone, text = news(site)
    assert tone == "failed"
    assert text.startswith(
        f"✖ Night of 2026-04-05: nothing could be measured on db1 for {BLIND} nights in a row;"
    )
    ((of_card, card),) = cards(site)
    assert of_card == "failed"
    assert f"db1: nothing could be measured in its last {BLIND} nights" in words(card)
    assert REASON in words(card)
    assert row_of(site, "db1")[1] == f"✖ nothing measured, {BLIND} nights"
    assert row_of(site, "db2")[1] == "= measured"
    (stale,) = [row for row in parsed(site / "index.html").rows if "db1" in row and len(row) == 12]
    assert stale[-1] == "2026-03-31 02:00 UTC 5 days older"


@pytest.mark.parametrize(
    ("outcome", "tone", "said"),
    [
        ("unreachable", "failed", "nothing could be measured on db1 for 5 nights in a row;"),
        ("paused", "open", "not measured: postgres@master on db1"),
        ("current", "same", "everything was measured"),
    ],
)
def test_what_only_the_service_knows_of_a_box_is_told(
    tmp_path: Path, outcome: str, tone: str, said: str
) -> None:
    """Nothing was recorded in these nights: the git source could not be fetched, or nothing was new."""
    path = tmp_path / "h.db"
    with dated(path, Nights) as nights:
        nights.more(30)
    with open_store(path) as store, store.database.writing() as connection:
        row = {
            **dict.fromkeys(("box", "hostname"), "db1"),
            "suite": "write-heavy",
            "configuration": "short relaxed",
            "tracked": "postgres@master",
            "outcome": outcome,
            "reason": "" if outcome == "current" else "git fetch: could not resolve host",
            "since": to_text(NIGHT + timedelta(days=31)),
            "checked_at": to_text(NIGHT + timedelta(days=35)),
        }
        connection.execute(insert(task_states).values(row))
    site = site_of(path)
    if outcome != "current":
        assert news(site)[0] == tone
        assert "git fetch: could not resolve host" in index(site)
    assert said in news(site)[1]
    assert row_of(site, "db1")[2] == "2026-04-05 02:00 UTC"


def test_a_box_without_a_night_for_a_month_is_retired(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    record_night(path, "db2-1", "db2", 1)
    for day in (40, 41):
        record_night(path, f"db1-{day}", "db1", day)
    site = site_of(path)
    assert "1 of 1 box reported" in news(site)[1]
    assert row_of(site, "db2")[1] == "· retired"


def test_a_missing_box_is_named_with_its_last_night(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    for day, boxes in ((1, ("db1", "db2")), (2, ("db1", "db2")), (3, ("db1",))):
        for box in boxes:
            record_night(path, f"{box}-{day}", box, day)
    site = site_of(path)
    assert "1 of 2 boxes reported, without db2 (last seen 2026-03-03)" in news(site)[1]
    assert row_of(site, "db2")[1:4] == ["– did not report", "2026-03-03 02:00 UTC", "24 hours"]


def record_night(path: Path, uid: str, box: str, day: int) -> None:
    rates = {
        step: {"postgres@17.11": [1000.0] * 3, "postgres@git:00ff": [1000.0] * 3} for step in ("insert",)
    }
    machine = replace(MACHINE, hostname=box, fingerprint=box)
    with open_store(path, clock=lambda: NIGHT + timedelta(days=day)) as store:
        record_steps(store, replace(session_start(uid), machine=machine), rates)


def test_what_was_not_measured_is_named_and_linked(tmp_path: Path) -> None:
    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(3)
        nights.more(1, delete=0.0)
    site = site_of(tmp_path / "h.db")
    text = news(site)[1]
    assert "not measured: delete of postgres@REL_18_STABLE on db1" in text
    assert 'href="sessions/night-3.html">delete of postgres@REL_18_STABLE</a>' in index(site)


def test_the_verdict_of_a_single_session_is_the_news(tmp_path: Path) -> None:
    record_single(tmp_path / "h.db")
    site = site_of(tmp_path / "h.db")
    tone, text = news(site)
    assert tone == "worse"
    verdicts = (
        "postgres@18.6 against postgres@17.11: 2 regressions, 0 improvements, 2 unchanged, 0 inconclusive; "
        "worst: insert 0.90 (0.90–0.90); 2 findings that are worse"
    )
    assert text.startswith(f"▾ Session of 2026-03-01: {verdicts} (too few nights")
    ((of_card, card),) = cards(site)
    assert of_card == "worse"
    assert words(card).startswith(verdicts)
    assert "▾ -10.0 % (-10.1 to -9.9 %) insert: regression" in words(card)
    assert 'href="sessions/only.html"' in card


@pytest.mark.parametrize(("status", "days", "is_shown"), [("closed", 13, True), ("acknowledged", 15, False)])
def test_settled_changes_leave_after_a_while(tmp_path: Path, status: str, days: int, is_shown: bool) -> None:
    path = tmp_path / "h.db"
    record_regression(path, judged=True)
    with open_store(path) as store, store.database.writing() as connection:
        last = NIGHT + timedelta(days=97)
        values = {"status": status, "updated_at": to_text(last - timedelta(days=days))}
        connection.execute(update(changes).values(values))
    site = site_of(path)
    assert cards(site) == []
    assert (f"1 change settled in the last {SETTLED_DAYS} days" in index(site)) is is_shown
    assert "no new change for the worse" in news(site)[1]


def test_changes_for_the_better_are_folded(tmp_path: Path) -> None:
    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(90)
        nights.more(8, 1.08)
        nights.judge()
    site = site_of(tmp_path / "h.db")
    assert cards(site) == []
    (folded,) = re.findall(r'<details class="folded">.*?</details>', index(site), re.DOTALL)
    with open_reader(tmp_path / "h.db") as history, history.database.reading() as connection:
        (change,) = repository.load(connection)
    assert change.fingerprint in folded


def test_a_trade_names_both_sides_with_their_steps(tmp_path: Path) -> None:
    with dated(tmp_path / "h.db", Nights) as nights:
        nights.more(90)
        nights.more(8, 0.93, delete=1.08)
        nights.judge()
    ((tone, card),) = cards(site_of(tmp_path / "h.db"))
    sides = [words(side) for side in re.findall(r'<p class="side">(.*?)</p>', card)]
    assert tone == "worse"
    assert [re.sub(r"[\d.]+", "N", side) for side in sides] == [
        "▾ -N % (-N to -N %) qps: insert",
        "▴ +N % (+N to +N %) qps: delete",
    ]


def test_ten_boxes_have_no_cards_of_what_did_not_change(tmp_path: Path) -> None:
    TenBoxes(tmp_path / "h.db").write()
    site = site_of(tmp_path / "h.db")
    assert "11 of 11 boxes reported" in news(site)[1]
    assert all("regression" in words(card) for _, card in cards(site))
    assert len(cards(site)) <= MAX_CARDS


def test_counts_have_more_and_are_no_time_and_sessions_by_hand_are_no_night(tmp_path: Path) -> None:
    """As after the demo: rounds of two versions, then counted passes."""
    path, moment = tmp_path / "h.db", [NIGHT]
    with open_store(path, clock=lambda: moment[0]) as store:
        rounds = {"postgres@17.11": [1000.0, 1040.0, 970.0], "postgres@18.6": [1020.0, 960.0, 1030.0]}
        record_steps(store, session_start("timed"), {"insert": rounds})
        moment[0] += timedelta(minutes=9)
        options = {"exact": {"tool": "valgrind", "passes": 2, "when": "only"}}
        session = store.start_session(replace(session_start("counted", 2), options=options))
        for version, count in (("postgres@17.11", 1000.0), ("postgres@18.6", 1064.0)):
            for number in range(1, 5):
                values = {INSTRUCTIONS: count + number / 10}
                store.record_run(session, run_record(values, version=version, repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
    site = site_of(path)
    tone, text = news(site)
    assert tone == "worse"
    assert text.startswith(
        "▾ Sessions up to 2026-03-01: postgres@18.6 against postgres@17.11, exact instructions: 1 with more, "
        "0 with less, 0 unchanged, 0 inconclusive; most: insert 1.064 ("
    )
    assert "regression" not in words(cards(site)[0][1])
    assert ": more" in words(cards(site)[0][1])
    assert "Instructions are no time." in words(cards(site)[0][1])
    assert "measured by hand; it has a base and a branch" in words((site / "sessions/timed.html").read_text())

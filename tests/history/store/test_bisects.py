"""Bisects in the history: their log, how they travel, what pruning leaves, what comparisons see of them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.errors import ComparisonError, HistoryError
from history.open import open_store
from history.store import bisects
from history.store.bisects import Bisect, EventKind
from history.store.records import SessionStatus
from history.store.schema import nights, runs
from history.store.writer import Store
from history.transfer.database_source import Selection, opened
from history.transfer.merging import merge
from history.transfer.ndjson import NdjsonFile, write_ndjson
from history.transfer.pruning import prune, room
from tests.history.generated import contents
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start

OLD, NEW = parse_version("postgres@17.11"), parse_version("postgres@18.6")
RATES = {"insert": {str(OLD): [100.0, 101.0, 99.0], str(NEW): [90.0, 91.0, 89.0]}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "history.db")


def begun(store: Store, uid: str = "b1") -> Bisect:
    question, span = {"engine": "postgres", "step": "insert"}, {"points": [1, 2], "collapsed": []}
    with store.database.writing() as connection:
        return bisects.begin(connection, uid, MACHINE, question, span, None, NIGHT)


def write(store: Store, bisect: Bisect, kind: EventKind, session: str | None = None) -> None:
    with store.database.writing() as connection:
        bisects.append(connection, bisect, kind, {"positions": [1]}, NIGHT, session)


def measured(
    store: Store, uid: str, bisect: str = "b1", status: SessionStatus | None = SessionStatus.FINISHED
) -> int:
    """A session of a bisect."""
    start = replace(session_start(uid), options={"bisect": bisect} if bisect else {})
    return record_steps(store, start, RATES, status)


def loaded(store: Store, uid: str = "b1") -> Bisect:
    with store.database.reading() as connection:
        return bisects.load(connection, uid)


def test_events_come_back_in_order(store: Store) -> None:
    bisect = begun(store)
    for kind, session in ((EventKind.BUILT, None), (EventKind.SESSION, "s1"), (EventKind.EXCLUDED, "s1")):
        write(store, bisect, kind, session)
    found = loaded(store)
    assert [(event.number, event.kind, event.session) for event in found.events] == [
        (1, EventKind.BUILT, None),
        (2, EventKind.SESSION, "s1"),
        (3, EventKind.EXCLUDED, "s1"),
    ]
    assert found.sessions == ("s1",)
    assert found.verdict is None
    assert found.machine == MACHINE
    assert (found.question["step"], found.began_at) == ("insert", NIGHT)


def test_a_bisect_that_there_is_not(store: Store) -> None:
    with pytest.raises(HistoryError, match="no bisect b9") as caught:
        loaded(store, "b9")
    assert "bisect status" in caught.value.hint


@pytest.mark.deep("processes that are killed while they write")
@pytest.mark.parametrize("way", ["ndjson", "history"])
def test_it_travels_and_goes_on_elsewhere(store: Store, tmp_path: Path, way: str) -> None:
    bisect = begun(store)
    measured(store, "s1")
    write(store, bisect, EventKind.SESSION, "s1")
    elsewhere = tmp_path / "other.db"
    for _ in range(2):
        with opened(tmp_path / "history.db") as source, open_store(elsewhere) as other:
            if way == "history":
                merge(other, [source])
            else:
                target = tmp_path / f"{way}-{len(loaded(store).events)}"
                write_ndjson(source, target)
                merge(other, [NdjsonFile(target)])
        assert contents(elsewhere) == contents(tmp_path / "history.db")
        write(store, bisect, EventKind.VERDICT)  # and what was added later comes with the next merge
    with open_store(elsewhere) as other, other.database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(nights)).scalar_one() == 0
        (found,) = bisects.load_all(connection)
        assert [event.kind for event in found.events] == [EventKind.SESSION, EventKind.VERDICT]


def test_a_selection_leaves_bisects_behind(store: Store, tmp_path: Path) -> None:
    begun(store)
    measured(store, "s1")
    with opened(tmp_path / "history.db", Selection(suite="write-heavy")) as source:
        assert {item.table.name for item in source.items()} & {"bisects", "bisect_events"} == set()


def test_rounds_are_pruned_only_when_there_is_a_verdict(store: Store) -> None:
    for uid, session in (("b1", "s1"), ("b2", "s2")):
        bisect = begun(store, uid)
        measured(store, session, uid)
        write(store, bisect, EventKind.SESSION, session)
    write(store, loaded(store, "b2"), EventKind.VERDICT)
    later = NIGHT + timedelta(days=10_000)
    assert room(store, later).sessions == 1
    assert prune(store, later) == 1
    with store.database.reading() as connection:
        kept = connection.execute(select(runs.c.session_id).distinct()).scalars().all()
    unfinished = store.latest_session((), uid="s1")
    assert unfinished is not None
    assert kept == [unfinished.id]


def test_a_comparison_takes_a_session_of_a_bisect_only_when_nothing_else_has_both(store: Store) -> None:
    bisect = begun(store)
    measured(store, "s1")
    write(store, bisect, EventKind.SESSION, "s1")
    (found,) = compare(store, OLD, (NEW,), CompareOptions()).contenders
    assert found.session.uid == "s1"
    measured(store, "night", "")
    measured(store, "s2")
    write(store, bisect, EventKind.SESSION, "s2")
    (found,) = compare(store, OLD, (NEW,), CompareOptions()).contenders
    assert found.session.uid == "night"
    (found,) = compare(store, OLD, (NEW,), CompareOptions(session="s2")).contenders
    assert found.session.uid == "s2"


def test_a_running_session_of_a_bisect_is_not_the_latest(store: Store) -> None:
    bisect = begun(store)
    measured(store, "night", "")
    measured(store, "s1", status=None)
    write(store, bisect, EventKind.SESSION, "s1")
    (found,) = compare(store, OLD, (NEW,), CompareOptions()).contenders
    assert found.session.uid == "night"


def test_over_nights_it_does_not_count(store: Store) -> None:
    write(store, begun(store), EventKind.SESSION, "s1")
    measured(store, "s1")
    with pytest.raises(ComparisonError, match="no night"):
        compare(store, OLD, (NEW,), CompareOptions(since=NIGHT - timedelta(days=1)))


def test_a_history_of_bisects_alone_is_opened_without_writing(store: Store, tmp_path: Path) -> None:
    write(store, begun(store), EventKind.SESSION, "s1")
    measured(store, "s1")
    with store.database.writing(), open_store(tmp_path / "history.db") as reader:
        assert reader.latest_session((), uid="s1") is not None

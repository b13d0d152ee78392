"""What befalls the server of a history while a box records: rounds wait, and arrive once."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from benchmarks.scale.history_server import HistoryServer
from benchmarks.scale.sessions import (
    STEPS,
    VERSIONS,
    RecordedRound,
    differences,
    round_of,
    session_start,
)
from build.home import Home
from history.changes.detector import judge
from history.open import open_store
from history.spool import spooled_store
from history.spool.opening import open_recorded
from history.spool.spooled_store import SpooledStore
from history.store import process, writer
from history.store.records import SessionStatus
from suites.postgres.configuration import NAME
from suites.server import ServerError
from tests.history.conftest import rows
from tests.history.handmade import a_build
from tests.history.spool.proxy import Network, Proxy

pytestmark = pytest.mark.server


class Box:
    """A box that records one session, round by round, and knows what it was told is recorded."""

    def __init__(self, home: Home, url: str, name: str = "db1", uid: str = "a") -> None:
        self.home, self.url, self.uid = home, url, uid
        self.told: Counter[RecordedRound] = Counter()
        self.said: list[str] = []
        self.store = self.open()
        self.session = self.store.start_session(session_start(name, uid, 3))

    def open(self) -> SpooledStore:
        store = open_recorded(self.url, self.home, self.said.append)
        assert isinstance(store, SpooledStore)
        return store

    def record(self, count: int = 1) -> None:
        for _ in range(count):
            number = len(self.told)
            qps = 1000.0 + number
            step, repetition = number % len(STEPS), 1 + number // len(STEPS)
            self.store.record_runs(self.session, round_of(step, repetition, qps, 2 * number))
            self.told[RecordedRound(self.uid, STEPS[step], repetition, qps)] += 1

    def finish(self) -> None:
        self.store.finish_session(self.session, SessionStatus.FINISHED)

    def next_command(self) -> SpooledStore:
        self.store.close()
        self.store = self.open()
        return self.store


@pytest.fixture(autouse=True)
def tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round is sent by itself, and a server that was away is tried with every round."""
    monkeypatch.setattr(spooled_store, "SEND_SECONDS", 0.0)
    monkeypatch.setattr(spooled_store, "RETRY_SECONDS", 0.0)


def by(proxy: Proxy) -> str:
    return f"postgresql+psycopg://{NAME}@127.0.0.1:{proxy.port}/{NAME}"


def test_killed_and_restarted(server: HistoryServer, new_home: Callable[[str], Home]) -> None:
    box = Box(new_home("box"), server.url)
    box.record(3)
    assert not box.store.away
    server.kill()
    box.record(3)
    assert "is not there" in box.store.away
    server.server.start()
    box.record()
    assert not box.store.away
    assert box.said[-1] == "the history is back"
    server.restart()
    box.record()
    box.finish()
    assert not box.store.problems
    assert differences(server.url, box.told) == []


def test_a_network_that_is_cut_or_silent(
    server: HistoryServer, proxy: Proxy, new_home: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a second, for a minute and for an hour: how long does not matter once it was noticed."""
    monkeypatch.setattr(spooled_store, "PATIENCE_SECONDS", 2.0)
    box = Box(new_home("box"), f"{by(proxy)}?connect_timeout=2")
    box.record()
    for network in (Network.CUT, Network.SILENT):
        proxy.network = network
        box.record()
        assert box.store.away
        proxy.network = Network.WHOLE
        box.record()
        assert not box.store.away
    proxy.network = Network.CUT
    box.record()
    box.finish()
    assert "3 rounds" in box.next_command().problems[0] or box.store.away
    proxy.network = Network.WHOLE
    assert not box.next_command().problems
    assert differences(server.url, box.told) == []


def test_a_commit_whose_answer_is_lost(
    server: HistoryServer, proxy: Proxy, new_home: Callable[[str], Home]
) -> None:
    """Cut at random moments of sending: what was carried out without an answer is not there twice."""
    box = Box(new_home("box"), by(proxy))
    for number in range(25):
        cut = threading.Timer(0.001 * number, setattr, (proxy, "network", Network.CUT))
        cut.start()
        box.record()
        cut.join()
        proxy.network = Network.WHOLE
    box.finish()
    assert not box.next_command().problems
    assert differences(server.url, box.told) == []


def test_a_replica_that_lagged_is_promoted(
    server: HistoryServer, server_folder: Path, proxy: Proxy, new_home: Callable[[str], Home]
) -> None:
    box = Box(new_home("box"), by(proxy))
    box.record(2)
    replica = server.replica(server_folder / "2")
    try:
        server.execute("SELECT pg_sleep(0.5)")
        replica.execute("ALTER SYSTEM SET primary_conninfo = ''")
        replica.execute("SELECT pg_reload_conf()")
        box.record(2)  # which the replica never gets
        server.kill()
        proxy.behind = replica.socket
        box.record(2)
        assert "standby" in box.store.away
        replica.promote()
        box.record()
        box.finish()
        assert not box.store.problems
        assert differences(replica.url, box.told) == []
        # And what was finished before: another session, which the next command finds to be gone.
        replica.execute("DELETE FROM measurements; DELETE FROM samples; DELETE FROM points; DELETE FROM runs")
        replica.execute("DELETE FROM nights; DELETE FROM sessions")
        box.next_command()
        assert differences(replica.url, box.told) == []
    finally:
        replica.destroy()


def test_connections_that_are_used_up(
    server: HistoryServer, proxy: Proxy, new_home: Callable[[str], Home]
) -> None:
    box = Box(new_home("box"), by(proxy))
    box.record()
    server.execute("ALTER SYSTEM SET max_connections = 12")
    server.execute("ALTER SYSTEM SET superuser_reserved_connections = 0")
    server.restart()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ServerError):
            while True:
                stack.enter_context(contextlib.closing(server.server.connect()))
        box.record(2)
        assert "no connection left" in box.store.away
    box.record()
    box.finish()
    assert not box.store.problems
    assert differences(server.url, box.told) == []


def test_a_disk_that_is_full(server: HistoryServer, new_home: Callable[[str], Home]) -> None:
    """A table space of a few megabytes: nothing of a transaction that does not fit is there."""
    with server.small_disk(8) as tablespace:
        box = Box(new_home("box"), server.url)
        box.record()
        for table in ("runs", "measurements", "samples"):
            server.execute(f"ALTER TABLE {table} SET TABLESPACE {tablespace}")
        server.execute(
            f"CREATE TABLE ballast TABLESPACE {tablespace} AS SELECT repeat('x', 900) FROM"
            " generate_series(1, 10) AS number"
        )
        with contextlib.suppress(psycopg.errors.DiskFull):
            while True:
                server.execute("INSERT INTO ballast SELECT * FROM ballast LIMIT 500")
        while not box.store.away:
            box.record()
            assert len(box.told) < 500
        assert "no space left" in box.store.away
        server.execute("DROP TABLE ballast")
        box.record()
        box.finish()
        assert not box.store.problems
        assert differences(server.url, box.told) == []
        for table in ("runs", "measurements", "samples"):
            server.execute(f"ALTER TABLE {table} SET TABLESPACE pg_default")


def test_two_boxes_with_one_name_keep_their_sessions_apart(
    server: HistoryServer, new_home: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are alike, and one of them begins while the other measures: it neither ends nor resumes that."""
    first = Box(new_home("one"), server.url, "db1", "a")
    first.record()
    here = process.this_process()
    elsewhere = replace(here, boot_id="another boot", process_id=1)
    for module in (process, writer):
        monkeypatch.setattr(module, "this_process", lambda: elsewhere)
    monkeypatch.setattr(writer, "is_alive", lambda identity: identity == elsewhere)
    second = Box(new_home("two"), server.url, "db1", "b")
    second.record(2)
    second.store.finish_session(second.session, SessionStatus.INTERRUPTED)
    start = session_start("db1", "c", 3)
    for module in (process, writer):
        monkeypatch.setattr(module, "this_process", lambda: here)
    monkeypatch.setattr(writer, "is_alive", lambda identity: identity == here)
    builds = (a_build(VERSIONS[0], "key of postgres@17.11"), a_build(VERSIONS[1]))
    assert first.store.resume_session(start, builds, datetime.now(UTC) - timedelta(days=1)) is None
    first.record()
    first.finish()
    assert differences(server.url, first.told + second.told) == []
    first.store.deliver()
    assert first.store.problems == (
        "another box calls itself db1 too and recorded 1 sessions, such as b: the"
        " nights of both are in the same series; give one of them another name with hostnamectl",
    )


def test_clocks_a_day_apart(server: HistoryServer, new_home: Callable[[str], Home]) -> None:
    """A box is told that its clock is wrong; what it records arrives, once, and its nights stay in order."""
    told: Counter[RecordedRound] = Counter()
    for days, word in ((1, "ahead of"), (-1, "behind")):
        clock = partial(shifted, timedelta(days=days))
        for number in range(2):
            store = open_recorded(server.url, new_home(f"box{days}"), clock=clock)
            session = store.start_session(session_start(f"box{days}", f"{days}-{number}", 1))
            store.record_runs(session, round_of(0, 1, 1000.0 + days + number / 10, 1))
            store.finish_session(session, SessionStatus.FINISHED)
            assert f"24.0 hours {word} that of the history's server" in store.problems[0]
            told[RecordedRound(f"{days}-{number}", STEPS[0], 1, 1000.0 + days + number / 10)] += 1
            store.close()
    assert differences(server.url, told) == []
    with open_store(server.url) as store:
        judge(store.database)
        order = rows(store, "SELECT uid FROM sessions ORDER BY started_at")
    assert order == [("-1-0",), ("-1-1",), ("1-0",), ("1-1",)]


def shifted(by_: timedelta) -> datetime:
    return datetime.now(UTC) + by_

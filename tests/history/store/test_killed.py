"""A writer killed a hundred times, at random moments: nothing finished is lost, nothing is half there."""

import os
import random
import signal
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from history.open import open_store
from history.store.database import connect
from history.store.records import SessionStatus
from suites.metrics import followed_metrics
from tests.history.conftest import Target
from tests.history.handmade import run_record, session_start

KILLS = 100
VALUES = {"qps": 1000.0, "wal_bytes_per_op": 100.0, "latency_p99_ms": 5.0}
SECONDS = 20
ROUNDS = 3


def write(target: Target, uid: str, acknowledged: int) -> None:
    """Sessions of three rounds, one after the other; says what is durable in 8 bytes each."""
    with open_store(target) as store:
        for number in range(1_000):
            session = store.start_session(session_start(f"{uid}-{number}"))
            for repetition in range(1, ROUNDS + 1):
                record = run_record(VALUES, repetition=repetition, per_second=(1000.0,) * SECONDS)
                os.write(acknowledged, b"r%07d" % store.record_run(session, record))
            store.finish_session(session, SessionStatus.FINISHED)
            os.write(acknowledged, b"s%07d" % session)


def killed_writer(target: Target, uid: str, after: float, *, words: int) -> list[bytes]:
    """What a writer said before it was killed, so many seconds after it began or after so many words.

    A fork, since a new Python takes longer than all that is to be interrupted.
    """
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(target, uid, written)
        except BaseException:  # it is a child: nothing above it may go on as the test
            os.write(written, b"failed: " + traceback.format_exc().encode())
        finally:
            os._exit(1)
    os.close(written)
    heard = [os.read(read, 8) for _ in range(words)]
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        said = b"".join(heard) + pipe.read()
    assert os.WIFSIGNALED(status), f"the writer ended by itself: nothing was killed\n{said.decode()}"
    return [said[place : place + 8] for place in range(0, len(said), 8)]


def counted(target: Target, query: str) -> Counter[Any]:
    database = connect(target)
    with database.reading() as connection:
        found = Counter(connection.exec_driver_sql(query).scalars())
    database.close()
    return found


@pytest.mark.deep("processes that are killed while they write")
def test_a_writer_killed_a_hundred_times_loses_nothing_it_finished(target: Target) -> None:
    for lazily_loaded in ("history.store.migrate", "history.derive"):
        import_module(lazily_loaded)  # here, so that no child spends its short life on importing
    moments = random.Random(20261121)
    said: list[bytes] = []
    for number in range(KILLS):
        # Every other one may fall into the opening, at first into the making of the tables.
        words = moments.randrange(1, 5 * (ROUNDS + 1)) if number % 2 == 1 else 0
        said += killed_writer(target, f"writer-{number}", moments.uniform(0.0, 0.05), words=words)
    runs = {int(line[1:]) for line in said if line.startswith(b"r")}
    sessions = {int(line[1:]) for line in said if line.startswith(b"s")}
    assert len(sessions) > KILLS / 4, "the writer never came far: this shows nothing"

    present = set(counted(target, "SELECT id FROM runs"))
    assert runs <= present
    assert counted(target, "SELECT run_id FROM measurements") == Counter(dict.fromkeys(present, len(VALUES)))
    assert counted(target, "SELECT run_id FROM samples") == Counter(dict.fromkeys(present, SECONDS))
    finished = set(counted(target, "SELECT id FROM sessions WHERE status = 'finished'"))
    assert sessions <= finished
    # What was interrupted is a night too, as soon as another writer has seen that its process is gone.
    ended = "SELECT DISTINCT session_id FROM runs JOIN sessions ON sessions.id = session_id"
    nights = set(counted(target, f"{ended} WHERE sessions.status <> 'running'"))
    assert counted(target, "SELECT session_id FROM nights") == Counter(nights)
    followed = len(VALUES.keys() & set(followed_metrics()))
    assert counted(target, "SELECT session_id FROM points") == Counter(dict.fromkeys(nights, followed))
    if isinstance(target, Path):
        assert counted(target, "PRAGMA integrity_check") == Counter(["ok"])
        assert not counted(target, "PRAGMA foreign_key_check")


def test_what_killed_writers_left_running_is_ended_by_the_next(target: Target) -> None:
    for number in range(5):
        killed_writer(target, f"writer-{number}", 0.0, words=1)
    with open_store(target) as store:
        store.start_session(session_start("next"))
    statuses = counted(target, "SELECT status FROM sessions")
    assert statuses[SessionStatus.RUNNING] == 1

"""What real servers do beside queries, as they say when asked once a second."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.activity import ACTIVITIES_PER_SECOND, CHECKPOINT, VACUUM, activities, causes_of
from suites.accounting.sampling import RepeatedQuestion, ServerSampler
from suites.server import ServerError
from suites.slices import Schedule
from tests.suites.innodb_servers import running as innodb_running
from tests.suites.servers import ask, running, value, wait_for

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]


@pytest.mark.parametrize("engine", ["postgres_17", "postgres_18", "postgres_13"])
def test_a_checkpoint_is_named_as_the_cause_of_a_stall(
    request: pytest.FixtureRequest, engine: str, server_folder: Path
) -> None:
    """A client waits for more than a second, for a row that another one keeps while checkpoints are made."""
    with running(request.getfixturevalue(engine), server_folder) as server, ExitStack() as until:
        ask(server, "CREATE TABLE load AS SELECT id, 0 AS n FROM generate_series(1, 50000) AS id")
        samples = RepeatedQuestion(until.enter_context(server.open_activities()), ACTIVITIES_PER_SECOND)
        holder, waiter, other = (until.enter_context(server.connect()) for _ in range(3))
        pool = until.enter_context(ThreadPoolExecutor())
        with ServerSampler([samples], Schedule(60, (0,))):
            began = time.monotonic()
            time.sleep(1.2)
            holder.execute("BEGIN; UPDATE load SET n = 1 WHERE id = 1")
            stalled = time.monotonic()
            waits = pool.submit(waiter.execute, "UPDATE load SET n = 2 WHERE id = 1")
            while time.monotonic() < stalled + 1.5:
                other.execute("UPDATE load SET n = n + 1 WHERE id > 1")
                other.execute("CHECKPOINT")
            holder.execute("COMMIT")
            waits.result()
            ended = time.monotonic()
            time.sleep(2.2)
        seconds = [(began + second, began + second + 1) for second in range(int(ended - began) + 1)]
        found = activities(samples.answers, [(stalled, ended)], seconds)
        assert samples.failure is None
        assert causes_of(found) == [CHECKPOINT]
        assert not samples.answers[0][1], "nothing goes on before"


@pytest.mark.parametrize("engine", ["postgres_18", "postgres_13"])
def test_a_checkpoint_between_two_questions_is_told_once(
    request: pytest.FixtureRequest, engine: str, server_folder: Path
) -> None:
    """It is too short to be seen going on."""
    with (
        running(request.getfixturevalue(engine), server_folder) as server,
        server.open_activities() as read,
    ):
        ask(server, "CHECKPOINT")
        read()
        assert CHECKPOINT not in read()
        ask(server, "CREATE TABLE load AS SELECT 1 AS n")
        ask(server, "CHECKPOINT")
        assert CHECKPOINT in read()
        assert CHECKPOINT not in read()


def test_autovacuum_is_told_and_a_dead_server_too(postgres_18: Build, server_folder: Path) -> None:
    slow = {"autovacuum_naptime": "1", "autovacuum_vacuum_cost_delay": "100", "autovacuum": "on"}
    with (
        running(postgres_18, server_folder, overrides=slow) as server,
        server.open_activities() as read,
    ):
        ask(server, "CREATE TABLE load AS SELECT id, 0 AS n FROM generate_series(1, 100000) AS id")
        ask(server, "UPDATE load SET n = 1")
        wait_for(lambda: VACUUM in read(), 60)
        assert VACUUM in read()
        server.abandon()
        with pytest.raises(ServerError):
            read()


def test_an_autovacuum_between_two_questions_is_told_once(postgres_18: Build, server_folder: Path) -> None:
    """While other servers had their slices: it has begun and ended since the last question."""
    quick = {"autovacuum_naptime": "1", "autovacuum": "on"}
    with (
        running(postgres_18, server_folder, overrides=quick) as server,
        server.open_activities() as read,
    ):
        ask(server, "CREATE TABLE load AS SELECT id, 0 AS n FROM generate_series(1, 2000) AS id")
        read()
        ask(server, "UPDATE load SET n = 1")
        vacuums = "SELECT sum(autovacuum_count) FROM pg_stat_user_tables"
        workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
        wait_for(lambda: value(server, vacuums) and not value(server, workers), 60)
        assert VACUUM in read()
        assert VACUUM not in read()


@pytest.mark.parametrize("engine", ["mysql_9", "mariadb_11"])
def test_innodb_at_rest_does_nothing(
    request: pytest.FixtureRequest, engine: str, server_folder: Path
) -> None:
    with (
        innodb_running(request.getfixturevalue(engine), server_folder) as server,
        server.open_activities() as read,
    ):
        assert [*read(), *read()] == []
        server.abandon()
        with pytest.raises(ServerError):
            read()

"""What the clients of real servers of the MySQL family do, as the states of their threads say."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from suites.server import ServerError
from tests.suites.innodb_servers import running

pytestmark = pytest.mark.server

ROW, METADATA = "waiting;row lock", "waiting;Waiting for table metadata lock"


@pytest.mark.parametrize("engine", ["mysql_9", "mariadb_11"])
def test_a_lock_that_clients_wait_for_is_named(
    request: pytest.FixtureRequest, engine: str, server_folder: Path
) -> None:
    with (
        running(request.getfixturevalue(engine), server_folder) as server,
        closing(server.connect()) as holder,
        closing(server.connect()) as waiter,
        closing(server.connect()),
        server.open_client_states() as states,
        ThreadPoolExecutor() as others,
    ):
        assert states.read() == {}, "nobody executes anything"
        with holder.cursor() as holding, waiter.cursor() as waiting:
            holding.execute("CREATE TABLE tidemark.held (id INT PRIMARY KEY)")
            holding.execute("LOCK TABLES tidemark.held WRITE")
            waits = others.submit(waiting.execute, "INSERT INTO tidemark.held VALUES (1)")
            assert seen(states.read, METADATA)[METADATA] == 1
            holding.execute("UNLOCK TABLES")
            waits.result()
            holding.execute("BEGIN")
            holding.execute("UPDATE tidemark.held SET id = 2")
            waits = others.submit(waiting.execute, "DELETE FROM tidemark.held")
            # On a busy core the holder may still be leaving the state of its update.
            assert seen(states.read, ROW)[ROW] == 1
            holding.execute("COMMIT")
            waits.result()
        server.abandon()
        with pytest.raises(ServerError):
            states.read()


def seen(read: Callable[[], Mapping[str, int]], state: str) -> Mapping[str, int]:
    """Return what clients do as soon as one of them does this."""
    deadline = time.monotonic() + 20
    while state not in (found := read()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found

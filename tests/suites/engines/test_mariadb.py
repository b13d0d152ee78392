"""A real MariaDB: what it does in its own way, and whose data it refuses."""

import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from build.finished_build import Build
from suites.capabilities import CAPABILITIES, SettingError
from suites.engines import require_settings
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability, Isolation
from suites.server import ServerError
from tests.suites.innodb_servers import ROOM, made, running, value

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"no_such_thing": "1"}, "unknown variable 'no_such_thing=1'"),
        ({"sort_buffer_size": "lots"}, "Error while setting value 'lots' to 'sort_buffer_size'"),
        ({"innodb_flush_method": "lots"}, "Error while setting value 'lots' to 'innodb-flush-method'"),
    ],
    ids=["unknown", "value", "value of the storage engine"],
)
def test_the_server_is_asked_before_whether_it_knows_a_setting(
    mariadb_11: Build, settings: dict[str, str], said: str
) -> None:
    name, value = CAPABILITIES[mariadb_11.version.engine].isolation(Isolation.READ_COMMITTED)
    require_settings(mariadb_11, ROOM, Durability.RELAXED, {"sort_buffer_size": "1M", name: value})
    with pytest.raises(SettingError, match=re.escape(said)):
        require_settings(mariadb_11, ROOM, Durability.RELAXED, settings)


@pytest.fixture(scope="module")
def started(mariadb_11: Build, server_folders: object) -> Iterator[InnodbServer]:
    """A server without rows, shared by the tests that only look."""
    assert callable(server_folders)
    with server_folders() as folder, running(mariadb_11, folder) as server:
        yield server


def test_the_configuration_is_in_effect(started: InnodbServer) -> None:
    settings = started.settings()
    assert settings["version"].startswith("11.8.6-MariaDB")
    assert settings["innodb_flush_log_at_trx_commit"] == "0"
    assert settings["sync_binlog"] == "0"
    assert (settings["log_bin"], settings["binlog_format"]) == ("ON", "ROW")
    assert int(settings["innodb_buffer_pool_size"]) >= ROOM.buffer_bytes
    assert int(settings["innodb_log_file_size"]) == ROOM.wal_limit_bytes
    assert settings["innodb_snapshot_isolation"] == "OFF"
    assert settings["innodb_undo_tablespaces"] == "3"
    assert settings["collation_server"] == "utf8mb4_general_ci"
    assert settings["performance_schema"] == "OFF"


def test_the_schema_has_the_collation_of_the_configuration(started: InnodbServer) -> None:
    query = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = 'tidemark'"
    assert value(started, query) == "utf8mb4_general_ci"


def test_there_is_no_account_but_root_and_the_load(started: InnodbServer) -> None:
    query = "SELECT GROUP_CONCAT(user ORDER BY user) FROM mysql.global_priv WHERE user NOT LIKE 'mariadb.sys'"
    assert set(str(value(started, query)).split(",")) == {"root", "tidemark"}


def test_every_thread_has_a_role(started: InnodbServer) -> None:
    with started.connect():
        roles = started.roles()
    assert {thread.id for thread in psutil.Process(started.pid).threads()} <= roles.keys()
    assert {"client connection", "page cleaner", "InnoDB worker"} <= set(roles.values())


def test_the_data_of_mysql_are_refused_and_the_other_way_round(
    mariadb_11: Build, mysql_9: Build, server_folder: Path
) -> None:
    for owner, other, sentence in (
        (mysql_9, mariadb_11, "last used by MySQL 9.7.2, not MariaDB 11.8.6"),
        (mariadb_11, mysql_9, "last used by MariaDB 11.8.6, not MySQL 9.7.2"),
    ):
        folder = server_folder / owner.version.engine
        folder.mkdir()
        created = made(owner, folder)
        created.create()
        for attempt in (made(other, folder).start, made(other, folder).create):
            with pytest.raises(ServerError) as refused:
                attempt()
            assert refused.value.what == f"the data directory was {sentence}"
        created.start()
        created.destroy()

"""A real MySQL: what it does in its own way."""

import re
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from build.finished_build import Build
from suites.capabilities import SettingError
from suites.engines import require_settings
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.server import ServerError
from tests.suites.innodb_servers import ROOM, made, running, value

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"no_such_thing": "1"}, "unknown variable 'no_such_thing=1'"),
        ({"sort_buffer_size": "lots"}, "Error while setting value 'lots' to 'sort_buffer_size'"),
    ],
)
def test_the_server_is_asked_before_whether_it_knows_a_setting(
    mysql_9: Build, settings: dict[str, str], said: str
) -> None:
    require_settings(mysql_9, ROOM, Durability.RELAXED, {"sort_buffer_size": "1M"})
    with pytest.raises(SettingError, match=re.escape(said)):
        require_settings(mysql_9, ROOM, Durability.RELAXED, settings)


@pytest.fixture(scope="module")
def started(mysql_9: Build, server_folders: object) -> Iterator[InnodbServer]:
    """A server without rows, shared by the tests that only look."""
    assert callable(server_folders)
    with server_folders() as folder, running(mysql_9, folder) as server:
        yield server


def test_the_configuration_is_in_effect(started: InnodbServer) -> None:
    settings = started.settings()
    assert settings["innodb_flush_log_at_trx_commit"] == "0"
    assert settings["sync_binlog"] == "0"
    assert settings["gtid_mode"] == "OFF"
    assert settings["log_bin"] == "ON"
    assert settings["innodb_adaptive_hash_index"] == "OFF"
    assert int(settings["innodb_buffer_pool_size"]) >= ROOM.buffer_bytes
    assert int(settings["innodb_redo_log_capacity"]) == ROOM.wal_limit_bytes
    assert "mysqlx_port" not in settings or settings.get("mysqlx") == "OFF"
    assert "default_authentication_plugin" not in settings


def test_the_account_logs_in_by_caching_sha2_password(started: InnodbServer) -> None:
    plugin = "SELECT plugin FROM mysql.user WHERE user = 'tidemark'"
    assert value(started, plugin) == "caching_sha2_password"
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        pymysql.connect(unix_socket=str(started.address.socket), user="tidemark", password="wrong")


def test_a_data_directory_left_by_another_version_is_refused(mysql_9: Build, server_folder: Path) -> None:
    server = made(mysql_9, server_folder)
    server.create()
    history = server.data / "mysql_upgrade_history"
    history.write_text(history.read_text().replace('"9.7.2"', '"9.6.0"'))
    with pytest.raises(ServerError, match=r"last used by MySQL 9\.6\.0, not 9\.7\.2"):
        server.start()
    with pytest.raises(ServerError, match=r"last used by MySQL 9\.6\.0"):
        server.create()


def test_a_damaged_redo_log_is_said_with_the_log(mysql_9: Build, server_folder: Path) -> None:
    server = made(mysql_9, server_folder)
    try:
        server.create()
        for file in (server.data / "#innodb_redo").iterdir():
            file.unlink()
        (server.data / "#innodb_redo").rmdir()
        (server.data / "ibdata1").write_bytes(b"nothing")
        with pytest.raises(ServerError) as caught:
            server.start()
        assert "did not start" in str(caught.value)
        assert "InnoDB" in str(caught.value)
    finally:
        server.destroy()

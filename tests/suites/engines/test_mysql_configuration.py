"""my.cnf: whole files for four releases, and what differs between versions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import parse_version
from suites.capabilities import CapabilityError, login_plugin
from suites.keys.durability import Durability
from suites.mysql.engine import MysqlServer
from tests.manifests import a_manifest
from tests.suites.engines.test_postgres_configuration import ROOM
from tests.suites.engines.test_postgres_configuration import settings as pairs_of
from tests.suites.golden import require_golden
from tests.suites.servers import MIB

FOLDER = Path("/srv/tidemark/data/1")


def build_of(release: str) -> Build:
    return Build(parse_version(f"mysql@{release}"), release, "key", Path("/opt/mysql"), a_manifest())


def rendered(
    release: str, chosen: Mapping[str, str] | None = None, durability: Durability = Durability.RELAXED
) -> str:
    return MysqlServer.render(build_of(release), ROOM, durability, FOLDER, chosen or {})


def settings(text: str) -> list[tuple[str, str]]:
    return pairs_of(text.replace("[mysqld]\n", ""))


@pytest.mark.parametrize("release", ["5.7.44", "8.0.28", "8.4.8", "9.7.2"])
def test_the_whole_file(release: str) -> None:
    require_golden(f"my-{release}.cnf", rendered(release))


@pytest.mark.parametrize(("release", "by_capacity"), [("5.7.44", False), ("8.0.29", False), ("8.0.30", True)])
def test_redo_is_sized_as_the_version_can(release: str, by_capacity: bool) -> None:
    names = dict(settings(rendered(release)))
    assert ("innodb_redo_log_capacity" in names) == by_capacity
    assert ("innodb_log_file_size" in names) != by_capacity
    size = names.get("innodb_redo_log_capacity") or 2 * int(names["innodb_log_file_size"])
    assert int(size) == ROOM.wal_limit_bytes


@pytest.mark.parametrize(
    ("buffers", "most_more"), [(128 * MIB, 1 * MIB), (445 * MIB, 1 * MIB), (40 * 1024 * MIB, 80 * MIB)]
)
def test_of_a_declared_memory_the_pool_takes_no_more_than_it_was_given(buffers: int, most_more: int) -> None:
    """MySQL rounds it up to a multiple of its chunk, of one mebibyte or more."""
    text = MysqlServer.render(
        build_of("9.7.2"),
        replace(ROOM, memory_bytes=2 * buffers, buffer_bytes=buffers),
        Durability.RELAXED,
        FOLDER,
        {},
    )
    chunk = int(dict(settings(text))["innodb_buffer_pool_chunk_size"])
    assert 1 * MIB <= chunk <= most_more
    assert chunk % MIB == 0
    assert buffers / chunk <= 1000


@pytest.mark.parametrize(("durability", "value"), [(Durability.RELAXED, "0"), (Durability.FULL, "1")])
def test_durability_is_the_commit_only(durability: Durability, value: str) -> None:
    text = dict(settings(rendered("9.7.2", durability=durability)))
    other = dict(settings(rendered("9.7.2")))
    changed = {"innodb_flush_log_at_trx_commit", "sync_binlog"}
    assert {text[name] for name in changed} == {value}
    assert {name: text[name] for name in text.keys() - changed} == {
        name: other[name] for name in other.keys() - changed
    }


def test_what_is_chosen_comes_last() -> None:
    pairs = settings(rendered("9.7.2", {"innodb_purge_threads": "1"}))
    assert pairs[-1] == ("innodb_purge_threads", "1")


def test_settings_that_a_version_lacks_are_refused_with_what_to_do() -> None:
    with pytest.raises(CapabilityError, match="set innodb_redo_log_capacity"):
        rendered("9.7.2", {"innodb_log_file_size": "1G"})
    with pytest.raises(CapabilityError, match="set innodb_log_file_size"):
        rendered("5.7.44", {"innodb_redo_log_capacity": "1G"})


def test_a_version_that_is_too_old_is_refused() -> None:
    with pytest.raises(CapabilityError, match=r"the oldest version that can be measured is 5\.7"):
        rendered("5.6.51")


def test_logins_as_the_version_allows() -> None:
    assert login_plugin(build_of("5.7.44")) == "mysql_native_password"
    assert login_plugin(build_of("8.0.28")) == "caching_sha2_password"
    assert login_plugin(build_of("9.7.2")) == "caching_sha2_password"

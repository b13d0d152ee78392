"""MariaDB's option file: whole files of two releases, and what it does not share with MySQL's."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import parse_version
from suites.capabilities import CapabilityError
from suites.keys.durability import Durability
from suites.mariadb.engine import MariadbServer, role_of
from tests.manifests import a_manifest
from tests.suites.engines.test_postgres_configuration import ROOM
from tests.suites.engines.test_postgres_configuration import settings as pairs_of
from tests.suites.golden import require_golden

FOLDER = Path("/srv/tidemark/data/1")


def rendered(
    release: str, chosen: Mapping[str, str] | None = None, durability: Durability = Durability.RELAXED
) -> str:
    build = Build(parse_version(f"mariadb@{release}"), release, "key", Path("/opt/mariadb"), a_manifest())
    return MariadbServer.render(build, ROOM, durability, FOLDER, chosen or {})


def settings(text: str) -> dict[str, str]:
    return dict(pairs_of(text.replace("[mariadbd]\n", "")))


@pytest.mark.parametrize("release", ["10.11.18", "11.8.6"])
def test_the_whole_file(release: str) -> None:
    require_golden(f"mariadb-{release}.cnf", rendered(release))


def test_the_redo_log_is_one_file_of_the_whole_size() -> None:
    assert int(settings(rendered("11.8.6"))["innodb_log_file_size"]) == ROOM.wal_limit_bytes


@pytest.mark.parametrize(("durability", "value"), [(Durability.RELAXED, "0"), (Durability.FULL, "1")])
def test_durability_is_the_commit_only(durability: Durability, value: str) -> None:
    text, other = settings(rendered("11.8.6", durability=durability)), settings(rendered("11.8.6"))
    changed = {"innodb_flush_log_at_trx_commit", "sync_binlog"}
    assert {text.pop(name) for name in changed} == {value}
    assert {name: other[name] for name in text} == text


def test_what_is_chosen_comes_last() -> None:
    assert rendered("11.8.6", {"performance_schema": "ON"}).endswith("\nperformance_schema = ON\n")


def test_a_larger_buffer_pool_that_is_chosen_has_room_to_be_one() -> None:
    limit = "loose_innodb_buffer_pool_size_max"
    assert settings(rendered("11.8.6"))[limit] == str(ROOM.buffer_bytes)
    assert settings(rendered("11.8.6", {"innodb_buffer_pool_size": "64G"}))[limit] == "64G"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("innodb_redo_log_capacity", "set innodb_log_file_size"),
        ("gtid_mode", "always written"),
        ("innodb_change_buffering", "there is no change buffer"),
    ],
)
def test_a_setting_that_it_lacks_is_refused_with_what_to_do(name: str, hint: str) -> None:
    with pytest.raises(CapabilityError, match=rf"(?s)mariadb@11\.8\.6 has no setting {name}.*{hint}"):
        rendered("11.8.6", {name: "1"})


def test_a_version_that_is_too_old_is_refused() -> None:
    with pytest.raises(CapabilityError, match=r"the oldest version that can be measured is 10\.11"):
        rendered("10.6.20")


@pytest.mark.parametrize(
    ("name", "role"),
    [("page_cleaner", "page cleaner"), ("ib_tpool_worker", "InnoDB worker"), ("mariadbd", "background")],
)
def test_roles_of_threads(name: str, role: str) -> None:
    assert role_of(name) == role

"""Whose data directory it is: no server starts on that of another engine or release."""

import json
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import parse_version
from suites.innodb.reset import file_sizes
from suites.innodb.server import require_own_data
from suites.server import ServerError
from tests.manifests import a_manifest


def build_of(text: str) -> Build:
    version = parse_version(text)
    return Build(version, version.ref, "key", Path("/opt"), a_manifest())


def used_by(data: Path, version: str) -> Path:
    """A folder with the files by which a server that `version` has used is known."""
    upgrades = json.dumps({"upgrade_history": [{"version": "8.4.8"}, {"version": f"{version[6:]}-tidemark"}]})
    files = {
        "mysql@9.7.2": {"auto.cnf": "", "mysql.ibd": "", "mysql_upgrade_history": upgrades},
        "mysql@8.0.45": {"auto.cnf": "", "mysql.ibd": ""},
        "mysql@5.7.44": {"auto.cnf": "", "mysql_upgrade_info": "5.7.44"},
        "mariadb@10.11.18": {"aria_log_control": "", "mysql_upgrade_info": "10.11.18-MariaDB"},
        "mariadb@11.8.6": {"aria_log_control": "", "mariadb_upgrade_info": "11.8.6-MariaDB\n"},
        "mariadb@killed": {"aria_log_control": ""},
        "postgres@18.6": {"PG_VERSION": "18\n"},
        "nobody": {"PG_VERSION": "root:x:0:0\n", "mysql_upgrade_info": "something-MariaDB"},
    }
    data.mkdir()
    for name, text in files[version].items():
        (data / name).write_text(text)
    return data


@pytest.mark.parametrize(
    ("version", "owner", "sentence"),
    [
        ("mysql@9.7.2", "mariadb@11.8.6", "last used by MariaDB 11.8.6, not MySQL 9.7.2"),
        ("mysql@9.7.2", "mariadb@10.11.18", "last used by MariaDB 10.11.18, not MySQL 9.7.2"),
        ("mysql@9.7.2", "mariadb@killed", "last used by MariaDB of an unknown release, not MySQL 9.7.2"),
        ("mariadb@11.8.6", "mysql@9.7.2", "last used by MySQL 9.7.2, not MariaDB 11.8.6"),
        ("mariadb@11.8.6", "mysql@8.0.45", "last used by MySQL of an unknown release, not MariaDB 11.8.6"),
        ("mariadb@11.8.6", "mysql@5.7.44", "last used by MySQL of an unknown release, not MariaDB 11.8.6"),
        ("mariadb@11.8.6", "mariadb@10.11.18", "last used by MariaDB 10.11.18, not 11.8.6"),
        ("mariadb@11.8.6", "postgres@18.6", "last used by Postgres 18, not MariaDB 11.8.6"),
    ],
)
def test_the_data_of_another_are_refused(tmp_path: Path, version: str, owner: str, sentence: str) -> None:
    data = used_by(tmp_path / "data", owner)
    with pytest.raises(ServerError) as refused:
        require_own_data(data, build_of(version))
    assert refused.value.what == f"the data directory was {sentence}"
    assert refused.value.where == str(data)
    assert refused.value.hint.startswith("remove it")


@pytest.mark.parametrize(
    ("version", "owner"),
    [
        ("mysql@9.7.2", "mysql@9.7.2"),
        ("mysql@8.0.45", "mysql@8.0.45"),
        ("mariadb@11.8.6", "mariadb@11.8.6"),
        ("mariadb@10.11.18", "mariadb@10.11.18"),
        ("mariadb@11.8.6", "nobody"),
    ],
)
def test_its_own_and_new_data_are_accepted(tmp_path: Path, version: str, owner: str) -> None:
    require_own_data(used_by(tmp_path / "data", owner), build_of(version))


@pytest.mark.parametrize(
    ("files", "log", "undo"),
    [
        (
            {"#innodb_redo/#ib_redo6": 32, "#innodb_redo/#ib_redo7_tmp": 32, "undo_001": 16, "ibdata1": 12},
            64,
            28,
        ),
        ({"ib_logfile0": 96, "undo001": 10, "undo002": 11, "ibdata1": 12, "tidemark/undo.ibd": 9}, 96, 33),
        ({"ib_logfile0": 48, "ib_logfile1": 48, "ibdata1": 76, "ibtmp1": 12, "binlog.000001": 5}, 96, 76),
    ],
    ids=["MySQL 9", "MariaDB 11", "MySQL 5.7"],
)
def test_the_sizes_of_redo_and_undo(tmp_path: Path, files: dict[str, int], log: int, undo: int) -> None:
    for name, size in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * size)
    assert file_sizes(tmp_path) == {"log_file_bytes": log, "undo_bytes": undo}

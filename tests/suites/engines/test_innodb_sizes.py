"""The files of InnoDB whose sizes are recorded after a reset."""

from pathlib import Path

import pytest

from suites.innodb.reset import file_sizes


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
def test_redo_and_undo(tmp_path: Path, files: dict[str, int], log: int, undo: int) -> None:
    for name, size in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * size)
    assert file_sizes(tmp_path) == {"log_file_bytes": log, "undo_bytes": undo}

"""What is read of a log, from real outputs of pg_waldump and a file of the binary log."""

import pytest

from suites.innodb.log_volume import event_types
from suites.metrics import WAL_IMAGES, WAL_RECORDS
from suites.postgres.log_volume import RecordType, record_types, volume
from tests.robustness.fuzzing.program_outputs import binary_log_files
from tests.suites.golden import GOLDEN

WALDUMP = (GOLDEN / "waldump-18.txt").read_text()


def test_records_and_images_are_apart() -> None:
    types = list(record_types(WALDUMP))
    assert types[0] == RecordType("XLOG/FPI_FOR_HINT", 559, 27391, 4466724)
    assert "Total" not in {entry.name for entry in types}
    found = volume(types)
    assert found.commits == 15157
    # The totals that pg_waldump states, without the records that consist of an image.
    assert found.amounts == {WAL_RECORDS: 4838214 - 27391, WAL_IMAGES: 5352108}


def test_what_happens_by_the_clock_is_left_out() -> None:
    work = [RecordType("Heap/INSERT", 2, 300, 8192), RecordType("XLOG/NOOP", 2, 200, 0)]
    background = [
        RecordType("Standby/RUNNING_XACTS", 1, 60, 0),
        RecordType("XLOG/CHECKPOINT_ONLINE", 1, 114, 0),
    ]
    assert volume([*work, *background]) == volume(work)
    assert volume(work).amounts[WAL_RECORDS] == 500


def test_the_events_of_a_binary_log() -> None:
    (content,) = binary_log_files()
    assert list(event_types(content, 4)) == [15, 33, 2, 19, 31, 16]
    assert list(event_types(content, 4 + 122)) == [33, 2, 19, 31, 16]
    assert list(event_types(content[:-1], 4)) == [15, 33, 2, 19, 31], "the last one is cut off"
    with pytest.raises(ValueError, match="an event of 0 bytes at"):
        list(event_types(content + bytes(19), 4))

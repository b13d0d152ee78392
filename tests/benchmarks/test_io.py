"""Which pages of a file the kernel has cached, by which the benchmark of a declared memory is judged."""

import os
import tempfile
from pathlib import Path

from benchmarks.io.cached_pages import PAGE, resident_pages, segments
from suites.control_groups.page_cache import forget


def test_pages_that_were_read_are_resident_and_those_that_were_dropped_are_not() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # a tmpfs would have them all
        folder = Path(name)
        (folder / "16384").write_bytes(os.urandom(64 * PAGE))
        assert resident_pages(folder / "16384") == [True] * 64
        forget(folder)
        assert not any(resident_pages(folder / "16384"))
        with (folder / "16384").open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            os.pread(file.fileno(), PAGE, 10 * PAGE)
        assert [number for number, is_in in enumerate(resident_pages(folder / "16384")) if is_in] == [10]


def test_segments_of_a_relation_follow_one_another(tmp_path: Path) -> None:
    for name in ("16384", "16384.1", "16384.2", "16384_fsm", "163841"):
        (tmp_path / name).touch()
    found = [file.name for file in segments(tmp_path / "16384")]
    assert found == ["16384", "16384.1", "16384.2"]

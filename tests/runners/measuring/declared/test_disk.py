"""A declared disk in a session: what is refused before anything is compiled, and what is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from build.progress import Silent
from build.version import parse_version
from runners.fitness.disk_probe import probe, slower_than
from runners.fitness.storage import Mount
from runners.measuring import declared_limits
from runners.measuring.declared_limits import note_slow_disk, require_declared
from runners.measuring.request import Request
from suites.control_groups.declared import DiskSpeed, LimitError, parse_disk
from suites.control_groups.group import DiskLimit
from suites.control_groups.storage import BlockDevice
from suites.definition import load_suite
from suites.sizing import Hardware, sizes

SUITE = load_suite("write-heavy").with_declared(None, parse_disk("500iops"))
MACHINE = Hardware(2, 8 * 2**30)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A machine with its home on a disk; the limits of the groups that are tried there."""
    limits: list[object] = []

    class Tried:
        def remove(self) -> None: ...

    def make(_: str, given: list[object]) -> Tried:
        limits.extend(given)
        return Tried()

    monkeypatch.setattr(declared_limits, "device_of", lambda *_: BlockDevice("254:0", "vda"))
    monkeypatch.setattr(declared_limits, "make_group", make)
    return limits


def require(folder: Path, version: str = "mysql@9.7.2") -> None:
    request = Request((parse_version(version),), SUITE, "smoke", SUITE.steps, 3)
    needed = sizes(request.suite, request.profile, MACHINE, request.steps)
    require_declared(request, needed, MACHINE, Home(folder))


@pytest.mark.parametrize("version", ["postgres@18.6", "mysql@9.7.2", "mariadb@11.8.6"])
def test_the_limit_of_a_session_is_of_the_disk_of_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: list[object], version: str
) -> None:
    home = Mount("/dev/vda1", "/", "ext4", "rw")
    monkeypatch.setattr(declared_limits, "home_mount", lambda *_: home)
    require(tmp_path, version)
    assert tried == [DiskLimit(BlockDevice("254:0", "vda"), DiskSpeed(500))]
    monkeypatch.setattr(declared_limits, "home_mount", lambda *_: replace(home, kind="jfs"))
    with pytest.raises(LimitError, match="cannot be limited on jfs: "):
        require(tmp_path, version)


def test_a_folder_in_memory_is_refused_by_name() -> None:
    with pytest.raises(LimitError, match="cannot be limited on a tmpfs, whose files are memory"):
        require(Path("/dev/shm/none"))


@pytest.mark.parametrize(
    ("declared", "found", "told"),
    [
        ("500iops", DiskSpeed(499, 10**9), "499 random reads per second"),
        ("500iops", DiskSpeed(500, 1), ""),
        ("500iops,9MB/s", DiskSpeed(1, 8_400_000), "1 random reads per second and 8 MB/s of writes"),
        ("500iops,9MB/s", DiskSpeed(), ""),
    ],
)
def test_a_disk_that_does_less_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, found: DiskSpeed, told: str
) -> None:
    notes: list[str] = []
    shown = Silent()
    monkeypatch.setattr(shown, "note", notes.append)
    monkeypatch.setattr(declared_limits, "probe", lambda _: found)
    assert slower_than(parse_disk(declared), found) == told
    note_slow_disk(parse_disk(declared), tmp_path, shown)
    note_slow_disk(None, tmp_path, shown)
    assert len(notes) == bool(told)
    assert all(f"--disk {declared}, in a probe of a second {told}:" in note for note in notes)


def test_the_probe_leaves_nothing_and_measures_what_a_disk_does(tmp_path: Path) -> None:
    found = probe(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert all(value is None or value > 0 for value in (found.iops, found.bytes_per_second))

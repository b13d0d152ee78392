"""A declared disk in a session: what is refused before anything is compiled, and what is told."""

from pathlib import Path

import pytest

from build.home import Home
from build.progress import Silent
from build.version import parse_version
from runners.fitness.disk_probe import probe, slower_than
from runners.measuring import declared_limits
from runners.measuring.declared_limits import note_slow_disk, require_declared
from runners.measuring.request import Request
from runners.measuring.variants import Variant
from suites.control_groups.devices import BlockDevice
from suites.control_groups.disk_speed import DiskSpeed, parse_disk
from suites.control_groups.group import hierarchy_with
from suites.control_groups.limited import DiskLimit
from suites.control_groups.limits import LimitError
from suites.definition import load_suite
from suites.sizing import Hardware, sizes
from tests.suites.control_groups.fake_groups import FakeGroups

SUITE = load_suite("write-heavy").with_declared(None, parse_disk("500iops"))
MACHINE = Hardware(2, 8 * 2**30)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine with version 1 or 2 of control groups, and its home on a disk."""
    number: int = request.param
    controllers = ("io", "memory") if number == 2 else ("blkio", "memory")
    kernel = FakeGroups(tmp_path, number, "/box/job", controllers)

    class Tried:
        def remove(self) -> None: ...

    monkeypatch.setattr(declared_limits, "hierarchy_with", lambda kind: hierarchy_with(kind, *kernel.where))
    monkeypatch.setattr(declared_limits, "device_of", lambda *_: BlockDevice("254:0", "vda"))
    monkeypatch.setattr(declared_limits, "make_group", lambda *_: Tried())
    monkeypatch.setattr(declared_limits, "home_mount", lambda *_: None)
    monkeypatch.setattr(declared_limits, "attributes_writes", lambda found, _: found.version == 2)
    return number


def asked(name: str, **settings: str) -> Request:
    variants = {"x": Variant(settings=settings)} if settings else {}
    measured = (parse_version(f"{name}#x" if settings else name),)
    return Request(measured, SUITE, "smoke", SUITE.steps, 3, variants=variants)


def require(request: Request, folder: Path) -> None:
    needed = sizes(request.suite, request.profile, MACHINE, request.steps)
    require_declared(request, needed, MACHINE, Home(folder))


@pytest.mark.parametrize(
    ("request_", "limited_in_1"),
    [
        (asked("postgres@18.6"), False),
        (asked("postgres@18.6", debug_io_direct="data, wal"), True),
        (asked("postgres@18.6", debug_io_direct="wal"), False),
        (asked("mysql@9.7.2"), True),
        (asked("mysql@9.7.2", innodb_flush_method="fsync"), False),
        (asked("mariadb@11.8.6"), True),
        (asked("mariadb@11.8.6", innodb_data_file_buffering="ON"), False),
    ],
)
def test_version_1_is_for_servers_that_write_directly(
    tmp_path: Path, version: int, request_: Request, limited_in_1: bool
) -> None:
    if version == 2 or limited_in_1:
        require(request_, tmp_path)
        return
    with pytest.raises(LimitError, match=r"cannot be limited: .* version 1 of control groups") as caught:
        require(request_, tmp_path)
    assert str(request_.versions[0]) in caught.value.what
    assert (caught.value.where, "systemd.unified_cgroup_hierarchy=1" in caught.value.hint) == ("--disk", True)


def test_a_folder_in_memory_is_refused_by_name() -> None:
    with pytest.raises(LimitError, match="cannot be limited on a tmpfs, whose files are memory"):
        require(asked("mysql@9.7.2"), Path("/dev/shm/none"))


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


def test_the_limit_of_a_session_is_of_the_disk_of_its_home(tmp_path: Path, version: int) -> None:
    del version
    tried: list[object] = []

    class Tried:
        def remove(self) -> None: ...

    def make(_: str, limits: list[object]) -> Tried:
        tried.extend(limits)
        return Tried()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declared_limits, "make_group", make)
        require(asked("mysql@9.7.2"), tmp_path)
    assert tried == [DiskLimit(BlockDevice("254:0", "vda"), DiskSpeed(500))]

"""A declared disk: how it is written, which device it is of, and what the kernel is told; on fake groups."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.control_groups.declared import (
    MAX_IOPS,
    MAX_RATE,
    MIN_IOPS,
    MIN_RATE,
    Declared,
    DiskSpeed,
    DiskUse,
    LimitError,
    parse_disk,
)
from suites.control_groups.group import DiskLimit, MemoryLimit, make_group
from suites.control_groups.storage import ATTRIBUTED, BlockDevice, device_of_number, require_attributed
from tests.suites.control_groups.fake_groups import FakeGroups

SPEED = DiskSpeed(2000, 100_000_000)
DISK = DiskLimit(BlockDevice("254:0", "vda"), SPEED)
MEMORY = MemoryLimit(2**30)


@pytest.mark.parametrize(
    ("written", "speed", "recorded"),
    [
        ("2000iops", DiskSpeed(2000), "2000iops"),
        ("100MB/s", DiskSpeed(None, 100_000_000), "100MB/s"),
        ("100MiB/s, 2000iops", DiskSpeed(2000, 100 * 2**20), "2000iops,100MiB/s"),
        ("1.5GB/s", DiskSpeed(None, 1_500_000_000), "1500MB/s"),
        ("1.5MiB/s", DiskSpeed(None, 1_572_864), "1.572864MB/s"),
    ],
)
def test_speeds(written: str, speed: DiskSpeed, recorded: str) -> None:
    assert parse_disk(written) == speed
    assert str(speed) == recorded


RATES = st.integers(MIN_RATE, MAX_RATE)


@given(st.integers(MIN_IOPS, MAX_IOPS) | st.none(), RATES | RATES.map(lambda rate: rate // 2**20 * 2**20))
def test_what_is_recorded_is_what_was_asked_for(iops: int | None, rate: int) -> None:
    speed = DiskSpeed(iops, max(rate, MIN_RATE))
    assert parse_disk(str(speed)) == speed


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(st.text() | st.from_regex(r"[0-9]+(iops|[KMG]?i?B/s)?(,[0-9.]+(iops|[MG]i?B/s))?", fullmatch=True))
def test_any_text(written: str) -> None:
    try:
        speed = parse_disk(written)
    except LimitError:
        return
    assert speed.iops is None or MIN_IOPS <= speed.iops <= MAX_IOPS
    assert speed.bytes_per_second is None or MIN_RATE <= speed.bytes_per_second <= MAX_RATE
    assert speed != DiskSpeed()


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("2000", "'2000' is no speed of a disk"),
        ("2000iops,3000iops", "'2000iops,3000iops' is no speed of a disk"),
        ("100MB", "'100MB' is no speed of a disk"),
        ("", "'' is no speed of a disk"),
        ("1iops", "1iops is no speed of a disk"),
        ("0.5MB/s", "0.5MB/s is no speed of a disk"),
    ],
)
def test_what_is_no_speed(written: str, what: str) -> None:
    with pytest.raises(LimitError) as caught:
        parse_disk(written)
    assert caught.value.what == what
    assert "iops" in caught.value.hint or "MB/s" in caught.value.hint


def test_declared_in_words_and_as_options() -> None:
    declared = Declared.of({"disk": "500iops", "memory": "1G", "seconds": 5})
    assert str(declared) == "1G of memory and a disk of 500iops for each server"
    assert declared.options == {"memory": "1G", "disk": "500iops"}
    assert declared.arguments(Declared("1G", "100MB/s")) == ["--disk", "500iops"]
    assert (str(Declared()), Declared().arguments()) == ("", [])


# --- what the kernel is told


def text(path: Path) -> str:
    return path.read_text().strip()


def test_one_group_has_both_limits(tmp_path: Path) -> None:
    """The memory controller too where only the disk is limited, or the page cache is written for nobody."""
    kernel = FakeGroups(tmp_path, "/box/job", ("cpu", "io", "memory"))
    made = make_group("tidemark-x", [DISK], kernel, *kernel.where)
    assert text(made.folder / "io.max") == "254:0 rbps=100000000 wbps=100000000 riops=2000 wiops=2000"
    assert text(made.folder.parent / "cgroup.subtree_control").split() == ["io", "memory"]
    assert text(made.folder / "memory.max") == "max"
    made.limit(is_on=False)
    assert text(made.folder / "io.max") == "254:0 rbps=max wbps=max riops=max wiops=max"
    both = make_group("tidemark-y", [MEMORY, DISK], kernel, *kernel.where)
    assert text(both.folder / "memory.max") == str(2**30)
    both.limit(is_on=False)
    assert (text(both.folder / "memory.max"), text(both.folder / "memory.swap.max")) == ("max", "0")


STAT = "254:16 rbytes=9 rios=9\n254:0 rbytes=8192 wbytes=4096 rios=30 wios=4 dbytes=0 dios=0\n"


def test_what_was_read_and_written_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        DISK.use(tmp_path)
    (tmp_path / "io.stat").write_text("")
    nothing = DISK.use(tmp_path)
    assert nothing == DiskUse(SPEED, (0, 0), (0, 0))
    (tmp_path / "io.stat").write_text(STAT)
    used = DISK.use(tmp_path)
    assert used == DiskUse(SPEED, (30, 4), (8192, 4096))
    assert used.share_since(nothing, 0.1) == pytest.approx(30 / 200)
    assert DiskUse(DiskSpeed(None, 4096), (30, 4), (8192, 4096)).share_since(nothing, 4) == pytest.approx(0.5)


def test_a_limit_that_cannot_be_had_leaves_no_group(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/box", ("memory", "io"))
    unknown = DiskLimit(BlockDevice("9:9", "md9"), SPEED)
    with pytest.raises(LimitError, match=r"No such device \(limiting md9\)") as caught:
        make_group("tidemark-x", [MEMORY, unknown], kernel, *kernel.where)
    assert caught.value.where == "--memory and --disk"
    assert not list(tmp_path.rglob("tidemark-x"))


@pytest.mark.parametrize(
    ("controllers", "missing", "way"),
    [(("memory",), "io", "CONFIG_BLK_CGROUP"), (("io",), "memory", "cgroup_enable=memory")],
)
def test_a_kernel_without_a_controller(
    tmp_path: Path, controllers: tuple[str, ...], missing: str, way: str
) -> None:
    kernel = FakeGroups(tmp_path, "/box/job", controllers)
    with pytest.raises(LimitError) as caught:
        make_group("tidemark-x", [DISK], kernel, *kernel.where)
    assert caught.value.what.endswith(f"2000iops,100MB/s: this machine has no {missing} controller")
    assert way in caught.value.hint


def test_a_kernel_without_throttling(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/box/job", ("io", "memory"))
    kernel.throttles = False
    with pytest.raises(LimitError, match="the kernel has no CONFIG_BLK_DEV_THROTTLING"):
        make_group("tidemark-x", [DISK], kernel, *kernel.where)


def test_without_a_limit_of_memory_kills_are_of_the_machine(tmp_path: Path) -> None:
    """The kernel counts what it kills of the group for any reason."""
    kernel = FakeGroups(tmp_path, "/box/job", ("io", "memory"))
    disk = make_group("tidemark-x", [DISK], kernel, *kernel.where)
    both = make_group("tidemark-y", [DISK, MEMORY], kernel, *kernel.where)
    for made, kills in ((disk, 0), (both, 1)):
        (made.folder / "memory.events").write_text("oom 1\noom_kill 1\n")
        assert made.kills() == kills
    assert both.killed().endswith("its limit, 1G")


# --- the device behind a folder


def fake_sys(root: Path) -> Path:
    """A disk with a partition, and a device of the mapper."""
    vda, dm = root / "devices/pci/block/vda", root / "devices/virtual/block/dm-0"
    for folder, number in ((vda, "254:0"), (vda / "vda1", "254:1"), (dm, "252:0")):
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
    (vda / "vda1/partition").write_text("1\n")
    (dm / "dm").mkdir()
    (dm / "dm/name").write_text("vg-data\n")
    (root / "dev/block").mkdir(parents=True)
    for number, folder in (("254:0", vda), ("254:1", vda / "vda1"), ("252:0", dm)):
        (root / "dev/block" / number).symlink_to(folder)
    return root


@pytest.mark.parametrize(
    ("numbers", "device"),
    [
        ((254, 0), BlockDevice("254:0", "vda")),
        ((254, 1), BlockDevice("254:0", "vda")),
        ((252, 0), BlockDevice("252:0", "dm-0 (vg-data)")),
    ],
)
def test_devices(tmp_path: Path, numbers: tuple[int, int], device: BlockDevice) -> None:
    assert device_of_number(*numbers, tmp_path, "ext4", fake_sys(tmp_path)) == device


@pytest.mark.parametrize(
    ("kind", "called"),
    [("overlay", "overlay, the file system of a container"), ("btrfs", "btrfs, which"), ("nfs4", "nfs4:")],
)
def test_a_file_system_without_a_device_is_named(tmp_path: Path, kind: str, called: str) -> None:
    with pytest.raises(LimitError, match=f"cannot be limited on {called}") as caught:
        device_of_number(0, 53, tmp_path, kind, fake_sys(tmp_path))
    assert caught.value.where == str(tmp_path)
    with pytest.raises(LimitError, match="/sys does not show their device, 8:1"):
        device_of_number(8, 1, tmp_path, "ext4", tmp_path / "none")


@pytest.mark.parametrize(("kind", "called"), [("jfs", "jfs"), ("", "this file system")])
def test_a_file_system_whose_writes_count_for_no_group(tmp_path: Path, kind: str, called: str) -> None:
    for good in ATTRIBUTED:
        require_attributed(tmp_path, good)
    with pytest.raises(LimitError, match=f"disk of servers cannot be limited on {called}: what the kernel"):
        require_attributed(tmp_path, kind)

"""Where a server's group is made, what it gets, and how it goes: on fake groups, and on this machine's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.control_groups import group as groups
from suites.control_groups.declared import (
    MAX_MEMORY,
    MEBIBYTE,
    MIN_MEMORY,
    DiskSpeed,
    LimitError,
    MemoryUse,
    memory_text,
    parse_memory,
)
from suites.control_groups.group import (
    ASIDE,
    DiskLimit,
    GroupLimit,
    MemoryLimit,
    group_name,
    groups_below,
    make_group,
)
from suites.control_groups.storage import BlockDevice, require_page_cache
from tests.suites.control_groups.fake_groups import OWN, FakeGroups

GIB = 2**30
GIVEN = (MemoryLimit(GIB),)


def text(path: Path) -> str:
    return path.read_text().strip()


def test_beside_our_own_group(tmp_path: Path) -> None:
    """Ours has processes, so that its children cannot have controllers; those above it get them."""
    kernel = FakeGroups(tmp_path, "/user.slice/session-3.scope")
    made = make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    assert made.folder == kernel.mount / "user.slice/tidemark-x"
    assert (text(made.folder / "memory.max"), text(made.folder / "memory.swap.max")) == (str(GIB), "0")
    assert text(kernel.own / "cgroup.procs") == str(OWN), "we stay where we are"
    made.remove()
    assert not made.folder.exists()


def test_the_memory_in_use_is_what_the_kernel_counts(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/")
    made = make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    assert made.use() == MemoryUse(0, GIB), "it does not say"
    (made.folder / "memory.current").write_text(f"{GIB // 4}\n")
    assert made.use() == MemoryUse(GIB // 4, GIB)


def test_in_a_delegated_group_we_step_aside(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/user.slice/run-7.scope")
    kernel.write(kernel.mount / "cgroup.subtree_control", "+memory")
    kernel.write(kernel.mount / "user.slice/cgroup.subtree_control", "+memory")
    kernel.writable = {kernel.own}
    made = make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    assert made.folder == kernel.own / "tidemark-x"
    assert text(kernel.own / ASIDE / "cgroup.procs") == str(OWN)
    (tmp_path / "proc/self/cgroup").write_text(f"0::/user.slice/run-7.scope/{ASIDE}\n")
    assert make_group("tidemark-y", GIVEN, kernel, *kernel.where).folder == kernel.own / "tidemark-y"


def test_the_root_of_all_may_have_processes(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/")
    assert make_group("tidemark-x", GIVEN, kernel, *kernel.where).folder == kernel.mount / "tidemark-x"
    assert text(kernel.mount / "cgroup.procs") == str(OWN)


@pytest.mark.parametrize(
    ("is_root", "way"), [(True, "outside of the container"), (False, "systemd-run --user")]
)
def test_where_none_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool, way: str
) -> None:
    kernel = FakeGroups(tmp_path, "/box/job")
    kernel.writable = set()
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    with pytest.raises(LimitError) as caught:
        make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    assert caught.value.what.startswith("no control group can be made for a server with 1G of memory: ")
    assert caught.value.what.endswith("Permission denied")
    assert way in caught.value.hint


def test_a_kernel_without_the_controller(tmp_path: Path) -> None:
    kernel = FakeGroups(tmp_path, "/box", ("cpu",))
    with pytest.raises(LimitError, match="this machine has no memory controller") as caught:
        make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    assert "cgroup_enable=memory" in caught.value.hint


V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("own", "mounts"),
    [
        ("4:memory:/box\n7:blkio:/\n1:name=systemd:/\n", V1),
        ("4:memory:/box\n7:blkio:/\n0::/box\n", V1 + UNIFIED),  # a hybrid
        ("4:memory:/box\n0::/box\n", V1),  # a container of a hybrid, which has only some of its mounts
    ],
)
@pytest.mark.parametrize("limit", [MemoryLimit(GIB), DiskLimit(BlockDevice("254:0", "vda"), DiskSpeed(500))])
def test_a_machine_with_version_1_is_told_how_to_get_the_other(
    tmp_path: Path, own: str, mounts: str, limit: GroupLimit
) -> None:
    for name, text in (("cgroup", own), ("mountinfo", mounts)):
        (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/self" / name).write_text(text)
    (tmp_path / "sys/fs/cgroup/unified").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/unified/cgroup.controllers").write_text("hugetlb\n")
    with pytest.raises(LimitError) as caught:
        make_group("tidemark-x", [limit], proc=tmp_path / "proc", root=tmp_path)
    assert caught.value.what == (
        f"no control group can be made for a server with {limit}: those of this machine are of version 1, "
        "and version 2 is needed"
    )
    assert caught.value.where == limit.option
    for way in ("systemd.unified_cgroup_hierarchy=1", "Debian 11+, Ubuntu 22.04+, RHEL 9+", limit.option):
        assert way in caught.value.hint
    assert groups_below(tmp_path, tmp_path / "proc", tmp_path) == []


def test_a_machine_without_control_groups(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match="this machine has no file system of control groups"):
        make_group("tidemark-x", GIVEN, proc=tmp_path, root=tmp_path)


def test_a_group_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeGroups(tmp_path, "/box/job")
    made = make_group("tidemark-x", GIVEN, kernel, *kernel.where)
    kernel.busy = True
    monkeypatch.setattr(groups, "REMOVE_SECONDS", 0.1)
    with pytest.raises(LimitError, match="cannot be removed: Device or resource busy") as caught:
        made.remove()
    assert caught.value.where == str(made.folder)
    kernel.busy = False
    made.remove()
    made.remove()  # it is gone already, which is what is wanted


def test_groups_of_a_killed_session_are_found_wherever_they_are(tmp_path: Path) -> None:
    """It ran in another session of its user, whose group is not on our way to the root."""
    kernel = FakeGroups(tmp_path, "/user.slice/session-3.scope")
    session, other = tmp_path / "data/s1", tmp_path / "data/s2"
    for folder in (session / "1", session / "2", other / "1"):
        make_group(group_name(folder), GIVEN, kernel, *kernel.where)
    kernel.make(kernel.mount / "system.slice")
    (tmp_path / "proc/self/cgroup").write_text("0::/system.slice\n")
    found = groups_below(session, *kernel.where)
    assert {group.folder.name for group in found} == {group_name(session / "1"), group_name(session / "2")}
    assert groups_below(session, tmp_path / "no", tmp_path / "no") == []


def test_what_the_kernel_kills_is_told_with_the_limit() -> None:
    """On this machine's own groups: a program that wants more than it may have."""
    try:
        made = make_group(group_name(Path("/nonexistent/test")), [MemoryLimit(64 * MEBIBYTE)])
    except LimitError as error:
        pytest.skip(str(error))
    try:
        wants = "x = bytearray(200 << 20)"
        assert made.kills() == 0
        ended = subprocess.run(made.entered_by([sys.executable, "-c", wants]), check=False, env={})
        assert ended.returncode == -9
        assert made.kills() == 1
        assert made.killed() == "killed by the kernel: it needed more memory than its limit, 64M"
        sleeper = subprocess.Popen(made.entered_by(["sleep", "100"]), env={})
        deadline = time.monotonic() + 30
        while str(sleeper.pid) not in text(made.folder / "cgroup.procs") and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        made.remove()
    assert sleeper.wait(10) == -9, "whoever is left in it is ended"
    assert not made.folder.exists()


@pytest.mark.parametrize(
    ("written", "amount"),
    [("1G", GIB), ("1.5G", 1536 * MEBIBYTE), ("512M", 512 * MEBIBYTE), ("1GiB", GIB), ("1GB", GIB)],
)
def test_amounts_of_memory(written: str, amount: int) -> None:
    assert parse_memory(written) == amount


@given(st.integers(MIN_MEMORY // MEBIBYTE, 9_999_999).map(lambda mebibytes: mebibytes * MEBIBYTE))
def test_what_is_recorded_is_what_was_asked_for(amount: int) -> None:
    assert parse_memory(memory_text(amount)) == amount


@given(st.text() | st.from_regex(r"-?[0-9]+(\.[0-9]+)?[KMGTP]?i?B?", fullmatch=True))
def test_any_text(written: str) -> None:
    try:
        amount = parse_memory(written)
    except LimitError:
        return
    assert MIN_MEMORY <= amount <= MAX_MEMORY


@pytest.mark.parametrize(("kind", "what"), [("tmpfs", "a tmpfs, whose files are memory"), ("zfs", "ZFS")])
def test_a_file_system_whose_files_are_no_page_cache(tmp_path: Path, kind: str, what: str) -> None:
    require_page_cache(tmp_path, "ext4")
    with pytest.raises(LimitError, match=f"cannot be limited on {what}"):
        require_page_cache(tmp_path, kind)

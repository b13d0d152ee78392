"""Our control groups and their limits, on machines of files; the paths are those of real ones."""

from pathlib import Path

import pytest

from build.control_groups import controllers_of_version_1, cpu_quota, memory_limit, own_group
from build.host import usable_cores


def machine(root: Path, own: str, mounts: str, files: dict[str, str] | None = None) -> Path:
    """A machine below `root`; `files` lie below its sys/fs/cgroup."""
    found = {"proc/self/cgroup": own, "proc/self/mountinfo": mounts}
    found |= {f"sys/fs/cgroup/{name}": text for name, text in (files or {}).items()}
    for name, text in found.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OLDER = (
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)
"""A machine with both versions, whose controllers are in trees of version 1."""


@pytest.mark.parametrize(
    ("own", "mounts", "files", "limit"),
    [
        ("0::/a/b", UNIFIED, {"a/b/memory.max": "max", "a/memory.max": "2147483648"}, 2147483648),
        ("0::/a/b", UNIFIED, {"a/b/memory.max": "1073741824", "a/memory.max": "2147483648"}, 1073741824),
        ("0::/a", UNIFIED, {"a/memory.max": "max"}, None),
        ("0::/", UNIFIED, {}, None),
        ("4:memory:/box\n0::/", OLDER, {"memory/box/memory.limit_in_bytes": "536870912"}, None),
        # Without a namespace of its own, a container sees the paths of the host and mounts of its part.
        (
            "0::/docker/5a",
            "35 31 0:32 /docker/5a /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
            {"memory.max": "4294967296"},
            4294967296,
        ),
        # In the namespace of another group, its own lies outside of what it sees.
        ("0::/../elsewhere", UNIFIED, {"memory.max": "7000000000"}, 7000000000),
        ("0::/a", UNIFIED, {"a/memory.max": "99999999999999999999999"}, None),
        ("", "", {}, None),
    ],
)
def test_the_memory_of_the_smallest_group_on_the_way(
    tmp_path: Path, own: str, mounts: str, files: dict[str, str], limit: int | None
) -> None:
    root = machine(tmp_path, own, mounts, files)
    assert memory_limit(root / "proc", root) == limit


@pytest.mark.parametrize(
    ("own", "mounts", "files", "quota"),
    [
        ("0::/a/b", UNIFIED, {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b", UNIFIED, {"a/b/cpu.max": "max 100000"}, None),
        ("0::/a", UNIFIED, {"a/cpu.max": "50000 100000"}, 0.5),
        ("0::/a", UNIFIED, {"a/cpu.max": "100000 0"}, None),
    ],
)
def test_the_cpu_quota_of_the_smallest_group_on_the_way(
    tmp_path: Path, own: str, mounts: str, files: dict[str, str], quota: float | None
) -> None:
    root = machine(tmp_path, own, mounts, files)
    assert cpu_quota(root / "proc", root) == quota


def test_our_group_and_what_version_1_has(tmp_path: Path) -> None:
    root = machine(tmp_path, "4:memory:/x\n1:cpu,cpuacct:/\n0::/y", OLDER)
    found = own_group(root / "proc", root)
    assert found is not None
    assert found.path == (root / "sys/fs/cgroup/unified/y", root / "sys/fs/cgroup/unified")
    assert controllers_of_version_1(root / "proc") == {"memory", "cpu", "cpuacct"}


@pytest.mark.parametrize(("own", "mounts"), [("0::/a\n", UNIFIED), ("", ""), ("0::/a\n", ""), ("", UNIFIED)])
def test_a_machine_without_version_1(tmp_path: Path, own: str, mounts: str) -> None:
    root = machine(tmp_path, own, mounts)
    assert controllers_of_version_1(root / "proc") == set()
    assert (own_group(root / "proc", root) is not None) == bool(own and mounts)


@pytest.mark.parametrize(("quota", "cores"), [(0.5, 1), (1.0, 1), (1.9, 1), (64_000.0, None)])
def test_a_quota_leaves_whole_cores(quota: float, cores: int | None) -> None:
    every = usable_cores(1e6)
    assert usable_cores(quota) == (every if cores is None else every[-cores:])

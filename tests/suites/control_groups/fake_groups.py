"""Control groups of files, with those rules of the kernel that matter here."""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from suites.control_groups.group import GroupKernel

OWN = 100
"""The process of Tidemark."""

DEVICES = ("254:0", "254:16")
"""The whole disks that the kernel knows."""


class FakeGroups(GroupKernel):
    """Folders below `root`; `writable` are those in which this user may make groups, by default all."""

    def __init__(self, root: Path, own: str, controllers: Sequence[str] = ("memory",)) -> None:
        self.root, self.mount = root, root / "sys/fs/cgroup"
        self.writable: set[Path] | None = None
        self.busy = False
        self.throttles = True
        proc = root / "proc/self"
        proc.mkdir(parents=True)
        (proc / "mountinfo").write_text("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        (proc / "cgroup").write_text(f"0::{own}\n")
        self.mount.mkdir(parents=True)
        self._fill(self.mount, " ".join(controllers))
        self.own = self.mount
        for part in Path(own).parts[1:]:
            self.own /= part
            self.make(self.own)
        (self.own / "cgroup.procs").write_text(f"{OWN}\n")

    @property
    def where(self) -> tuple[Path, Path]:
        """What `proc` and `root` are to functions of control groups."""
        return self.root / "proc", self.root

    def make(self, folder: Path) -> None:
        self._require_access(folder.parent)
        folder.mkdir()
        self._fill(folder, (folder.parent / "cgroup.subtree_control").read_text())
        (folder / "cgroup.type").write_text("domain\n")

    def remove(self, folder: Path) -> None:
        self._require_access(folder.parent)
        if self.busy or (folder / "cgroup.procs").read_text().split():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        shutil.rmtree(folder)

    def write(self, file: Path, text: str) -> None:
        self._require_access(file.parent)
        if not file.exists():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if file.name == "cgroup.subtree_control":
            self._enable(file, text.removeprefix("+"))
        elif file.name == "cgroup.procs":
            for other in self.mount.rglob("cgroup.procs"):
                other.write_text("".join(f"{pid}\n" for pid in other.read_text().split() if pid != text))
            file.write_text(file.read_text() + f"{text}\n")
        elif file.name == "io.max":
            self._limit_device(file, text)
        else:
            file.write_text(text)

    def _limit_device(self, file: Path, text: str) -> None:
        """Keep a line of its own for each device, of those that there are."""
        number = text.split()[0]
        if number not in DEVICES:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        others = [line for line in file.read_text().splitlines() if line.split()[0] != number]
        file.write_text("".join(f"{line}\n" for line in [*others, text]))

    def _enable(self, file: Path, controller: str) -> None:
        folder = file.parent
        if controller not in (folder / "cgroup.controllers").read_text().split():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if folder != self.mount and (folder / "cgroup.procs").read_text().split():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        file.write_text(f"{file.read_text()} {controller}".strip())
        for child in folder.iterdir():
            if child.is_dir():
                self._fill(child, file.read_text())

    def _fill(self, folder: Path, controllers: str) -> None:
        names = {"cgroup.procs": "", "cgroup.subtree_control": ""}
        if "memory" in controllers.split() and folder != self.mount:
            names |= {"memory.max": "max", "memory.swap.max": "max", "memory.events": "oom 0\noom_kill 0\n"}
        if self.throttles and folder != self.mount and "io" in controllers.split():
            names["io.max"] = ""
        for name, text in names.items():
            if not (folder / name).exists():
                (folder / name).write_text(text)
        (folder / "cgroup.controllers").write_text(controllers)

    def _require_access(self, folder: Path) -> None:
        if self.writable is not None and not any(folder.is_relative_to(own) for own in self.writable):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

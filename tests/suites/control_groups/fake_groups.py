"""Control groups of files, with those rules of the kernel's version 1 or 2 that matter here."""

import errno
import os
import shutil
from pathlib import Path

from suites.control_groups.kernel import GroupKernel

OWN = 100
"""The process of Tidemark."""


class FakeGroups(GroupKernel):
    """Folders below `root`; `writable` are those in which this user may make groups, by default all."""

    def __init__(self, root: Path, version: int, own: str, *, has_memory: bool = True) -> None:
        self.root, self.version = root, version
        self.writable: set[Path] | None = None
        self.busy = False
        mount = "/sys/fs/cgroup" if version == 2 else "/sys/fs/cgroup/memory"
        self.mount = root / mount.lstrip("/")
        controller = "memory" if has_memory else "cpu"
        kind = "cgroup2 cgroup2 rw" if version == 2 else f"cgroup cgroup rw,{controller}"
        proc = root / "proc/self"
        proc.mkdir(parents=True)
        (proc / "mountinfo").write_text(f"30 23 0:26 / {mount} rw - {kind}\n")
        (proc / "cgroup").write_text(f"0::{own}\n" if version == 2 else f"4:{controller}:{own}\n")
        self.mount.mkdir(parents=True)
        self._fill(self.mount, "cpu memory" if has_memory else "cpu")
        folder = self.mount
        for part in Path(own).parts[1:]:
            folder /= part
            self.make(folder)
        (folder / "cgroup.procs").write_text(f"{OWN}\n")
        self.own = folder

    @property
    def where(self) -> tuple[Path, Path]:
        """What `proc` and `root` are to functions of control groups."""
        return self.root / "proc", self.root

    def make(self, folder: Path) -> None:
        self._require_access(folder.parent)
        folder.mkdir()
        enabled = folder.parent / "cgroup.subtree_control"
        self._fill(folder, enabled.read_text() if self.version == 2 else "memory")
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
        else:
            file.write_text(text)

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
        names = {"cgroup.procs": ""}
        if self.version == 2:
            names |= {"cgroup.controllers": controllers, "cgroup.subtree_control": ""}
        if "memory" in controllers.split() and folder != self.mount:
            names |= (
                {"memory.max": "max", "memory.swap.max": "max", "memory.events": "oom 0\noom_kill 0\n"}
                if self.version == 2
                else {"memory.limit_in_bytes": "9223372036854771712", "memory.oom_control": "oom_kill 0\n"}
            )
        for name, text in names.items():
            if not (folder / name).exists():
                (folder / name).write_text(text)
        if self.version == 2:
            (folder / "cgroup.controllers").write_text(controllers)

    def _require_access(self, folder: Path) -> None:
        if self.writable is not None and not any(folder.is_relative_to(own) for own in self.writable):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

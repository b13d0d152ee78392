"""The files of the kernel below /proc and /sys: reading and writing them."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kernel:
    """The kernel's files below `root`, which tests replace. Names begin with `/proc/` or `/sys/`."""

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Return the path of the file of this name."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """Return the stripped text of a file; None when it is missing or not readable."""
        with contextlib.suppress(OSError):
            return self.path(name).read_text(errors="replace").strip()
        return None

    def choice(self, name: str) -> str | None:
        """Return the current value, such as `madvise` of `always [madvise] never`; None as for `read`."""
        text = self.read(name)
        return None if text is None else chosen(text)

    def number(self, name: str) -> int | None:
        """Return the integer in a file; None when there is none."""
        with contextlib.suppress(ValueError):
            return int(self.read(name) or "")
        return None

    def names(self, pattern: str) -> list[str]:
        """Return the sorted names of the files that match `pattern`."""
        paths = self.root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self.root)}" for path in paths)

    def write(self, name: str, value: str) -> None:
        """Write a value. Raises OSError when not root, read-only, or refused by the kernel."""
        self.path(name).write_text(value)


def chosen(text: str) -> str:
    """Return the word in brackets; the whole text without brackets."""
    match = re.search(r"\[([^\[\]]+)\]", text)
    return match[1] if match else text.strip()

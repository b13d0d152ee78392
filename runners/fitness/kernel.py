"""What the kernel says of the machine in /proc and /sys, and what can be written there."""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kernel:
    """The kernel's files below `root`, which tests replace. Names begin with `/proc/` or `/sys/`."""

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Where the file of this name lies."""
        return self.root / name.lstrip("/")

    def read(self, name: str) -> str | None:
        """The text without blanks around it; None when it is not there or may not be read."""
        with contextlib.suppress(OSError):
            return self.path(name).read_text(errors="replace").strip()
        return None

    def choice(self, name: str) -> str | None:
        """What is set: of a file that lists all choices (`always [madvise] never`) the one in brackets."""
        text = self.read(name)
        return None if text is None else chosen(text)

    def number(self, name: str) -> int | None:
        """The whole number in the file; None when there is none."""
        with contextlib.suppress(ValueError):
            return int(self.read(name) or "")
        return None

    def names(self, pattern: str) -> list[str]:
        """The files that match `pattern`, by name."""
        found = self.root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self.root)}" for path in found)

    def write(self, name: str, value: str) -> None:
        """Set what the file stands for. Raises OSError: not root, read-only, or refused by the kernel."""
        self.path(name).write_text(value)


def chosen(text: str) -> str:
    """The word in brackets; the whole text where nothing is."""
    match = re.search(r"\[([^\[\]]+)\]", text)
    return match[1] if match else text.strip()

"""What is asked of the kernel about control groups: it makes, fills and removes their folders."""

from pathlib import Path


class GroupKernel:
    """The file system of control groups; a test has one of its own."""

    def make(self, folder: Path) -> None:
        """Make a group, in which the kernel puts its files. Raises OSError."""
        folder.mkdir()

    def remove(self, folder: Path) -> None:
        """Remove a group without processes and children. Raises OSError."""
        folder.rmdir()

    def write(self, file: Path, text: str) -> None:
        """Write into a file of a group. Raises OSError when the kernel refuses it."""
        file.write_text(text)


KERNEL = GroupKernel()
"""That of this machine."""

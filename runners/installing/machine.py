"""The machine to install on: reading its state and changing it. Tests install below another root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from build.files import make_folder, open_checked
from runners.installing.escaping import InstallError

PROGRAM_SECONDS = 120
"""The time limit of a program."""

NO_LOGIN = ("nologin", "false")


@dataclass(frozen=True)
class UserAccount:
    """A user account of the machine."""

    user_id: int
    group_id: int
    home: str
    may_log_in: bool


@dataclass(frozen=True)
class TargetMachine:
    """Files below `root`; users and services only when it is the real root."""

    root: Path = Path("/")

    @property
    def is_real(self) -> bool:
        """Whether users and services are managed, and not only files for another machine."""
        return self.root == Path("/")

    @property
    def has_systemd(self) -> bool:
        """Whether systemd is the init of this machine: sd_booted(3)."""
        return (self.root / "run/systemd/system").is_dir()

    @property
    def is_writable(self) -> bool:
        """Whether this process may change it."""
        return os.geteuid() == 0 or not self.is_real

    def path(self, name: PurePosixPath | Path) -> Path:
        """Return the path of a file of this name."""
        return self.root / str(name).lstrip("/")

    def read(self, name: PurePosixPath) -> str | None:
        """Return the text of a file; None when it is missing. Raises InstallError when it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InstallError(f"cannot be read: {error.strerror}", where=str(self.path(name))) from error

    def read_checked(self, name: PurePosixPath) -> tuple[str, os.stat_result] | None:
        """Return the text and status of a file in a folder in which others may write; None when missing.

        Raises InstallError for a link, which root would follow to a file of its own, and as `read` does.
        """
        try:
            with os.fdopen(open_checked(self.path(name)), encoding="utf-8", errors="replace") as file:
                return file.read(), os.fstat(file.fileno())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InstallError(
                f"cannot be read: {error.strerror}",
                where=str(self.path(name)),
                hint="it has to be a regular file: see who made it, and remove it",
            ) from error

    def account(self, name: str) -> UserAccount | None:
        """Return a user account; None when there is none, or when this is not the real root."""
        if not self.is_real:
            return None
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            return None
        may_log_in = not entry.pw_shell.endswith(NO_LOGIN)
        return UserAccount(entry.pw_uid, entry.pw_gid, entry.pw_dir, may_log_in)

    def output_of(self, argv: Sequence[str]) -> str:
        """Return the output of a program, whatever its exit status; empty when it cannot be run."""
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False, errors="replace"
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip()

    def run(self, argv: Sequence[str]) -> None:
        """Run a program. Raises InstallError with its output when it fails."""
        program = shutil.which(argv[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            raise InstallError(
                f"the program {argv[0]} is missing", hint=f"it is needed for: {' '.join(argv)}"
            )
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                capture_output=True,
                text=True,
                timeout=PROGRAM_SECONDS,
                check=False,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise InstallError(
                f"{argv[0]} did not end within {PROGRAM_SECONDS} s", where=" ".join(argv)
            ) from None
        if done.returncode != 0:
            output = (done.stderr or done.stdout).strip()
            raise InstallError(f"{argv[0]} failed: {output}", where=" ".join(argv))

    def write(self, name: PurePosixPath, text: str, mode: int, owner: os.stat_result | None = None) -> None:
        """Replace a file atomically, with its mode from the beginning. Raises InstallError.

        `owner` is the status of a file whose user and group it gets; without it root's.
        """
        path = self.path(name)
        new = path.with_name(f".{path.name}.new")
        try:
            make_folder(path.parent)
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                if owner is not None and os.geteuid() == 0:
                    os.fchown(descriptor, owner.st_uid, owner.st_gid)
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise InstallError(f"cannot be written: {error.strerror}", where=str(path)) from error

    def remove(self, name: PurePosixPath) -> None:
        """Remove a file, and its folder when that is ours and empty."""
        path = self.path(name)
        path.unlink(missing_ok=True)
        if path.parent.name == "tidemark":
            try:
                path.parent.rmdir()
            except OSError:
                return  # it holds files of somebody else

    def make_folder(self, name: PurePosixPath | Path, mode: int, owner: str | None) -> None:
        """Create a folder with its parents, and set mode and owner. Raises InstallError.

        A link is followed only if root made it: whoever else did could choose the folder that is given away.
        """
        path = self.path(name)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() and path.lstat().st_uid not in (0, os.geteuid()):
                raise InstallError(
                    "the folder is a link of another user", where=str(path), hint="make a folder in its place"
                )
            descriptor = os.open(path.resolve(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fchmod(descriptor, mode)
                account = None if owner is None else self.account(owner)
                if account is not None:
                    os.fchown(descriptor, account.user_id, account.group_id)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise InstallError(f"the folder cannot be created: {error.strerror}", where=str(path)) from error

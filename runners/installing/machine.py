"""The machine that is set up: what is there, and how it is changed. Tests install below another root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from build.files import make_folder
from runners.installing.escaping import InstallError

PROGRAM_SECONDS = 120
"""No program that sets something up takes longer."""

NO_LOGIN = ("nologin", "false")


@dataclass(frozen=True)
class UserAccount:
    """A user as the machine has it."""

    user_id: int
    group_id: int
    home: str
    may_log_in: bool


@dataclass(frozen=True)
class TargetMachine:
    """Files below `root`; users and services only where that is the machine's own."""

    root: Path = Path("/")

    @property
    def is_real(self) -> bool:
        """Whether there are users and services, and not only files for another machine."""
        return self.root == Path("/")

    @property
    def has_systemd(self) -> bool:
        """Whether systemd has started this machine: sd_booted(3)."""
        return (self.root / "run/systemd/system").is_dir()

    @property
    def is_ours(self) -> bool:
        """Whether this process may change it."""
        return os.geteuid() == 0 or not self.is_real

    def path(self, name: PurePosixPath | Path) -> Path:
        """Where a file of this name lies."""
        return self.root / str(name).lstrip("/")

    def read(self, name: PurePosixPath) -> str | None:
        """A file's text; None when there is none. Raises InstallError when it may not be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InstallError(f"cannot be read: {error.strerror}", where=str(self.path(name))) from error

    def account(self, name: str) -> UserAccount | None:
        """A user; None when there is none, or when this is not the machine that has it."""
        if not self.is_real:
            return None
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            return None
        may_log_in = not found.pw_shell.endswith(NO_LOGIN)
        return UserAccount(found.pw_uid, found.pw_gid, found.pw_dir, may_log_in)

    def says(self, argv: Sequence[str]) -> str:
        """What a program prints, whatever its exit status; empty when it cannot be asked."""
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False, errors="replace"
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip()

    def call(self, argv: Sequence[str]) -> None:
        """Run a program. Raises InstallError with what it said."""
        program = shutil.which(argv[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            raise InstallError(f"{argv[0]} is missing", hint=f"it is needed for: {' '.join(argv)}")
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
                f"{argv[0]} is not done after {PROGRAM_SECONDS} s", where=" ".join(argv)
            ) from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise InstallError(f"{argv[0]} failed: {said}", where=" ".join(argv))

    def write(self, name: PurePosixPath, text: str, mode: int) -> None:
        """Replace a file: it has the old text or the new one, and its mode from the beginning."""
        path = self.path(name)
        new = path.with_name(f".{path.name}.new")
        try:
            make_folder(path.parent)
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            new.replace(path)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise InstallError(f"cannot be written: {error.strerror}", where=str(path)) from error

    def remove(self, name: PurePosixPath) -> None:
        """A file; and the folder it lay in, if that was made for us and is empty now."""
        path = self.path(name)
        path.unlink(missing_ok=True)
        if path.parent.name == "tidemark":
            try:
                path.parent.rmdir()
            except OSError:
                return  # a person keeps something in it

    def make_folder(self, name: PurePosixPath | Path, mode: int, owner: str | None) -> None:
        """A folder with its parents, and whose it is. Raises InstallError."""
        path = self.path(name)
        try:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)
            account = None if owner is None else self.account(owner)
            if account is not None:
                os.chown(path, account.user_id, account.group_id)
        except OSError as error:
            raise InstallError(f"the folder cannot be made: {error.strerror}", where=str(path)) from error

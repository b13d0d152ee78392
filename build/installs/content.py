"""What an install prefix contains: the files that a server runs and reads, and their digest."""

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from build.errors import TidemarkError
from build.version import Engine

FOLDERS = ("bin", "sbin", "libexec", "lib", "lib64", "share")
"""The folders of a prefix with programs, libraries, and what servers read; headers have one of their own."""

_NEVER_READ = (".a", ".la", ".o", ".pc", ".pyc")
_MANUALS = frozenset({"doc", "man", "info"})

MAX_FILES = 20_000
"""The most files of an installation: MySQL with everything has some thousands, /usr far more."""


class PrefixError(TidemarkError):
    """A folder is no install prefix that can be measured."""


def digest_of(prefix: Path, engine: Engine) -> str:
    """Return the hex SHA-256 of the installed files by name and content. Raises PrefixError."""
    whole = hashlib.sha256(f"install of {engine}\n".encode())
    try:
        for path in sorted(files_of(prefix)):
            with path.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
            name = os.fsencode(path.relative_to(prefix)).hex()
            whole.update(f"{name} {content}\n".encode())
    except OSError as error:
        raise _unreadable(prefix, error) from error
    return whole.hexdigest()


def stamp_of(prefix: Path) -> str:
    """Return a digest of sizes, times and inodes: while it is the same, no file was written or replaced.

    It takes milliseconds, where reading all files takes up to seconds. Raises PrefixError.
    """
    whole = hashlib.sha256()
    try:
        for path in sorted(files_of(prefix)):
            entry = path.stat()
            whole.update(
                f"{path} {entry.st_size} {entry.st_mtime_ns} {entry.st_ino}\n".encode("utf-8", "replace")
            )
    except OSError as error:
        raise _unreadable(prefix, error) from error
    return whole.hexdigest()


def require_not_open_to_all(prefix: Path) -> None:
    """Raise PrefixError if everybody may replace or write to what servers run and read of an install."""
    way = [prefix, *prefix.parents, *prefix.resolve().parents]
    folders = [Path(where) for name in FOLDERS for where, _, _ in os.walk(prefix / name)]
    for path in (*way, *folders, *files_of(prefix)):
        mode = path.stat().st_mode
        # In a folder such as /tmp, the sticky bit keeps others from replacing what they do not own.
        is_shared = path in way[1:] and mode & stat.S_ISVTX
        if mode & stat.S_IWOTH and not is_shared:
            raise PrefixError(
                f"the install prefix {prefix} is not used: everybody may write to {path}",
                where=str(path),
                hint=f"install it again if it may have been changed; chmod -R o-w {shlex.quote(str(path))}",
            )


def files_of(prefix: Path) -> Iterator[Path]:
    """Yield the installed files, links to files included, in no order. Raises PrefixError and OSError."""
    count = 0
    for folder in FOLDERS:
        for where, folders, names in os.walk(prefix / folder, onerror=_fail):
            folders[:] = [name for name in folders if name not in _MANUALS]
            for name in names:
                path = Path(where, name)
                if name.endswith(_NEVER_READ) or not path.is_file():
                    continue
                count += 1
                if count > MAX_FILES:
                    raise PrefixError(
                        f"{prefix} has more than {MAX_FILES} files, and is no prefix of one server alone",
                        hint="install the server into a folder of its own, with --prefix or DESTDIR",
                    )
                yield path


def _fail(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _unreadable(prefix: Path, error: OSError) -> PrefixError:
    return PrefixError(
        f"the install prefix {prefix} cannot be read: {error.strerror}",
        where=str(error.filename),
        hint="its programs and libraries must be readable for everybody: chmod -R o+rX",
    )

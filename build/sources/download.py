"""Fetching one file: to a temporary name, checked, then renamed; never half there, never the wrong bytes."""

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from build.errors import TidemarkError
from build.files import make_folder
from build.progress import Progress

TIMEOUT_SECONDS = 10.0
"""For connecting, and for each wait for more bytes."""

WHOLE_SECONDS = 2 * 3600.0
"""For a whole file, however steadily it trickles."""

_CHUNK_BYTES = 1 << 18


class DownloadError(TidemarkError):
    """A file could not be had from one address."""


class DigestError(TidemarkError):
    """A file is not the one it should be."""


def sha256_of(path: Path) -> str:
    """The hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digest(name: str, found: str, expected: str | None) -> None:
    """Raise DigestError unless the digests agree, or nothing is expected."""
    if expected is not None and found != expected:
        raise DigestError(
            f"{name} has SHA-256 {found}, pinned is {expected}: refused",
            hint="if upstream really changed the file, find out why before changing the pin",
        )


def download(url: str, to: Path, expected: str | None, progress: Progress) -> str:
    """Fetch `url` into the file `to`; returns its hex SHA-256.

    Raises DownloadError when the address does not serve it, DigestError when the bytes are not the `expected`
    ones; in both cases no file is kept.
    """
    make_folder(to.parent)
    handle, name = tempfile.mkstemp(dir=to.parent, prefix=f".{to.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            digest = _received(url, file, to.name, progress)
            check_digest(to.name, digest, expected)
            file.flush()
            os.fsync(handle)
        Path(name).chmod(0o644)
        Path(name).rename(to)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return digest


def _received(url: str, file: IO[bytes], name: str, progress: Progress) -> str:
    import http.client

    digest = hashlib.sha256()
    try:
        with _opened(url) as (answer, length), progress.task(f"download {name}", length) as task:
            done, deadline = 0, time.monotonic() + WHOLE_SECONDS
            while chunk := answer.read(_CHUNK_BYTES):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                task.update(done, length)
                if time.monotonic() > deadline:
                    raise DownloadError(f"not whole after {WHOLE_SECONDS:g} s, only {done} bytes")
    except http.client.InvalidURL as error:
        # It quotes what it takes for a port, which may be a password.
        raise DownloadError("the address has a port that is no number, or a user name") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(_reason(error)) from error
    if length is not None and done != length:
        raise DownloadError(f"the connection ended after {done} of {length:.0f} bytes")
    return digest.hexdigest()


@contextmanager
def _opened(url: str) -> Iterator[tuple[IO[bytes], float | None]]:
    # urllib costs 30 ms to import; an answer from the cache never gets here.
    import urllib.request

    if not url.startswith(("http://", "https://", "file:/")):
        raise DownloadError(f"'{url.partition(':')[0]}' addresses are not supported")
    request = urllib.request.Request(url, headers={"User-Agent": "tidemark"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        length = answer.headers.get("Content-Length")
        yield answer, float(length) if length else None


def _reason(error: Exception) -> str:
    """The error without urllib's wrapping: `HTTP Error 404: Not Found`, `Name or service not known`."""
    # HTTPError has a reason as well, but its code says more; URLError alone would say <urlopen error …>.
    reason = None if hasattr(error, "code") else getattr(error, "reason", None)
    return str(reason or error)


def apt_addresses() -> list[str]:
    """The base addresses of the package archives that this machine's apt is configured for.

    Empty when there is no apt, or `apt-get update` never ran.
    """
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return _distinct(line.strip() for line in told.splitlines())


def _distinct(lines: Iterable[str]) -> list[str]:
    return [line if line.endswith("/") else f"{line}/" for line in dict.fromkeys(lines) if line]

"""Downloading one file: to a temporary name, verified, then renamed, so that it is complete and correct."""

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from build.errors import TidemarkError
from build.files import make_folder
from build.progress import Progress, ProgressTask
from build.sources.connections import no_answer, verified_by

TIMEOUT_SECONDS = 10.0
"""Time limit for connecting, and for each read."""

WHOLE_SECONDS = 2 * 3600.0
"""Time limit for a whole file."""

MAX_PAGE_BYTES = 4_000_000
"""The most that is read of a page; a list of all releases has a tenth of that."""

_CHUNK_BYTES = 1 << 18
_MEGABYTE = 1e6

_APT_HELPER = "/usr/lib/apt/apt-helper"

_UNSIGNED = re.compile(r"^\s*trusted\s*:|\btrusted\s*[+-]?=", re.IGNORECASE | re.MULTILINE)

_ABSENT = (404, 410)
"""The answers of HTTP that say that there is no such file."""


class DownloadError(TidemarkError):
    """A file could not be downloaded from one URL."""


class AbsentFileError(DownloadError):
    """The server of a URL answered, and does not have the file."""


class DigestError(TidemarkError):
    """A file does not have the pinned digest."""


def sha256_of(path: Path) -> str:
    """Return the hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digest(name: str, digest: str, expected: str | None) -> None:
    """Raise DigestError if `digest` differs from `expected`; None accepts any digest."""
    if expected is not None and digest != expected:
        raise DigestError(
            f"{name} has SHA-256 {digest}, but {expected} is pinned: refused",
            hint="if upstream has changed the file, find out why before changing the pinned digest",
        )


def download(url: str, to: Path, expected: str | None, progress: Progress) -> str:
    """Download `url` to the file `to`, and return its hex SHA-256.

    Raises DownloadError if the download fails, or nothing but the network says what the file is: neither a
    digest nor HTTPS. Raises DigestError if the digest differs from `expected`. In all cases no file is kept.
    """
    if expected is None and not url.startswith("https://"):
        raise DownloadError(f"{to.name} has no known digest, and this address is not HTTPS: not downloaded")
    make_folder(to.parent)
    handle, name = tempfile.mkstemp(dir=to.parent, prefix=f".{to.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            digest = _receive(url, file, to.name, progress)
            check_digest(to.name, digest, expected)
            file.flush()
            os.fsync(handle)
        Path(name).chmod(0o644)
        Path(name).rename(to)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return digest


def _receive(url: str, file: IO[bytes], name: str, progress: Progress) -> str:
    digest = hashlib.sha256()
    with _opened(url) as (read, length), _shown(name, length, progress) as task:
        done, deadline = 0, time.monotonic() + WHOLE_SECONDS
        while chunk := read(_CHUNK_BYTES):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            task.update(done / _MEGABYTE)
            if time.monotonic() > deadline:
                raise DownloadError(f"not complete after {WHOLE_SECONDS:g} s: {done} bytes received")
    return digest.hexdigest()


def read_page(url: str) -> str:
    """Return the text of a page, as far as it is not longer than MAX_PAGE_BYTES.

    Raises DownloadError, and AbsentFileError if the server answered that it has no such page.
    """
    found = bytearray()
    with _opened(url) as (read, _):
        while len(found) < MAX_PAGE_BYTES and (chunk := read(_CHUNK_BYTES)):
            found += chunk
    return found[:MAX_PAGE_BYTES].decode("utf-8", "replace")


def _shown(name: str, length: int | None, progress: Progress) -> AbstractContextManager[ProgressTask]:
    return progress.task(f"download {name}", None if length is None else length / _MEGABYTE, "MB")


@contextmanager
def _opened(url: str) -> Iterator[tuple[Callable[[int], bytes], int | None]]:
    """Yield a function that reads at most so many bytes of what a URL has, and how many it has, if known.

    Raises DownloadError, AbsentFileError and CertificateError.
    """
    # Importing these takes a tenth of a second, which builds from the cache do not need.
    from http.client import HTTPException

    import requests
    from urllib3.exceptions import HTTPError

    scheme = url.partition(":")[0]
    try:
        if url.startswith("file:/"):  # an archive of packages on this machine
            with Path(unquote(urlsplit(url).path)).open("rb") as opened:
                yield opened.read, os.fstat(opened.fileno()).st_size
            return
        if not url.startswith(("http://", "https://")):
            raise DownloadError(f"'{scheme}' URLs are not supported")
        session = requests.Session()
        if scheme == "https":
            del session.adapters["http://"]  # so that none is followed
        # What is compressed is the file itself, and not how it is sent.
        headers = {"User-Agent": "tidemark", "Accept-Encoding": "identity"}
        with session.get(
            url, headers=headers, timeout=TIMEOUT_SECONDS, stream=True, verify=verified_by()
        ) as response:
            if not response.ok:
                kind = AbsentFileError if response.status_code in _ABSENT else DownloadError
                raise kind(f"HTTP Error {response.status_code}: {response.reason}")
            length = response.headers.get("Content-Length")
            yield response.raw.read1, int(length) if length else None
    except requests.exceptions.InvalidSchema as error:
        raise DownloadError(
            f"it leads from {scheme.upper()} to an address that is not: not followed"
        ) from error
    except (requests.RequestException, HTTPError, HTTPException, OSError, ValueError) as error:
        why, hint = no_answer(error, TIMEOUT_SECONDS)
        raise DownloadError(why, hint=hint) from error


def apt_addresses() -> list[str]:
    """Return the base URLs of the package archives for which this machine's apt is configured.

    The list is empty without apt, or if `apt-get update` never ran.
    """
    return _distinct(_apt_indexes("Packages", "$(REPO_URI)"))


def signed_digest(name: str) -> str | None:
    """Return the hex SHA-256 of a source file such as `mariadb_11.8.6.orig.tar.gz`; None if it is not known.

    It is in the indexes of source packages that apt on this machine has downloaded, and verified by the
    signature of their archive. Those that apt is told to trust without one do not count.
    """
    line = re.compile(rb"^ ([0-9a-f]{64}) [0-9]+ " + re.escape(name.encode()) + rb"$", re.MULTILINE)
    for index in _apt_indexes("Sources", "$(TRUSTED)\t$(SOURCESENTRY)\t$(FILENAME)"):
        is_trusted, entry, path = index.split("\t")
        if is_trusted != "yes" or _is_unsigned(Path(entry.rpartition(":")[0])):
            continue
        shown = subprocess.run([_APT_HELPER, "cat-file", path], capture_output=True, check=False).stdout
        if found := line.search(shown):
            return found[1].decode()
    return None


def _is_unsigned(settings: Path) -> bool:
    """Return whether a file of sources.list(5) has apt trust archives without signature, or is unreadable."""
    try:
        return _UNSIGNED.search(settings.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return True


def _apt_indexes(kind: str, format_: str) -> list[str]:
    """Return a line for each index of a kind that apt has downloaded."""
    command = ["apt-get", "indextargets", "--format", format_, f"Created-By: {kind}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    except FileNotFoundError:
        return []


def _distinct(lines: Iterable[str]) -> list[str]:
    addresses = dict.fromkeys(line.strip() for line in lines)
    return [line if line.endswith("/") else f"{line}/" for line in addresses if line]

"""Downloading one file: to a temporary name, verified, then renamed, so that it is complete and correct."""

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from build.errors import TidemarkError
from build.files import make_folder
from build.progress import Progress, ProgressTask
from build.sources import certificates

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
    with _told_apart(), _opened(url) as (response, length), _shown(name, length, progress) as task:
        done, deadline = 0, time.monotonic() + WHOLE_SECONDS
        while chunk := response.read(_CHUNK_BYTES):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            task.update(done / _MEGABYTE)
            if time.monotonic() > deadline:
                raise DownloadError(f"not complete after {WHOLE_SECONDS:g} s: {done} bytes received")
    if length is not None and done != length:
        raise DownloadError(f"the connection was closed after {done} of {length:.0f} bytes")
    return digest.hexdigest()


def read_page(url: str) -> str:
    """Return the text of a page, as far as it is not longer than MAX_PAGE_BYTES.

    Raises DownloadError, and AbsentFileError if the server answered that it has no such page.
    """
    with _told_apart(), _opened(url) as (response, _):
        found = response.read(MAX_PAGE_BYTES)
    return found.decode("utf-8", "replace")


@contextmanager
def _told_apart() -> Iterator[None]:
    """Turn what goes wrong with a URL into a DownloadError, or an AbsentFileError."""
    import http.client

    try:
        yield
    except http.client.InvalidURL as error:
        # It quotes what it takes for a port, which may be a password.
        raise DownloadError("the address has a port that is no number, or a user name") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        is_absent = getattr(error, "code", None) in _ABSENT
        kind = AbsentFileError if is_absent else DownloadError
        raise kind(_reason(error), hint=certificates.hint_for(error)) from error


def _shown(name: str, length: float | None, progress: Progress) -> AbstractContextManager[ProgressTask]:
    return progress.task(f"download {name}", None if length is None else length / _MEGABYTE, "MB")


@contextmanager
def _opened(url: str) -> Iterator[tuple[IO[bytes], float | None]]:
    # Importing urllib takes 30 ms, which builds from the cache do not need.
    import urllib.error
    import urllib.request

    class StaysSecure(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            if req.full_url.startswith("https://") and not newurl.startswith("https://"):
                raise urllib.error.URLError("it leads from HTTPS to an address that is not: not followed")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    if not url.startswith(("http://", "https://", "file:/")):
        raise DownloadError(f"'{url.partition(':')[0]}' URLs are not supported")
    request = urllib.request.Request(url, headers={"User-Agent": "tidemark"})
    https = [urllib.request.HTTPSHandler(context=certificates.context())] if url.startswith("https:") else []
    opener = urllib.request.build_opener(StaysSecure, *https)
    with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
        length = response.headers.get("Content-Length")
        yield response, float(length) if length else None


def _reason(error: Exception) -> str:
    """Return the message of an error: `HTTP Error 404: Not Found`, `Name or service not known`."""
    if distrust := certificates.refused_certificate(error):
        return f"its certificate is not trusted: {distrust}"
    # The text of a URLError is wrapped as <urlopen error …>, unlike its reason. The text of an HTTPError says
    # more than its reason, because it includes the status code.
    reason = None if hasattr(error, "code") else getattr(error, "reason", None)
    return str(reason or error)


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

"""A file of results that another program wrote: its text, compressed or not."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from build.files import json_value
from history.transfer.foreign.values import Location, refuse
from history.transfer.row_source import TransferError

LOOKED_AT = 4096
"""Bytes at the beginning of a file that say what it is."""

LARGEST_TEXT = 256 * 1024**2
"""Bytes of a file that is read as a whole."""

LONGEST_LINE = 1024**2
"""Bytes of a line of a file that is read line by line."""

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Document:
    """A file with text in UTF-8, which may be compressed by gzip.

    Its properties raise TransferError when it cannot be read, is damaged or too large, or is not UTF-8.
    """

    path: Path

    @property
    def name(self) -> str:
        """The name of the file, without that of its folder."""
        return self.path.name

    @property
    def plain_name(self) -> str:
        """The name without `.gz`."""
        return self.name.removesuffix(".gz")

    @cached_property
    def head(self) -> str:
        """The first LOOKED_AT bytes as text; what is not UTF-8 is replaced."""
        return self._read(LOOKED_AT).decode("utf-8-sig", errors="replace")

    @cached_property
    def text(self) -> str:
        """The whole text, without a byte order mark."""
        content = self._read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise refuse(
                Location(self.name, "its size"),
                f"it has more than {LARGEST_TEXT // 1024**2} MiB",
                "import a part of it, or a summary",
            )
        return self._decoded(content)

    @cached_property
    def is_json(self) -> bool:
        """Whether the text begins as JSON that is an object or array."""
        return self.head.lstrip()[:1] in {"{", "["}

    @cached_property
    def json(self) -> Any:
        """The text as JSON; None when it does not begin as JSON. Raises TransferError for damaged JSON."""
        return self.json_from(0) if self.is_json else None

    def json_from(self, begin: int, end: int | None = None) -> Any:
        """Return a part of the text as JSON, from one character to another."""
        try:
            return json_value(self.text[begin:end])
        except ValueError as error:
            place = Location(self.name, f"line {getattr(error, 'lineno', 1)}")
            raise refuse(
                place, f"the JSON is damaged or cut short: {getattr(error, 'msg', error)}", "write it again"
            ) from error

    @cached_property
    def digest(self) -> str:
        """The hex SHA-256 of the file as it is."""
        digest = sha256()
        with self._opened() as file:
            while block := file.read(1024**2):
                digest.update(block)
        return digest.hexdigest()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text without blanks around it."""
        with self._opened() as file:
            for number, line in enumerate(self._raw_lines(file), start=1):
                yield number, self._decoded(line).strip()

    def place(self, number: int) -> Location:
        """Return the location of a line."""
        return Location(self.name, f"line {number}")

    def _raw_lines(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            with self._unpacked(file) as unpacked:
                while line := unpacked.readline(LONGEST_LINE):
                    yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._damaged(error) from error

    def _read(self, size: int) -> bytes:
        with self._opened() as file:
            try:
                with self._unpacked(file) as unpacked:
                    return unpacked.read(size)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise self._damaged(error) from error

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise TransferError(
                f"it cannot be read: {error.strerror or error}", where=str(self.path), hint="check the path"
            ) from error

    @staticmethod
    def _unpacked(file: BinaryIO) -> io.BufferedReader:
        magic = file.read(len(GZIP_MAGIC))
        file.seek(0)
        # GzipFile is a BufferedIOBase; its lines and reads are what is used here.
        return gzip.GzipFile(fileobj=file) if magic == GZIP_MAGIC else file  # type: ignore[return-value]

    def _decoded(self, content: bytes) -> str:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise refuse(Location(self.name, "its text"), "it is not UTF-8", "save it as UTF-8") from error

    def _damaged(self, error: Exception) -> TransferError:
        return refuse(
            Location(self.name, "its text"),
            f"the compressed file is cut short or damaged: {error}",
            "copy it again",
        )

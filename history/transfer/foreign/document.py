"""A file of results that another program wrote: its text, compressed or not."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

from history.transfer.foreign.values import Location, refuse
from history.transfer.row_source import TransferError

LOOKED_AT = 4096
"""Characters at the beginning of a file that say what it is."""

LARGEST_TEXT = 256 * 1024**2
"""Characters of a file that is read as a whole."""

LONGEST_LINE = 1024**2
"""Characters of a line of a file that is read line by line."""

GZIP_MAGIC = b"\x1f\x8b"

_UTF_16 = re.compile(rb"(\xff\xfe)|(\xfe\xff)|([\t\n\r -~]\0)|(\0[\t\n\r -~])")
"""How a text in UTF-16 begins: with a byte order mark, or with a byte of zeros beside an ASCII character."""

_UTF_16_NAMES = (None, "utf-16", "utf-16", "utf-16-le", "utf-16-be")

_STAMP = re.compile(r"[^\W\d]|[:|\]>]")
"""What a prefix of log lines has, and a column of numbers has not."""

MAX_CUTS = 12
"""The places at most at which a common prefix of lines is tried to end."""


@dataclass(frozen=True)
class Document:
    """A file with text in UTF-8 or UTF-16, which may be compressed by gzip.

    Its properties raise TransferError when it cannot be read, is damaged or too large, or is no such text.
    """

    path: Path

    prefix: str = ""
    """What is cut off the lines that begin with it: their common beginning, with 0 for each digit."""

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
        """The first LOOKED_AT characters; what is not UTF-8 is replaced."""
        with self._text_file("replace") as file:
            return self._without_prefix(file.read(LOOKED_AT))

    @cached_property
    def text(self) -> str:
        """The whole text, without a byte order mark."""
        with self._text_file() as file:
            content = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise refuse(
                Location(self.name, "its size"),
                f"it has more than {LARGEST_TEXT // 1024**2} Mi characters",
                "import a part of it, or a summary",
            )
        return self._without_prefix(content)

    def without_prefix(self) -> "Iterator[Document]":
        """Yield the file without what all of its first lines begin with, such as the time of a log.

        Digits may differ between the lines. Where a prefix ends is not known: the shortest one comes first.
        Nothing if the lines have no common beginning that ends with a blank.
        """
        lines = [line for line in self.head.splitlines()[:-1] if line.strip()]
        shapes = [f"{_shape(line.rstrip())} " for line in lines]
        if len(shapes) < 2:
            return
        same = takewhile(lambda letters: len(set(letters)) == 1, zip(*shapes, strict=False))
        common = "".join(letters[0] for letters in same)
        for match in list(re.finditer(r"\s+", common))[:MAX_CUTS]:
            if _STAMP.search(lines[0][: match.end()]):
                yield replace(self, prefix=common[: match.end()])

    @property
    def prefix_text(self) -> str:
        """The prefix that is cut off, as the first line has it."""
        with self._text_file("replace") as file:
            line = next((line for line in file.read(LOOKED_AT).splitlines() if line.strip()), "")
        return line[: len(self.prefix)]

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
        with self._text_file() as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                yield number, self._without_prefix(line).strip()

    def place(self, number: int) -> Location:
        """Return the location of a line."""
        return Location(self.name, f"line {number}")

    @contextmanager
    def _text_file(self, errors: str = "strict") -> Iterator[io.TextIOWrapper]:
        """The file as text, unpacked and decoded. Raises TransferError, also for what its reader meets."""
        with self._opened() as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            binary = gzip.GzipFile(fileobj=file) if packed else file
            begin = None
            try:
                begin = _UTF_16.match(binary.peek(2))
                encoding = begin and _UTF_16_NAMES[begin.lastindex or 0]
                yield io.TextIOWrapper(binary, encoding or "utf-8-sig", errors, newline="\n")
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise self._damaged(error) from error
            except UnicodeDecodeError as error:
                what = f"it is not {'UTF-16' if begin else 'UTF-8'}"
                raise refuse(Location(self.name, "its text"), what, "save it as UTF-8") from error

    def _without_prefix(self, text: str) -> str:
        if not self.prefix:
            return text
        return "".join(
            line[len(self.prefix) :] if f"{_shape(line.rstrip())} ".startswith(self.prefix) else line
            for line in text.splitlines(keepends=True)
        )

    def _opened(self) -> io.BufferedReader:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise TransferError(
                f"it cannot be read: {error.strerror or error}", where=str(self.path), hint="check the path"
            ) from error

    def _damaged(self, error: Exception) -> TransferError:
        return refuse(
            Location(self.name, "its text"),
            f"the compressed file is cut short or damaged: {error}",
            "copy it again",
        )


def _shape(line: str) -> str:
    """The line with 0 for each digit."""
    return re.sub(r"\d", "0", line)

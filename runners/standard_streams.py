"""The standard streams of the program: open, in UTF-8, and a failure to write the output is told as that.

Python has no stream for a descriptor that was closed before it started, and the next file that is opened gets
its number: programs that inherit it would write into that file. In a locale without UTF-8 it has streams that
raise UnicodeEncodeError for most of our tables.
"""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from build.errors import TidemarkError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(TidemarkError):
    """Standard output is closed, or what it leads to takes no more."""


class _Output(io.FileIO):
    """A descriptor whose failures are OutputErrors; a reader that is gone remains a BrokenPipeError."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"standard output cannot be written: {error.strerror}",
                hint="write it to another place",
            ) from error


class _Messages(io.FileIO):
    """A descriptor that loses what cannot be written: a full disk with a log ends no measurement."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes


def prepare() -> None:
    """Open what is closed, and put streams before the descriptors 1 and 2. Raises OutputError.

    A closed standard output is refused before anything is done, since nobody would get the result.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stderr = _stream(_Messages(2, "w", closefd=False), "backslashreplace", line_buffering=True)
    is_terminal = os.isatty(1)
    # Names of files may hold any bytes, which are written as they are.
    sys.stdout = _stream(_Output(1, "w", closefd=False), "surrogateescape", line_buffering=is_terminal)
    if 1 in closed:
        raise OutputError(
            "standard output is closed",
            hint="leave it open, or throw the output away with >/dev/null",
        )


def discard_output() -> None:
    """Let what is still in the buffer of standard output go nowhere, as Python writes it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _stream(raw: io.FileIO, errors: str, *, line_buffering: bool) -> TextIO:
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, line_buffering=line_buffering)

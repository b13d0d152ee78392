"""Standard output and standard error on which no text acts: it cannot move the cursor, colour or hide."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from history.escaping.characters import JOINER, visible

_COMMAND = re.compile(r"^(\s*:)(?=:)|(##)(?=\[)", re.MULTILINE)
"""What the runner of a GitHub job carries out: a line such as `::add-mask::x`, and `##[...]` anywhere."""


class Styled(str):
    """Text with sequences for the terminal, which is written as it is. Only a Screen makes it."""

    __slots__ = ()


class EscapedStream:
    """A text stream whose plain texts are escaped; everything else is that of the stream behind it."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind
        self._is_job = bool(os.environ.get("GITHUB_ACTIONS"))

    def write(self, text: str) -> int:
        """Write a text; return its length."""
        self.behind.write(text if type(text) is Styled else self._escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, which end themselves."""
        for line in lines:
            self.write(line)

    def _escaped(self, text: str) -> str:
        shown = visible(text, keeps_joiner=True)
        return _COMMAND.sub(rf"\g<0>{JOINER}", shown) if self._is_job else shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def escaped_output() -> Iterator[None]:
    """Escape what is printed within the context, on both standard streams."""
    before = sys.stdout, sys.stderr
    escape_output()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def escape_output() -> None:
    """Put an EscapedStream before each standard stream that is open and has none yet."""
    sys.stdout, sys.stderr = map(_escaped_stream, (sys.stdout, sys.stderr))


def unescaped(stream: TextIO) -> TextIO:
    """Return the stream behind an escaped one, for what draws on a terminal and escapes by itself."""
    return stream.behind if isinstance(stream, EscapedStream) else stream


def _escaped_stream(stream: TextIO | None) -> Any:
    # Python has no stream for a descriptor that was closed before it started.
    if stream is None or isinstance(stream, EscapedStream):
        return stream
    return EscapedStream(stream)

"""Templates of small pieces of markup, of which pages have tens of thousands: cells, rows, marks of charts.

An element of htpy takes 50 µs there, and a format of markupsafe 20 µs; a template takes 2 µs.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup, escape

_SPECIAL = re.compile("[&<>'\"]")
"""What `escape` replaces. Most texts have none of it, and a search takes half the time of an escape."""


class Template:
    """Markup with a place for each `{}`; what is put into a place is escaped, unless it is markup itself."""

    def __init__(self, text: str) -> None:
        self._first, *self._rest = text.split("{}")

    def __call__(self, *values: object) -> Markup:
        """Return the markup with a value in each place. Raises ValueError for more or fewer values."""
        pieces = [self._first]
        for value, text in zip(values, self._rest, strict=True):
            pieces.append(_escaped(value))
            pieces.append(text)
        return Markup("".join(pieces))


def _escaped(value: object) -> str:
    if type(value) is str:
        return escape(value) if _SPECIAL.search(value) else value
    if type(value) is float or type(value) is int:
        return str(value)
    return value if type(value) is Markup else escape(value)


def own_file(path: Path) -> Markup:
    """Return a file of the program, such as a script of the site, as markup."""
    return Markup(path.read_text(encoding="utf-8"))


def joined(parts: Iterable[Markup]) -> Markup:
    """Return markup after markup."""
    return Markup("".join(parts))

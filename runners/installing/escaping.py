"""Escaping of paths and names for systemd, shells and GitHub's runner."""

import re

from build.errors import TidemarkError

PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


class InstallError(TidemarkError):
    """A box cannot be installed or removed as requested."""


def require_printable(text: str, what: str) -> str:
    """Return `text` if it has no control characters. Raises InstallError."""
    if not text.isprintable():
        raise InstallError(
            f"{what} holds a control character",
            where=repr(text),
            hint="use a name without newlines, tabs and other control characters",
        )
    return text


def require_startable(path: str) -> None:
    """Raise InstallError when systemd cannot start a program of a checkout at such a path, even escaped."""
    if set(path) & set("\"'\\"):
        raise InstallError(
            "the checkout holds a quote or a backslash, which systemd cannot start",
            where=path,
            hint="move it to another folder, such as /opt/tidemark",
        )


def word(text: str, *, is_argument: bool = False) -> str:
    """Quote one word of a list in a unit file (systemd.syntax(7)); `is_argument`: dollars are doubled."""
    text = text.replace("%", "%%")
    if is_argument:
        text = text.replace("$", "$$")
    if PLAIN.fullmatch(text.replace("%%", "")):
        return text
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def rest_of_line(text: str) -> str:
    """Escape the value of a key that takes no quotes, such as a description or an address."""
    return text.replace("%", "%%")

"""Paths and names as systemd, shells and GitHub's runner read them back unchanged."""

import re

from build.errors import TidemarkError

PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


class InstallError(TidemarkError):
    """A box cannot be set up like this."""


def require_printable(text: str, what: str) -> str:
    """`text`, if no file with lines could take it for something else. Raises InstallError."""
    if not text.isprintable():
        raise InstallError(
            f"{what} holds a control character",
            where=repr(text),
            hint="unit files have lines: take a name without newlines, tabs and their like",
        )
    return text


def require_startable(path: str, what: str) -> None:
    """Raise InstallError when systemd would start no program of such a name, however it is written."""
    if set(path) & set("\"'\\"):
        raise InstallError(
            f"{what} holds a quote or a backslash, and systemd starts no such program",
            where=path,
            hint="move it to a folder of another name, such as /opt/tidemark",
        )


def word(text: str, *, told: bool = False) -> str:
    """One word of a list in a unit file (systemd.syntax(7)); `told` to a program, dollars are doubled."""
    text = text.replace("%", "%%")
    if told:
        text = text.replace("$", "$$")
    if PLAIN.fullmatch(text.replace("%%", "")):
        return text
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def rest_of_line(text: str) -> str:
    """The whole value of a key that takes no quotes, such as a description or an address."""
    return text.replace("%", "%%")

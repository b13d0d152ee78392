"""Digests that say whether two files, or two descriptions, ask for the same work."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

DIGITS = 16
"""The hex digits of a digest."""

_LUA = re.compile(
    r"""(?: --\[(=*)\[.*?\]\1\] | --[^\n]* | \s )+  # what is nothing to Lua
      | ( \[(=*)\[.*?\]\3\] | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )  # strings, in which dashes are dashes
    """,
    re.DOTALL | re.VERBOSE,
)


def file_digests(folder: Path, shared: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each file of a suite by its path in the folder, and of `shared` ones by name.

    Of Lua it is that of the code, without comments and layout. suite.toml is left out, whose keys are read.
    """
    own = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / "suite.toml")
    named = {str(path.relative_to(folder)): path for path in own} | {f"/{path.name}": path for path in shared}
    return {name: _file_digest(path) for name, path in named.items()}


def _file_digest(path: Path) -> str:
    if path.suffix != ".lua":
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:DIGITS]
    return digest(lua_code(path.read_text(encoding="utf-8", errors="surrogateescape")))


def lua_code(text: str) -> str:
    """Return the code of a Lua script: comments and white space between its words are a single space each."""
    return _LUA.sub(lambda found: found[2] or " ", text).strip()


def digest(what: object) -> str:
    """Return the digest of a text, or of what JSON can hold."""
    text = what if isinstance(what, str) else json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]

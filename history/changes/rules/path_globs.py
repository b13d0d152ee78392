"""Patterns of paths as in a CODEOWNERS file.

`*` and `?` match within a name, `**` matches any folders. A pattern with a slash that is not its last sign
begins at the root, any other one in every folder. One that matches a folder matches all that is in it, except
that a last `*` matches what lies directly in its folder.
"""

import re
from functools import cache

REFUSED = "![]\\"
"""Characters that have a meaning in other patterns, and none here."""

_ANY_FOLDERS = "(?:.+/)?"


def problem_of(pattern: str) -> str:
    """Return why a pattern is refused; empty for one that is not."""
    if not pattern.strip("/ ") or pattern != pattern.strip():
        return "it names no path"
    found = next((sign for sign in REFUSED if sign in pattern), None)
    if found is not None:
        return f"'{found}' has no meaning in a pattern; it may have *, ? and **"
    return "it has an empty name between two slashes" if "//" in pattern else ""


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches the path of a file, from the root of its repository."""
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    is_folder = pattern.endswith("/")
    inner = pattern.rstrip("/")
    names = inner.lstrip("/").split("/")
    parts = [] if "/" in inner else [_ANY_FOLDERS]
    parts += [_ANY_FOLDERS if name == "**" else f"{_name(name)}/" for name in names[:-1]]
    last = names[-1]
    if last == "**":
        parts.append(".+")
    elif is_folder:
        parts.append(f"{_name(last)}/.+")
    else:
        parts.append(_name(last) + ("" if last == "*" and len(names) > 1 else "(?:/.+)?"))
    return re.compile("".join(parts), re.DOTALL)


def _name(name: str) -> str:
    """Return the expression of one name."""
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(signs.get(sign, re.escape(sign)) for sign in re.sub(r"\*+", "*", name))

"""Which functions of a source a server executed, by the lines of callgrind's files.

Lines tell it also of functions that the compiler has put into their callers, which have no symbol. A server
without debug information has no lines.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_FILE = re.compile(r"c?f[lie]=(?:\(([0-9]{1,9})\))? ?(.*)")
_LINE = re.compile(r"([+-]?)([0-9]{1,9}) [0-9]{1,15}|\* [0-9]{1,15}")


@dataclass(frozen=True)
class WatchedFunction:
    """A function of a source."""

    name: str
    file: str
    """Its path in the tree of the source."""
    lines: frozenset[int]
    """The lines of the file, from 1, that are executed only when it is."""


def executed(profiles: Iterable[str], watched: Sequence[WatchedFunction]) -> frozenset[str] | None:
    """Return the names of the watched functions that any of the texts of callgrind has instructions of.

    None if none of them knows a file.
    """
    by_file: defaultdict[str, list[WatchedFunction]] = defaultdict(list)
    for function in watched:
        by_file[function.file].append(function)
    found: set[str] = set()
    is_known = False
    for text in profiles:
        lines, knows = _executed_lines(text, by_file.keys())
        is_known |= knows
        for file, executed_lines in lines.items():
            found |= {watching.name for watching in by_file[file] if watching.lines & executed_lines}
    return frozenset(found) if is_known else None


def _executed_lines(text: str, files: Iterable[str]) -> tuple[dict[str, set[int]], bool]:
    """Return the lines with instructions of some files, and whether the text knows any of the server's files.

    Positions may be relative to that of the line with costs before, whatever file that is of.
    """
    names: dict[str, str | None] = {}
    found: defaultdict[str, set[int]] = defaultdict(set)
    line, current, is_known = 0, None, False
    for entry in text.splitlines():
        if cost := _LINE.fullmatch(entry):
            if cost[2]:
                line = int(cost[2]) if not cost[1] else line + int(cost[1] + cost[2])
            if current is not None:
                found[current].add(line)
        elif named := _FILE.fullmatch(entry):
            number, path = named[1], named[2]
            if path:
                is_known |= path.startswith("/")  # others are of the C library
                names[number or path] = _which(path, files)
            if not entry.startswith("c"):
                current = names.get(number or path)
    return found, is_known


def _which(path: str, files: Iterable[str]) -> str | None:
    """Return which of some files of a source tree, wherever that was, a path names."""
    path = posixpath.normpath(path)
    return next((file for file in files if path.endswith(f"/{file}")), None)

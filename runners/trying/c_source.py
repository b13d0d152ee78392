"""Where the functions of a C or C++ source are, and which lines outside of them execute nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/" r'|"(?:\\.|[^"\\\n])*"' r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_LINE_END = re.compile(r"\\?\n")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)(?:[^\n]*\\\n)*[^\n]*")
_ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\(.*?\)\)|\b(?:pg_attribute_\w+|alignas)\s*\([^()]*\)|\[\[.*?\]\]"
)
_FUNCTION = re.compile(r"((?:\w+(?:<[^<>]*>)?\s*::\s*)*(?:operator\s*(?:\(\)|[^\s\w(]+|\w+)|~?\w+))\s*\(")
_CONTAINER = re.compile(r'\bnamespace\b|\bextern\s*""\s*$|\b(?:class|struct|union)\b(?!.*\)\s*$)', re.DOTALL)
_DATA = re.compile(r"=\s*$|\benum\b(?!.*\)\s*$)", re.DOTALL)
_DECLARATION = re.compile(
    r"[\w\s*&:<>,~]*[\w*&>]\s*[\s*&]\w[\w:~]*\s*\([^{}=]*\)[\w\s()\",]*|(?:class|struct)\s+\w+"
)


@dataclass(frozen=True)
class CFunction:
    """A function with the lines from its head to its last brace, numbered from 1."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class CSource:
    """A source without its comments."""

    lines: tuple[str, ...]
    """The code of each line; empty where there is none."""

    functions: tuple[CFunction, ...]
    inert: frozenset[int]
    """The lines that execute nothing and change nothing that is executed: includes and declarations."""

    directives: frozenset[int]
    """The lines of the preprocessor, which may define what any other line uses."""

    def function_at(self, line: int) -> CFunction | None:
        """Return the function that a line belongs to, or None."""
        return next((found for found in self.functions if found.first <= line <= found.last), None)

    def uses(self, name: str) -> Iterator[int]:
        """Yield the lines in other functions that name a function."""
        word = re.compile(rf"\b{re.escape(name.rpartition(':')[2])}\b")
        for function in self.functions:
            if function.name != name:
                lines = range(function.first, function.last + 1)
                yield from (line for line in lines if word.search(self.lines[line - 1]))


def parsed(text: str) -> CSource | None:
    """Return where a source has its functions; None if its braces do not match, as with some macros."""
    code = _COMMENT_OR_TEXT.sub(_without_comment, text)
    scan = _Scan()
    if not scan.read(_COMMENT_OR_TEXT.sub(_without_text, code)):
        return None
    lines = tuple(" ".join(line.split()) for line in code.split("\n"))
    return CSource(lines, tuple(scan.functions), frozenset(scan.inert), frozenset(scan.directives))


def _without_comment(match: re.Match[str]) -> str:
    # A macro goes on behind a comment of several lines.
    return " " + "".join(_LINE_END.findall(match[0])) if match[0].startswith("/") else match[0]


def _without_text(match: re.Match[str]) -> str:
    return match[0][0] * 2


@dataclass
class _Scan:
    """Goes through a source once, and keeps track of its braces.

    Of the branches of an `#if` the last one counts: each may have the opening brace of the same block.
    """

    functions: list[CFunction] = field(default_factory=list)
    inert: set[int] = field(default_factory=set)
    directives: set[int] = field(default_factory=set)

    _open: list[str] = field(default_factory=list)
    """The open braces: empty for a container such as a namespace or class, `(` and the name for a function,
    `=` for data, `{` within these."""
    _branches: list[tuple[list[str], str, int]] = field(default_factory=list)
    _head: str = ""
    """What was read since the last block or statement ended outside of functions."""
    _began: int = 0
    """The line of the first word of it."""

    def read(self, code: str) -> bool:
        """Return whether all braces match."""
        line, at = 1, 0
        while at < len(code):
            directive = _DIRECTIVE.match(code, at) if at == 0 or code[at - 1] == "\n" else None
            if directive is not None:
                last = line + directive[0].count("\n")
                self._take_directive(directive[1], range(line, last + 1))
                line, at = last, directive.end()
                continue
            if not self._take(code[at], line):
                return False
            line += code[at] == "\n"
            at += 1
        return not self._open

    def _take_directive(self, word: str, lines: range) -> None:
        (self.inert if word == "include" else self.directives).update(lines)
        if word.startswith("if"):
            self._branches.append((list(self._open), self._head, self._began))
        elif word.startswith("el") and self._branches:
            self._open, self._head, self._began = list(self._branches[-1][0]), *self._branches[-1][1:]
        elif word == "endif" and self._branches:
            self._branches.pop()

    def _take(self, character: str, line: int) -> bool:
        is_outside = not any(self._open)
        if character == "}":
            if not self._open:
                return False
            closed = self._open.pop()
            if not any(self._open):
                if closed.startswith("("):
                    self.functions.append(CFunction(closed[1:], self._began, line))
                self._head = "" if closed != "=" else self._head
            return True
        if character == "{":
            self._open.append(self._kind() if is_outside else "{")
            self._head = "" if self._open[-1] == "" else self._head
        elif is_outside and character == ";":
            if _DECLARATION.fullmatch(" ".join(_ATTRIBUTE.sub(" ", self._head).split())):
                self.inert.update(range(self._began, line + 1))
            self._head = ""
        elif is_outside:
            if not self._head.strip() and not character.isspace():
                self._head, self._began = "", line
            self._head += character
        return True

    def _kind(self) -> str:
        """Return what a brace outside of functions opens."""
        head = _ATTRIBUTE.sub(" ", self._head).strip()
        if _DATA.search(head):
            return "="
        if _CONTAINER.search(head):
            return ""
        named = _FUNCTION.search(head)
        return f"({''.join(named[1].split())}" if named else "="

"""Plain SQL as people keep it in files: its statements, with the lines at which they begin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine

_OF_CLIENTS = re.compile(r"\\(\w*)|(delimiter)\b", re.IGNORECASE)
"""What psql, pgbench and the mysql client carry out themselves."""

_EXPLAINED = re.compile(r"\(*(?:select|with|values|table|insert|update|delete|replace)\b", re.IGNORECASE)
_READING = re.compile(r"\(*(?:select|values|table|show|explain)\b", re.IGNORECASE)
_WRITING = re.compile(
    r"\b(?:into|for\s+(?:no\s+key\s+)?(?:update|key\s+share|share)|nextval|setval|analyze)\b", re.I
)


@dataclass(frozen=True)
class Statement:
    """One statement of a file."""

    line: int
    """The line at which it begins, from 1."""
    text: str
    """It without its semicolon, and without comments before it."""

    @property
    def is_explained(self) -> bool:
        """Whether a server can explain it."""
        return _EXPLAINED.match(self.text) is not None

    @property
    def reads_only(self) -> bool:
        """Whether it leaves the data as they are, as far as its words tell; functions may do anything."""
        return _READING.match(self.text) is not None and _WRITING.search(self.text) is None


_STRING = r"'(?:[^']|'')*'"
_ESCAPED = r"'(?:\\.|''|[^'\\])*'"


def _tokens(names: str, comments: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<ignored>{comments}|\s+)|(?P<end>;)|(?P<part>{names}|\w+|.)", re.DOTALL)


_POSTGRES = _tokens(
    rf'[eE]{_ESCAPED}|{_STRING}|"[^"]*"|\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$', r"--[^\n]*|/\*.*?\*/"
)
_MYSQL = _tokens(
    rf'{_ESCAPED}|"(?:\\.|""|[^"\\])*"|`[^`]*`',
    # A comment with an exclamation mark is a statement to these servers.
    r"(?:\#|--(?=\s|\Z))[^\n]*|/\*(?![!+M]).*?\*/",
)
_TOKENS: EngineRegistry[re.Pattern[str]] = EngineRegistry(
    "syntax of strings and comments",
    __name__,
    {Engine.POSTGRES: _POSTGRES, Engine.MYSQL: _MYSQL, Engine.MARIADB: _MYSQL},
)


def statements_in(text: str, engine: Engine) -> list[Statement]:
    """Return the statements of a text, which semicolons separate, as an engine reads it.

    Semicolons in strings, quoted names and comments separate nothing; those in the body of a procedure do.
    """
    statements, begin = [], None
    for token in _TOKENS[engine].finditer(text):
        if token["part"] is not None and begin is None:
            begin = token.start()
        elif token["end"] is not None and begin is not None:
            statements.append(_statement(text, begin, token.start()))
            begin = None
    return [*statements, *([] if begin is None else [_statement(text, begin, len(text))])]


def _statement(text: str, begin: int, end: int) -> Statement:
    return Statement(text.count("\n", 0, begin) + 1, text[begin:end].strip())


def require_statements(text: str, engines: Sequence[Engine]) -> None:
    """Raise ValueError, with the line, for a command of a client, and if there is no statement."""
    for engine in engines:
        statements = statements_in(text, engine)
        if not statements:
            raise ValueError("it has no SQL statement")
        for statement in statements:
            command = _OF_CLIENTS.match(statement.text)
            if command is not None:
                raise ValueError(
                    f"line {statement.line}: {command[0]} is no SQL, but a command of psql, pgbench or mysql"
                )

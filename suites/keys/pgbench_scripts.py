"""The scripts of a pgbench step: their weights, the lines of their commands, and their mistakes."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROTOCOLS = ("simple", "extended", "prepared")
"""How pgbench sends statements."""

MAX_RATE = 1_000_000
"""The most transactions per second that may arrive."""

PARTITION_METHODS = ("range", "hash")
"""How pgbench divides the rows of its largest table among partitions."""

MAX_PARTITIONS = 10_000
"""The most partitions of that table."""

MAX_WEIGHT = 1_000_000
"""The highest weight of a script."""

OWN_VARIABLES = frozenset({"client_id", "default_seed", "random_seed", "scale"})
"""The variables that pgbench sets itself (pgbench, Automatic Variables)."""

META_COMMANDS = frozenset(
    {
        *("aset", "elif", "else", "endif", "endpipeline", "gset", "if", "set", "setshell", "shell", "sleep"),
        *("startpipeline", "syncpipeline"),
    }
)
"""The backslash commands of pgbench; a release that lacks one refuses the script itself."""

_OF_RESULT = ("gset", "aset")
"""They belong to the statement before them, and set a variable for each column of its result."""

_NAME = r"[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*"
_USE = re.compile(rf"(?<!:):({_NAME})")
_TOKEN = re.compile(
    rf"""(?P<ignored>--[^\n]*|/\*.*?\*/|[eE]'(?:\\.|''|[^'\\])*'|'(?:[^']|'')*'|"[^"]*"
        |\$(?P<tag>(?:{_NAME})?)\$.*?\$(?P=tag)\$|\\;|::+|\s+)
    |\\(?P<meta>[^\n]*(?:(?<=\\)\n[^\n]*)*)
    |(?P<use>:{_NAME})
    |(?P<end>;)
    |(?P<word>\w+|.)""",
    re.DOTALL | re.VERBOSE,
)
"""A piece of a script: what holds neither variables nor ends, a backslash command, a variable, an end."""


@dataclass(frozen=True)
class WeightedScript:
    """A script and how often it is drawn, in proportion to the weights of the others."""

    name: str
    """The name of a file."""
    weight: int = 1


def weighted_script(text: str) -> WeightedScript:
    """Parse `FILE` or `FILE@WEIGHT`, as pgbench's --file does. Raises ValueError."""
    name, at, weight = text.rpartition("@")
    if not at:
        return WeightedScript(text)
    number = int(weight) if re.fullmatch(r"[0-9]{1,7}", weight) else 0
    if not name or not 1 <= number <= MAX_WEIGHT:
        raise ValueError(f"'{text}' must be FILE@WEIGHT with a weight from 1 to {MAX_WEIGHT}")
    return WeightedScript(name, number)


@dataclass
class Script:
    """What a script holds."""

    lines: list[int] = field(default_factory=list)
    """The line at which each command begins, in pgbench's order of commands."""
    statements: int = 0
    """How many of the commands are SQL statements."""
    used: list[tuple[int, str]] = field(default_factory=list)
    """Line and name of every use of a variable outside of literals, where pgbench requires it to be set."""
    sets: set[str] = field(default_factory=set)
    """The variables that it sets."""
    sets_columns: bool = False
    """Whether it sets variables that are called as the columns of a result, which no parser knows."""
    mistakes: list[tuple[int, str]] = field(default_factory=list)
    """Line and sentence of each command that pgbench does not have."""


def parse_script(text: str) -> Script:
    """Return what a pgbench script holds; anything is accepted, and mistakes are in the result."""
    script, is_open, depth = Script(), False, 0
    for token in _TOKEN.finditer(text):
        kind, line = token.lastgroup, text.count("\n", 0, token.start()) + 1
        if token["meta"] is not None:
            _read_meta(script, line, token["meta"])
            is_open, depth = False, 0
        elif token["end"] and not depth:
            is_open = False
        elif token["ignored"] is None or token["ignored"][0] in "'\"$eE":
            if not is_open:
                script.lines.append(line)
                script.statements += 1
                is_open = True
            depth = max(0, depth + {"(": 1, ")": -1}.get(token[0], 0))
            if kind == "use":
                script.used.append((line, token["use"][1:]))
    return script


def _read_meta(script: Script, line: int, text: str) -> None:
    """Add a backslash command, which is everything up to the end of its line."""
    name, *words = text.replace("\\\n", " ").split(maxsplit=1) or [""]
    rest = words[0] if words else ""
    if name not in META_COMMANDS:
        script.mistakes.append((line, f"pgbench has no command \\{name}"))
        return
    if name in _OF_RESULT:
        script.sets_columns = True
        return
    script.lines.append(line)
    if name in ("set", "setshell"):
        script.sets.update(rest.split()[:1])
    script.used += [(line, use[1]) for use in _USE.finditer(rest)]


def require_scripts(folder: Path, names: Sequence[str], variables: Collection[str]) -> None:
    """Raise ValueError with file and line unless the scripts `FILE@WEIGHT` in `folder` can be run together.

    `variables` are those that are set for them. The variables of a client are the same for all its scripts.
    """
    scripts = {script.name: _script_in(folder, script.name) for script in map(weighted_script, names)}
    known = OWN_VARIABLES.union(variables, *(script.sets for script in scripts.values()))
    for name, script in scripts.items():
        for line, mistake in script.mistakes:
            raise ValueError(f"{name}, line {line}: {mistake}")
        if not script.statements:
            raise ValueError(f"{name}: it has no SQL statement")
        if not any(other.sets_columns for other in scripts.values()):
            for line, variable in script.used:
                if variable not in known:
                    raise ValueError(
                        f"{name}, line {line}: the variable :{variable} is never set; add "
                        f"\\set {variable} ... to the script, or define it as pgbench's -D does"
                    )


def _script_in(folder: Path, name: str) -> Script:
    if not (folder / name).is_file():
        raise ValueError(f"there is no file {name} beside suite.toml")
    return parse_script((folder / name).read_text(encoding="utf-8", errors="replace"))


_ABORTED = re.compile(r"script (\d+) aborted in command (\d+)(?: query \d+)?: *")
_BEFORE = re.compile(r"(?:exit status \d+|pgbench failed): (.*?); client \d", re.DOTALL)
_VAGUE = re.compile(
    r"""ERROR: *prepared statement "P\d*_\d+" does not exist|evaluation of meta-command failed"""
)
"""What follows when a statement was not prepared, or an expression has no value, after the reason."""
_SENTENCE = re.compile(r"(?:ERROR: *)?(.*?)(?:; client \d+ .*|; Run was aborted.*)?$", re.DOTALL)
"""What the server or pgbench said, without what follows: the same of other clients."""
_IN_SCRIPT = re.compile(r"aborted in command (\d+) \((\w+)\) of script (\d+); *")


def located(said: str, folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and the rest of what pgbench `said`, if it is about a command of a script."""
    for pattern, script_group, command_group in ((_ABORTED, 1, 2), (_IN_SCRIPT, 3, 1)):
        match = pattern.search(said)
        if match is not None and int(match[script_group]) < len(names):
            name = weighted_script(names[int(match[script_group])]).name
            lines = _script_in(folder, name).lines
            if int(match[command_group]) < len(lines):
                rest = said[match.end() :]
                before = _BEFORE.search(said[: match.start()]) if _VAGUE.match(rest) else None
                sentence = _SENTENCE.match(before[1] if before else rest)
                yield name, lines[int(match[command_group])], sentence[1] if sentence else rest
                return

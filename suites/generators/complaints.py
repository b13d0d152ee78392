"""What a load generator says when it fails, in a sentence: its first error, with statements shortened."""

import re
from collections.abc import Iterable

LONGEST_LINE = 200
"""The most characters of a line that is shown: a failed INSERT may have thousands."""

LONGEST_COMMAND = 500
"""The most characters of a command that is shown."""

MAX_LINES = 2
"""The most lines that are shown; an error and the statement are two."""

SCRIPT_LINE = "tidemark:"
"""What the lines begin with that a script prints for Tidemark."""

_ERROR = re.compile(r"^\W*(?:FATAL|PANIC|ERROR|[Ee]rror|pgbench: (?:error|fatal))\b:? *")
_OF_THREAD = re.compile(r"^`\w+' function failed: *(?:\S+\.lua:\d+: *)?")
"""How sysbench begins to repeat, for each thread, what the driver has said before."""

_OF_DRIVER = re.compile(r"^SQL error, errno = ")

_REPORT = re.compile(
    r"sysbench \d|Running the test with|Number of threads|Initializing |Threads started|Random number "
    r"|Report intermediate|\[ \d+s \]|progress: |pgbench \(PostgreSQL\)|starting vacuum"
)
"""Lines that load generators print of their work when nothing is wrong."""


def complaint(lines: Iterable[str], *, is_over: bool = True) -> str:
    """Return the first errors in the output of a load generator; without any its last words, if it `is_over`.

    Empty if there is nothing but what it says when it works.
    """
    said = [line for line in map(_in_a_line, lines) if line and not line.startswith(SCRIPT_LINE)]
    errors = dict.fromkeys(_ERROR.sub("", line) for line in said if _ERROR.match(line))
    of_threads = dict.fromkeys(_OF_THREAD.sub("", line) for line in errors if _OF_THREAD.match(line))
    first = [line for line in errors if not _OF_THREAD.match(line)]
    # What a script raises itself is said by nobody else.
    own = [line for line in of_threads if not (first and _OF_DRIVER.match(line))]
    last = [line for line in said if is_over and not _REPORT.match(line)]
    return "; ".join(map(_shortened, [*first, *own][:MAX_LINES] or last[-MAX_LINES:]))


def shortened_command(words: Iterable[object]) -> str:
    """Return a command line that fits into a message."""
    return _shortened(_in_a_line(" ".join(map(str, words))), LONGEST_COMMAND)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str, longest: int = LONGEST_LINE) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"

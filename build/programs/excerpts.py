"""The part of a log that says why a program failed: its first error, with the lines around it."""

import re
from collections.abc import Sequence

LINES_BEFORE = 3
LINES_AFTER = 8

LONGEST_LINE = 300
"""The most characters of a line that is shown: commands of a compile have thousands."""

_OF_COMPILER = re.compile(
    r":\d+: (?:fatal )?error: |^[\w./+-]+: (?:fatal )?error: |^error(?:\[\w+\])?: |internal compiler error"
    r"|undefined reference to|multiple definition of|\bld: cannot find |^configure: error: |^CMake Error\b"
    r"|No space left on device|[Cc]annot allocate memory|Killed signal"
)
"""What compilers, linkers, configure and CMake say when they fail."""

_OF_SHELL = re.compile(
    r"^FATAL|^ERROR\b|syntax error|command not found|: not found$|: No such file or directory"
    r"|: Permission denied|[Oo]ut of memory|^Killed"
)
"""What other programs say, some of them also of what does not matter."""

_OF_MAKE = re.compile(r"^\S*make\S*: \*\*\* (?!.*\(ignored\))|^ninja: (?:error|build stopped): |^FAILED: ")
"""What make and ninja say of a program that failed, after its own words."""

_CHECK = re.compile(r"^configure:\d+: (?:checking|error)\b")
_CONFIGURE_FAILED = re.compile(r"^configure:\d+: error: ")
_TEST_PROGRAM = ("|", "configure: failed program was:")


def first_error(lines: Sequence[str]) -> list[str]:
    """Return the first error in the output of a command, with some lines around it; none if it says none.

    What other programs say counts only if no compiler says one, and what make says only if nobody does.
    """
    around = (LINES_BEFORE, LINES_AFTER)
    for pattern, (before, after) in (
        (_OF_COMPILER, around),
        (_OF_SHELL, around),
        (_OF_MAKE, (LINES_AFTER, LINES_BEFORE)),
    ):
        place = next((place for place, line in enumerate(lines) if pattern.search(line)), None)
        if place is not None:
            return shortened(lines[max(0, place - before) : place + 1 + after])
    return []


def failed_check(config_log: str) -> list[str]:
    """Return the check in a config.log of Autoconf at which configure gave up; none if there is none.

    Other checks fail too, as that is how configure finds things out; the program that a check compiles is
    left out.
    """
    lines = config_log.splitlines()
    end = next((place for place, line in enumerate(lines) if _CONFIGURE_FAILED.match(line)), None)
    if end is None:
        return []
    begins = (place for place in range(end - 1, -1, -1) if _CHECK.match(lines[place]))
    check = [line for line in lines[next(begins, end) : end] if not line.startswith(_TEST_PROGRAM)]
    return shortened(check[: LINES_BEFORE + LINES_AFTER])


def shortened(lines: Sequence[str]) -> list[str]:
    """Return lines of at most LONGEST_LINE characters."""
    return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in lines]

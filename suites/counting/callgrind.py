"""Parsing callgrind's files: how many instructions each function executed, by whom it was called, how often.

The format is described in valgrind's manual, "Callgrind Format Specification". Files are written with
`--separate-callers`, so that a function's name is followed by its callers, innermost first, separated by `'`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from build.errors import TidemarkError

_NUMBER = re.compile(r"[0-9]{1,15}")
_HEADER = re.compile(r"([a-z]+): *(.*)")
_NAMED = re.compile(r"(c?fn)=(?:\(([0-9]{1,9})\))? ?(.*)")
_COST = re.compile(r"(?:[+-]?[0-9]{1,15}|\*|0x[0-9a-f]{1,16})(?: ([0-9]{1,15}))?")
_CALLS = re.compile(r"calls=([0-9]{1,15}) .*")
_IGNORED = ("fl=", "fi=", "fe=", "ob=", "cob=", "cfi=", "cfl=")

_ROOT_FRAMES = re.compile(
    r"\(below main\)|main|__libc_start_(?:main|call_main).*|_start|clone3?|start_thread"
)
"""The functions that start a program or a thread, with which no stack needs to begin."""

_CLONE = re.compile(r"@@?[A-Za-z_0-9.]+$|(?:\.(?:constprop|isra|part|cold|lto_priv)(?:\.[0-9]+)?)+$")
"""The version of a symbol, and the suffix of a copy that the compiler made of a function."""


class CallgrindError(TidemarkError):
    """A file is not one of callgrind, or is damaged."""


@dataclass
class InstructionProfile:
    """What one process or thread executed up to a mark, since the one before."""

    instructions: int = 0
    """The total that callgrind states."""
    stacks: Counter[str] = field(default_factory=Counter)
    """Folded stack (`outermost;...;innermost`) -> instructions of its innermost function itself."""
    calls: Counter[str] = field(default_factory=Counter)
    """Function -> how often it was called, by anyone."""
    inclusive: Counter[str] = field(default_factory=Counter)
    """Function -> instructions of its calls with all callees; more than there are if it calls itself."""


def parsed(text: str, where: str = "") -> InstructionProfile:
    """Parse one file. Raises CallgrindError, also when its lines do not add up to its total."""
    lines = iter(text.splitlines())
    if not next(lines, "").startswith("# callgrind format"):
        raise CallgrindError("the file is not one of callgrind", where=where)
    profile, total = InstructionProfile(), -1
    try:
        total = _read(lines, profile)
    except (ValueError, KeyError) as error:
        raise CallgrindError(f"a line of callgrind's file cannot be parsed: {error}", where=where) from None
    counted = sum(profile.stacks.values())
    if total != counted:
        raise CallgrindError(
            f"callgrind's file is cut off or damaged: its functions have {counted} instructions of {total}",
            where=where,
        )
    profile.instructions = total
    return profile


def _read(lines: Iterable[str], profile: InstructionProfile) -> int:
    """Read all lines into `profile`, and return the total that the file states, or -1 without one."""
    names: dict[str, str] = {}
    stacks: dict[str, str] = {}
    current = called = function = ""
    total, is_call = -1, False
    for line in lines:
        if match := _COST.fullmatch(line):
            if is_call:
                is_call = False
                profile.inclusive[function] += int(match[1] or 0)
            elif match[1]:
                profile.stacks[stacks[current]] += int(match[1])
        elif match := _NAMED.fullmatch(line):
            name = _resolved(names, match[2], match[3])
            if match[1] == "cfn":
                called = name
            else:
                current = name
                stacks.setdefault(name, folded(name))
        elif match := _CALLS.fullmatch(line):
            function = plain(called.split("'", 1)[0])
            profile.calls[function] += int(match[1])
            is_call = True
        elif line.startswith(("totals:", "summary:")):
            total = _count(line.partition(":")[2])
        elif line and not line.startswith(_IGNORED):
            _check_header(line)
    return total


def _check_header(line: str) -> None:
    header = _HEADER.fullmatch(line)
    if header is None:
        raise ValueError(line[:200])
    if header[1] == "events" and header[2].split() != ["Ir"]:
        raise ValueError(f"{line[:200]}: only Ir, instructions, is expected")


def _resolved(names: dict[str, str], number: str | None, name: str) -> str:
    """Return a name that may be abbreviated by its number; the first line with a number has the name."""
    if number is None:
        return name
    if name:
        names[number] = name
    return names[number]


def _count(text: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(text[:200])
    return int(match[0])


def folded(name: str) -> str:
    """Return the folded stack of a name with its callers, without the frames that start the program."""
    frames = [plain(frame) for frame in reversed(name.split("'"))]
    begin = next((at for at, frame in enumerate(frames) if not _is_root(frame)), len(frames) - 1)
    return ";".join(frame.replace(";", ":") for frame in frames[begin:])


def plain(function: str) -> str:
    """Return a function's name without the version of its symbol and the suffixes of the compiler's copies.

    An address, of a function without a symbol, becomes `[unknown]`: it differs from build to build.
    """
    if function.startswith("0x"):
        return "[unknown]"
    return _CLONE.sub("", function)


def _is_root(frame: str) -> bool:
    return frame == "[unknown]" or _ROOT_FRAMES.fullmatch(frame) is not None

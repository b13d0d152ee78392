"""Converting perf's file to folded stacks: perf resolves symbols, and threads become roles."""

import re
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from build import environment
from suites.profiling.perf import PerfError, in_a_sentence
from suites.profiling.stacks import OTHER

FIELDS = "comm,pid,tid,time,event,ip,sym,dso"
"""The fields of a sample that are read."""

READ_SECONDS = 600
"""Time limit of perf: far more than it needs for the samples of a minute."""

Window = tuple[float, float]
"""Begin and end in seconds of the monotonic clock."""

# More digits than these are damage: the kernel's process numbers have seven, and int() refuses thousands.
_HEADER = re.compile(
    rb"\S[^\n]*? +(?P<pid>[0-9]{1,9})/(?P<tid>[0-9]{1,9}) +(?P<time>[0-9]{1,15}\.[0-9]{1,9}): +"
    rb"(?:[0-9]+ +)?[^\s:]+:"
)
"""The first line of a sample: name, process and thread, time, event. perf writes a process that is gone as
`:-1 -1/-1`, or without a name."""

_FRAME = re.compile(rb"\s+[0-9a-f]+ (?P<symbol>.*) \((?P<file>\S+)\)")
"""A line of a stack: address, function, and the file of its code. Files that are deleted are no server's."""

_OFFSET = re.compile(r"\+0x[0-9a-f]*$")
ANONYMOUS = "(anonymous namespace)"
"""A namespace of C++ that has parentheses, but no arguments."""

_LOST = re.compile(rb"^[ \t]*LOST(?:_SAMPLES)? events:[ \t]+([0-9]{1,12})$", re.MULTILINE)
_FORK = re.compile(rb"PERF_RECORD_FORK\(([0-9]{1,9}):[0-9]+\):\(([0-9]{1,9}):[0-9]+\)")
_TASK_EVENT = re.compile(rb"^.*\bPERF_RECORD_.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Samples:
    """The contents of a file of perf."""

    text: bytes
    """The output of `perf script`, with one block per sample."""
    parents: Mapping[int, int]
    """Child -> parent, for processes that were started during the recording."""
    lost: int
    """Number of samples of all processes that the kernel lost."""


def read(file: Path, perf: str) -> Samples:
    """Read a file of perf, and let `perf` resolve the symbols. Raises PerfError."""
    # The samples of inlined functions count for the function that they are inlined into.
    options = ["--fields", FIELDS, "--no-inline", "--show-task-events"]
    text = _perf([perf, "script", "--input", str(file), *options])
    return parsed_samples(text, _perf([perf, "report", "--stats", "--input", str(file)]))


def parsed_samples(text: bytes, stats: bytes) -> Samples:
    """What `perf script` and `perf report --stats` printed of one file; lines of no interest are ignored."""
    parents = {int(child): int(parent) for child, parent in _FORK.findall(text) if child != parent}
    return Samples(_TASK_EVENT.sub(b"", text), parents, sum(map(int, _LOST.findall(stats))))


def fold(
    samples: Samples, pids: Collection[int], roles: Mapping[int, str], windows: Sequence[Window]
) -> Mapping[str, int]:
    """Return role and stack -> number of samples, for `pids` and their descendants in the `windows`.

    `roles` maps thread ids to roles, and a thread that is not there is OTHER. Samples of processes that had
    no name or number any more are left out: they belong to no server. Raises PerfError when perf has printed
    something, and no sample in it can be read.
    """
    ours = descendants(pids, samples.parents)
    stacks: Counter[str] = Counter()
    is_readable = not samples.text.strip()
    for block in samples.text.split(b"\n\n"):
        header, _, lines = block.lstrip(b"\n").partition(b"\n")
        found = _HEADER.match(header)
        if found is None:
            continue
        is_readable = True
        moment = float(found["time"])
        if int(found["pid"]) not in ours or not any(begin <= moment < end for begin, end in windows):
            continue
        frames = [name for line in lines.split(b"\n") if (name := frame_of(line))]
        if frames:
            stacks[";".join([roles.get(int(found["tid"]), OTHER), *reversed(frames)])] += 1
    if not is_readable:
        raise PerfError("no sample in what perf printed can be read", where=_excerpt(samples.text))
    return stacks


@lru_cache(maxsize=100_000)  # the same lines are in most samples
def frame_of(line: bytes) -> str:
    """Return the name of a line of a stack, as folded stacks have it; empty for anything else.

    A function has no arguments and no offset; one of the kernel ends in `_[k]`, and one without a name is the
    name of its file in brackets.
    """
    found = _FRAME.fullmatch(line)
    if found is None:
        return ""
    symbol, file = (found[part].decode(errors="replace") for part in ("symbol", "file"))
    name = _OFFSET.sub("", symbol.strip())
    if name.startswith("(") and not name.startswith(ANONYMOUS):  # the name of a process
        return ""
    if name == "[unknown]" and file != "[unknown]":
        name = f"[{file.rpartition('/')[2]}]"
    is_kernel = file != "[unknown]" and (file.startswith("[") or file.endswith("vmlinux"))
    return without_arguments(name.replace(";", ":")) + ("_[k]" if is_kernel else "")


def without_arguments(name: str) -> str:
    """Return a C++ function without the list of its arguments, which follows its templates and namespaces."""
    depth = 0
    for place, letter in enumerate(name):
        if letter == "(" and not depth and not name.startswith(ANONYMOUS, place):
            return name[:place]
        depth = max(0, depth + (letter in "<{[(") - (letter in ">}])"))
    return name


def _excerpt(text: bytes) -> str:
    return text.strip().split(b"\n", 1)[0][:200].decode(errors="replace")


def descendants(pids: Collection[int], parents: Mapping[int, int]) -> set[int]:
    """Return `pids` and all their descendants."""
    known = set(pids)
    # Parents start before their children, and perf reports starts in order.
    for child, parent in parents.items():
        if parent in known:
            known.add(child)
    return known


def _perf(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=READ_SECONDS, env=environment.measured(), check=False
        )
    except subprocess.TimeoutExpired:
        raise PerfError(f"perf has not read its samples after {READ_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise PerfError(f"perf cannot read its samples: {in_a_sentence('perf', said)}")
    return done.stdout

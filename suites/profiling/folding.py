"""Converting perf's file to folded stacks: perf resolves symbols, inferno folds, threads become roles."""

import re
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from build.programs import environment
from suites.profiling.output import in_a_sentence
from suites.profiling.perf import PerfError
from suites.profiling.stacks import OTHER

FIELDS = "comm,pid,tid,time,event,ip,sym,dso"
"""The fields of a sample that inferno reads."""

FOLD_SECONDS = 600
"""Time limit of perf and inferno: far more than they need for the samples of a minute."""

Window = tuple[float, float]
"""Begin and end in seconds of the monotonic clock."""

_HEADER = re.compile(rb"\S[^\n]*? +\d+/\d+ +(?P<time>[0-9]{1,15}\.[0-9]{1,9}): +(?:\d+ +)?[^\s:]+:")
"""The first line of a sample: name, process and thread, time, event. perf writes a process that is gone as
`:-1 -1/-1`, or without a name; if the first sample is of one, inferno panics for want of an event."""

# More digits than these are damage: the kernel's process numbers have seven, and int() refuses thousands.
_THREAD = re.compile(r"(?P<comm>.*)-(?P<pid>[0-9]{1,9}|\?)/(?P<tid>[0-9]{1,9})")
_COUNT = re.compile(r"[0-9]{1,12}")
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
    samples: Samples,
    inferno: Path,
    pids: Collection[int],
    roles: Mapping[int, str],
    windows: Sequence[Window],
) -> Mapping[str, int]:
    """Return role and stack -> number of samples, for `pids` and their descendants in the `windows`.

    `roles` maps thread ids to roles; `inferno` is the folder of inferno's programs. Raises PerfError.
    """
    kept = within(samples.text, windows)
    return by_role(collapse(kept, inferno), roles, descendants(pids, samples.parents))


def descendants(pids: Collection[int], parents: Mapping[int, int]) -> set[int]:
    """Return `pids` and all their descendants."""
    known = set(pids)
    # Parents start before their children, and perf reports starts in order.
    for child, parent in parents.items():
        if parent in known:
            known.add(child)
    return known


def within(text: bytes, windows: Sequence[Window]) -> bytes:
    """The samples of the output of `perf script` that were taken in one of the windows.

    Those of processes that had no name or number any more are left out: they belong to no server.
    """
    kept = []
    for block in text.split(b"\n\n"):
        sample = block.lstrip(b"\n")
        found = _HEADER.match(sample)
        if found and any(begin <= float(found["time"]) < end for begin, end in windows):
            kept.append(sample)
    return b"".join(sample + b"\n\n" for sample in kept)


def collapse(text: bytes, inferno: Path) -> str:
    """Fold the output of `perf script` with inferno: one line per stack and thread. Raises PerfError."""
    # --tid: the process is written as `comm-pid/tid`. --kernel: kernel functions are marked with `_[k]`.
    command: list[str | Path] = [inferno / "inferno-collapse-perf", "--tid", "--kernel"]
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            timeout=FOLD_SECONDS,
            env=environment.measured(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PerfError(f"inferno has not folded the samples after {FOLD_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise PerfError(f"inferno cannot fold the samples: {in_a_sentence('inferno', said)}")
    return done.stdout.decode(errors="replace")


def by_role(folded: str, roles: Mapping[int, str], pids: Collection[int]) -> Mapping[str, int]:
    """Return stack -> samples of the processes `pids`, with the thread's role as the root of the stack.

    The role of a thread that is not in `roles` is OTHER. Raises PerfError for a malformed line.
    """
    stacks: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        process, _, frames = stack.partition(";")
        thread = _THREAD.fullmatch(process)
        if thread is None or not _COUNT.fullmatch(count):
            raise PerfError(
                "a line of inferno's output is not a folded stack with its thread", where=line[:200]
            )
        if thread["pid"] != "?" and int(thread["pid"]) in pids:
            role = roles.get(int(thread["tid"]), OTHER)
            stacks[f"{role};{frames}" if frames else role] += int(count)
    return stacks


def _perf(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=FOLD_SECONDS, env=environment.measured(), check=False
        )
    except subprocess.TimeoutExpired:
        raise PerfError(f"perf has not read its samples after {FOLD_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise PerfError(f"perf cannot read its samples: {in_a_sentence('perf', said)}")
    return done.stdout

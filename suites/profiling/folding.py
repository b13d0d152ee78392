"""From perf's file to folded stacks: perf names the frames, inferno folds them, and threads become roles."""

import re
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suites.processes import tail
from suites.profiling.perf import PerfError
from suites.profiling.stacks import OTHER

FIELDS = "comm,pid,tid,time,event,ip,sym,dso"
"""What inferno reads of a sample."""

FOLD_SECONDS = 600
"""Far more than the samples of a minute take."""

Window = tuple[float, float]
"""Beginning and end, in seconds of the monotonic clock."""

# More digits than these are damage: the kernel's process numbers have seven, and int() refuses thousands.
_TIME = re.compile(rb"^\S.*?\s([0-9]{1,15}\.[0-9]{1,9}):\s", re.MULTILINE)
_THREAD = re.compile(r"(?P<comm>.*)-(?P<pid>[0-9]{1,9}|\?)/(?P<tid>[0-9]{1,9})")
_COUNT = re.compile(r"[0-9]{1,12}")
_LOST = re.compile(rb"^[ \t]*LOST(?:_SAMPLES)? events:[ \t]+([0-9]{1,12})$", re.MULTILINE)
_FORK = re.compile(rb"PERF_RECORD_FORK\(([0-9]{1,9}):[0-9]+\):\(([0-9]{1,9}):[0-9]+\)")
_TASK_EVENT = re.compile(rb"^.*\bPERF_RECORD_.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Samples:
    """What a file of perf holds."""

    text: bytes
    """As `perf script` prints it: a block for each sample."""
    parents: Mapping[int, int]
    """Of processes that were born meanwhile."""
    lost: int
    """Samples that the kernel could not hand over, of whatever process."""


def read(file: Path, perf: str) -> Samples:
    """Have perf name the frames of its samples. Raises PerfError."""
    # Inlined functions count for the one that they are part of.
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
    """Samples of some processes and their descendants, in some windows: by role and stack.

    `roles` names threads by their numbers; `inferno` is the folder of its programs. Raises PerfError.
    """
    kept = within(samples.text, windows)
    return by_role(collapse(kept, inferno), roles, descendants(pids, samples.parents))


def descendants(pids: Collection[int], parents: Mapping[int, int]) -> set[int]:
    """`pids`, and every process that comes from one of them."""
    found = set(pids)
    # Parents are born before their children, and perf tells of births in their order.
    for child, parent in parents.items():
        if parent in found:
            found.add(child)
    return found


def within(text: bytes, windows: Sequence[Window]) -> bytes:
    """The samples of the output of `perf script` that were taken in one of the windows."""
    kept = []
    for sample in text.split(b"\n\n"):
        found = _TIME.search(sample)
        if found and any(begin <= float(found[1]) < end for begin, end in windows):
            kept.append(sample)
    return b"".join(sample + b"\n\n" for sample in kept)


def collapse(text: bytes, inferno: Path) -> str:
    """What inferno makes of the output of `perf script`: a line for each stack of each thread."""
    # --tid: the process is written as `comm-pid/tid`. --kernel: kernel functions are marked with `_[k]`.
    command: list[str | Path] = [inferno / "inferno-collapse-perf", "--tid", "--kernel"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=FOLD_SECONDS, check=False)
    if done.returncode != 0:
        raise PerfError("inferno cannot fold the samples", hint=tail(done.stderr.decode(errors="replace")))
    return done.stdout.decode(errors="replace")


def by_role(folded: str, roles: Mapping[int, str], pids: Collection[int]) -> Mapping[str, int]:
    """Samples of the processes `pids` by stack, the process at its root replaced by the role of its thread.

    A thread that nobody named is OTHER. Raises PerfError for a line that is no folded stack.
    """
    stacks: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        process, _, frames = stack.partition(";")
        found = _THREAD.fullmatch(process)
        if found is None or not _COUNT.fullmatch(count):
            raise PerfError("not a folded stack with its thread", where=line[:200])
        if found["pid"] != "?" and int(found["pid"]) in pids:
            role = roles.get(int(found["tid"]), OTHER)
            stacks[f"{role};{frames}" if frames else role] += int(count)
    return stacks


def _perf(command: Sequence[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, timeout=FOLD_SECONDS, check=False)
    if done.returncode != 0:
        raise PerfError("perf cannot read its samples", hint=tail(done.stderr.decode(errors="replace")))
    return done.stdout

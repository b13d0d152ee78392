"""From perf's file to folded stacks: perf names the frames, inferno folds them, and threads become roles."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
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

_TIME = re.compile(rb"^\S.*?\s(\d+\.\d+):\s", re.MULTILINE)
_THREAD = re.compile(r"(?P<comm>.*)-(?P<pid>\d+|\?)/(?P<tid>\d+)")
_LOST = re.compile(r"^\s*LOST(?:_SAMPLES)? events:\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Folded:
    """What a file of perf holds."""

    stacks: Mapping[str, int]
    """Samples by `role;outermost;...;innermost`."""
    lost: int
    """Records of lost samples."""


def fold(
    samples: Path, perf: str, inferno: Path, roles: Mapping[int, str], windows: Sequence[Window]
) -> Folded:
    """Fold the samples of a file that lie in one of the windows; `roles` names threads by their numbers.

    `inferno` is the folder of its programs. Raises PerfError.
    """
    text = within(script(samples, perf), windows)
    return Folded(by_role(collapse(text, inferno), roles), _lost(samples, perf))


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


def by_role(folded: str, roles: Mapping[int, str]) -> Mapping[str, int]:
    """Samples by stack, the process at the root of each replaced by the role of its thread.

    A thread that nobody named is OTHER. Raises PerfError for a line that is no folded stack.
    """
    stacks: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        process, _, frames = stack.partition(";")
        found = _THREAD.fullmatch(process)
        if found is None or not count.isdigit():
            raise PerfError("not a folded stack with its thread", where=line[:200])
        role = roles.get(int(found["tid"]))
        stacks[f"{role or OTHER};{frames}" if frames else role or OTHER] += int(count)
    return stacks


def script(samples: Path, perf: str) -> bytes:
    """Every sample with named frames. Inlined functions count for the one that they are part of."""
    command = [perf, "script", "--input", str(samples), "--fields", FIELDS, "--no-inline"]
    done = subprocess.run(command, capture_output=True, timeout=FOLD_SECONDS, check=False)
    if done.returncode != 0:
        raise PerfError("perf cannot read its samples", hint=tail(done.stderr.decode(errors="replace")))
    return done.stdout


def _lost(samples: Path, perf: str) -> int:
    command = [perf, "report", "--stats", "--input", str(samples)]
    done = subprocess.run(command, capture_output=True, timeout=FOLD_SECONDS, check=False)
    return sum(map(int, _LOST.findall(done.stdout.decode(errors="replace"))))

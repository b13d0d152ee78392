"""Exact counts: how far equal builds are apart, false verdicts, planted slow-downs, the time of a session.

`$TIDEMARK_BENCH_PARTS` selects parts: `equal` (one source of Postgres compiled twice), `copied` (MySQL's
build in two folders), `false` (sessions drawn from recorded passes), `levels` (simulated counts that take
levels by chance), `planted`, `busy` (the same beside busy processes) and `time` (two versions of Postgres).
With `record`, the passes of `equal` and `copied` are added to benchmarks/counts/passes.json, which
`false` draws from.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.counts.counted_levels import level_figures
from benchmarks.counts.counted_sessions import (
    CountedSessions,
    busy_figures,
    copied_figures,
    equal_figures,
    planted_figures,
    time_figures,
)
from benchmarks.counts.recorded_passes import false_figures
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from build.home import locate
from runners.console import Lines

PARTS: Mapping[str, Callable[[CountedSessions], Iterable[Figure]]] = {
    "equal": equal_figures,
    "copied": copied_figures,
    "false": lambda sessions: false_figures(),
    "levels": lambda sessions: level_figures(),
    "planted": planted_figures,
    "busy": busy_figures,
    "time": time_figures,
}
"""Part -> function that returns its figures with their targets."""

RECORD = "record"


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    words = chosen_parts("exact", PARTS, modifiers=(RECORD,))
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.path) as folder:
        Path(folder).chmod(0o755)  # the user of the servers needs access to the builds in it
        sessions = CountedSessions(home, Lines(), Path(folder), records=RECORD in words)
        return report([figure for word in words if word in PARTS for figure in PARTS[word](sessions)])

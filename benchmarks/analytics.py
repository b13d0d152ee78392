"""Long queries and the insert benchmark on real servers: answers, planted changes of plans, writers.

`$TIDEMARK_BENCH_PARTS` selects answers, share, index, setting, restored and ingest. The part
answers loads scale factor 1 on three engines, and keeps the copies that restored begins with.
"""

from benchmarks.output.figures import report
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.analytical_sessions import PARTS
from benchmarks.real_builds.ingest_sessions import ingest_figures
from benchmarks.real_builds.restored_copies import restored_figures
from build.home import locate
from runners.console import Lines


def main() -> int:
    """Measure the figures of the chosen parts; return 0 if all targets are met, else 1."""
    parts = {**PARTS, "restored": restored_figures, "ingest": ingest_figures}
    chosen = chosen_parts("analytics", parts)
    home, shown = locate(), Lines()
    return report([figure for name in chosen for figure in parts[name](home, shown)])

"""Long queries on real servers: right answers, the client's own share, and planted changes of plans.

`$TIDEMARK_BENCH_PARTS` selects answers, share, index and setting. The part answers loads scale factor 1 on
three engines.
"""

import os

from benchmarks.output.figures import report
from benchmarks.real_builds.analytical_sessions import PARTS
from build.home import locate
from runners.console import Lines


def main() -> int:
    """Measure the figures of the chosen parts; return 0 if all targets are met, else 1."""
    chosen = os.environ.get("TIDEMARK_BENCH_PARTS", " ".join(PARTS)).split()
    home, shown = locate(), Lines()
    return report([figure for name in chosen for figure in PARTS[name](home, shown)])

"""Whether ten years of nights, their report and a fleet that records are fast: `./tidemark bench scale`.

`$TIDEMARK_BENCH_PARTS` selects parts: `history` (size and speed of ten years of nights), `site` (time, memory
and size of a large report), `pages` (how fast a browser shows it) and `writers` (twenty boxes that record
into a history on a server). All of them take about twenty minutes.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.scale.large_history import history_figures
from benchmarks.scale.report_site import page_figures, site_figures
from benchmarks.scale.writing import writing_figures
from build.home import locate

PARTS: Mapping[str, Callable[[Path], Iterable[Figure]]] = {
    "history": history_figures,
    "site": site_figures,
    "pages": page_figures,
    "writers": lambda folder: writing_figures(),
}
"""Part -> function that returns its figures, which works in a folder of its own."""


def main() -> int:
    """Print the figures of the chosen parts; return 0 if all targets are met, else 1."""
    parts = chosen_parts("scale", PARTS)
    home = locate()
    home.scratch.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    for part in parts:
        with tempfile.TemporaryDirectory(dir=home.scratch) as folder:
            figures += PARTS[part](Path(folder))
    return report(figures)

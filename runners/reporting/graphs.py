"""Flame graphs for the site, drawn by inferno where it is installed."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from build.home import Home
from build.inferno import find_inferno
from history.comparison.profile_diff import Differential
from report.writing.session_files import DrawGraphs, no_graphs
from runners.flamegraphs import draw, draw_difference
from suites.profiling.perf import PerfError


def drawer(home: Home) -> DrawGraphs:
    """Return what draws flame graphs; without inferno, which `profile` compiles, it draws nothing."""
    inferno = find_inferno(home)
    if inferno is None:
        return no_graphs

    def graphs(step: str, contender: str, both: Differential) -> Mapping[str, str]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            try:
                drawn = {
                    "base": draw(both.base, f"{step}: base", folder / "base.svg", inferno),
                    contender: draw(both.contender, f"{step}: {contender}", folder / "new.svg", inferno),
                    "the difference": draw_difference(
                        both, f"{step}: {contender} against its base", folder / "both.svg", inferno
                    ),
                }
            except PerfError:
                return {}  # a profile that inferno cannot draw does not keep the site from being written
            return {what: path.read_text(encoding="utf-8") for what, path in drawn.items()}

    return graphs

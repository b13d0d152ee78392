"""Flame graphs of profiles as SVG, drawn by inferno; widths are CPU time per query."""

import subprocess
from pathlib import Path

from build.files import make_folder
from history.comparison.profile_diff import Differential, total
from history.escaping.characters import one_line, unbroken, visible
from suites.profiling.output import in_a_sentence
from suites.profiling.perf import PerfError
from suites.profiling.stacks import StepProfile

UNIT = "ns per query"
WIDTH = 1600
"""In pixels: an SVG in a page is scaled anyway, but narrow frames lose their names."""


def folded(profile: StepProfile) -> str:
    """Return folded stacks with whole nanoseconds per query in place of samples, to compare versions."""
    scale = 1000 * profile.microseconds_per_sample
    return "".join(
        f"{unbroken(stack)} {max(1, round(count * scale))}\n"
        for stack, count in sorted(profile.stacks.items())
    )


def draw(profile: StepProfile, title: str, output: Path, inferno: Path) -> Path:
    """Draw the flame graph of one version, and return `output`. Raises PerfError when inferno fails."""
    subtitle = f"{total(profile):.2f} µs of CPU per query, {profile.samples} samples by {profile.event}"
    if profile.is_exact:
        subtitle = f"{total(profile):.0f} instructions per query, exact"
    return _svg(folded(profile), title, subtitle, output, inferno, _unit(profile))


def draw_difference(both: Differential, title: str, output: Path, inferno: Path) -> Path:
    """Draw the contender's flame graph, red where it takes more time per query than the base, else blue.

    Frames that only the base has are missing. Returns `output`. Raises PerfError when inferno fails.
    """
    make_folder(output.parent)
    files = [output.with_suffix(f".{name}.folded") for name in ("base", "contender")]
    try:
        for file, profile in zip(files, (both.base, both.contender), strict=True):
            file.write_text(folded(profile), encoding="utf-8")
        lines = _run([inferno / "inferno-diff-folded", *files], "")
    finally:
        for file in files:
            file.unlink(missing_ok=True)
    change = both.contender_total - both.base_total
    subtitle = f"{both.base_total:.2f} to {both.contender_total:.2f} µs of CPU per query ({change:+.2f})"
    if both.base.is_exact:
        totals = f"{both.base_total:.0f} to {both.contender_total:.0f}"
        subtitle = f"{totals} instructions per query, exact ({change:+.0f})"
    return _svg(lines, title, subtitle, output, inferno, _unit(both.base))


def _unit(profile: StepProfile) -> str:
    return "thousandths of an instruction per query" if profile.is_exact else UNIT


def _svg(lines: str, title: str, subtitle: str, output: Path, inferno: Path, unit: str) -> Path:
    make_folder(output.parent)
    texts = {"title": title, "subtitle": subtitle, "countname": unit, "width": str(WIDTH)}
    options = [f"--{name}={one_line(text)}" for name, text in texts.items()]
    output.write_text(visible(_run([inferno / "inferno-flamegraph", *options], lines)), encoding="utf-8")
    return output


def _run(command: list[str | Path], lines: str) -> str:
    done = subprocess.run(
        command, input=lines, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        said = in_a_sentence("inferno", done.stderr)
        raise PerfError(f"inferno cannot draw the flame graph: {said}", where=Path(command[0]).name)
    return done.stdout

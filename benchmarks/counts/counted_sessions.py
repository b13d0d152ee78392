"""Sessions of counted passes on real servers: equal builds, planted slow-downs, and the time they take."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.counts.recorded_passes import add_passes
from benchmarks.output.figures import Figure
from build.build import Build
from build.errors import TidemarkError
from build.home import Home
from build.make import provide
from build.progress import Progress
from build.version import Version, parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.open import open_store
from runners.commands.demo import PATCH
from runners.measuring.request import PASSES, Exact, Request
from runners.measuring.session import run_session
from suites.definition import load_suite
from suites.metric_names import INSTRUCTIONS
from suites.processes import run, start, stop

OLD = parse_version("postgres@17.11")
NEW = parse_version("postgres@18.6")
MYSQL = parse_version("mysql@9.7.2")
PROFILE = "smoke"

UNTOUCHED = ("insert",)
"""The steps without an index scan, in which the demo's patch plants its loop."""

ITERATIONS = {1: 200, 5: 1000}
"""Percent -> iterations of the planted loop with which the step that it changes least has that much more."""

MIN_FOUND = 0.7
"""The share of its percentage that a planted slow-down has at least in the step that it changes least."""

MAX_APART = {NEW.engine: 0.3, MYSQL.engine: 0.7}
"""Percent by which equal builds may be apart, by engine."""

BUSY_PROCESSES = 4
MAX_MINUTES = 4.0

Passes = Mapping[str, Mapping[str, Sequence[float]]]
"""Step -> version -> instructions per query of each pass."""


@dataclass(frozen=True)
class CountedSessions:
    """Runs sessions that only count, with a history of their own."""

    home: Home
    progress: Progress
    folder: Path
    """The folder of the history and of builds, which is removed at the end."""

    records: bool = False
    """Whether the passes of equal builds are recorded."""

    def run(self, versions: Sequence[Version], given: Mapping[Version, Build] | None = None) -> str:
        """Count all steps of `versions` and return the session's uid. Raises TidemarkError if one fails."""
        suite = load_suite("write-heavy")
        request = Request(tuple(versions), suite, PROFILE, suite.steps, PASSES, exact=Exact.ONLY)
        with open_store(self.folder / "history.db") as store:
            outcome = run_session(request, self.home, store, self.progress, given)
        if not outcome.whole:
            raise TidemarkError("a pass of the session failed", where="; ".join(outcome.failures))
        return outcome.uid

    def compared(self, uid: str, base: Version, contender: Version) -> ContenderComparison:
        """Return the comparison of two versions of a session."""
        with open_store(self.folder / "history.db") as store:
            options = CompareOptions(session=uid, metric=INSTRUCTIONS)
            return compare(store, base, (contender,), options).contenders[0]

    def passes(self, uid: str, base: Version, contender: Version) -> Passes:
        """Return the passes of a session, in their order."""
        session = self.compared(uid, base, contender).session
        by_step: dict[str, dict[str, list[float]]] = {}
        with open_store(self.folder / "history.db") as store:
            for counted in store.runs(session.id, metrics=(INSTRUCTIONS,)):
                versions = by_step.setdefault(counted.step, {})
                versions.setdefault(counted.version, []).append(counted.values[INSTRUCTIONS])
        return by_step


def equal_figures(sessions: CountedSessions) -> list[Figure]:
    """Count Postgres compiled in two folders, without ccache; the second compile is kept below the home."""
    elsewhere = Home(sessions.home.path / "twin")
    elsewhere.path.mkdir(exist_ok=True)
    if not elsewhere.sources.exists():
        elsewhere.sources.symlink_to(sessions.home.sources)
    twin = provide(NEW, elsewhere, sessions.progress, use_ccache=False)
    return _apart(sessions, NEW, twin)


def copied_figures(sessions: CountedSessions) -> list[Figure]:
    """Count MySQL in two folders, of which the second has a copy of the first one's files."""
    build = provide(MYSQL, sessions.home, sessions.progress)
    copy = sessions.folder / "copied" / build.prefix.name
    copy.parent.mkdir()
    run(["cp", "--archive", build.prefix, copy], what=f"copying {build.prefix.name}")
    return _apart(sessions, MYSQL, replace(build, prefix=copy))


def _apart(sessions: CountedSessions, version: Version, second: Build) -> list[Figure]:
    """How far apart the steps of a version and of an equal build are, in percent."""
    twin = replace(version, variant="twin")
    uid = sessions.run((version, twin), {twin: replace(second, version=twin)})
    compared, passes = sessions.compared(uid, version, twin), sessions.passes(uid, version, twin)
    if sessions.records:
        add_passes(version.engine, passes)
    figures = []
    for step in compared.steps:
        value = step.judged.value
        counts = [count for of_version in passes[step.step].values() for count in of_version]
        figures.append(
            Figure(
                f"{version} twice: {step.step}",
                100.0 if value is None else 100 * abs(value - 1),
                "% apart",
                at_most=MAX_APART[version.engine],
                note=f"{step.judged.verdict or step.judged.reason}; {len(counts)} passes of "
                f"{min(counts):.0f} to {max(counts):.0f}",
            )
        )
    return figures


def planted_figures(sessions: CountedSessions) -> list[Figure]:
    """Count the planted slow-downs beside the build without them."""
    return _planted(sessions, "planted")


def busy_figures(sessions: CountedSessions) -> list[Figure]:
    """Count the planted slow-downs while other processes keep the machine busy."""
    with busy(BUSY_PROCESSES):
        return _planted(sessions, f"planted, beside {BUSY_PROCESSES} busy processes")


def _planted(sessions: CountedSessions, what: str) -> list[Figure]:
    builds = {
        replace(NEW, variant=f"planted{percent}"): provide(
            NEW, sessions.home, sessions.progress, patches=(planted_patch(sessions.folder, count),)
        )
        for percent, count in ITERATIONS.items()
    }
    given = {version: replace(build, version=version) for version, build in builds.items()}
    uid = sessions.run((NEW, *given), given)
    figures: list[Figure] = []
    for percent, contender in zip(ITERATIONS, given, strict=True):
        figures += found_figures(f"{what} {percent} %", percent, sessions.compared(uid, NEW, contender))
    return figures


def found_figures(what: str, percent: int, compared: ContenderComparison) -> Iterator[Figure]:
    """Yield in which steps a planted slow-down was found, and how large it is where it is smallest."""
    touched = [step for step in compared.steps if step.step not in UNTOUCHED]
    regressed = {step.step for step in compared.steps if step.judged.verdict is Verdict.REGRESSION}
    others = [
        step
        for step in compared.steps
        if step.step in UNTOUCHED and step.judged.verdict is not Verdict.UNCHANGED
    ]
    changes = _changes(compared)
    found = sum(step.step in regressed for step in touched)
    note = _in_words(changes)
    yield Figure(
        f"{what}: steps found", 100 * found / len(touched), "% of those touched", at_least=100, note=note
    )
    yield Figure(f"{what}: other steps not unchanged", len(others), "", at_most=0)
    least = min(changes[step.step] for step in touched)
    yield Figure(f"{what}: least change", least, "%", at_least=MIN_FOUND * percent)


def _changes(compared: ContenderComparison) -> Mapping[str, float]:
    """Return how many more instructions each step has, in percent."""
    return {step.step: 100 * ((step.judged.value or 1.0) - 1) for step in compared.steps}


def _in_words(changes: Mapping[str, float]) -> str:
    return ", ".join(f"{step} {change:+.2f} %" for step, change in changes.items())


def planted_patch(folder: Path, iterations: int) -> Path:
    """Write the demo's patch with another number of iterations, and return its path."""
    text, count = re.subn(r"i < \d+;", f"i < {iterations};", PATCH.read_text(encoding="utf-8"))
    if count != 1:
        raise TidemarkError("the demo's patch has no loop whose iterations could be set", where=str(PATCH))
    path = folder / f"planted-{iterations}.patch"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep that many cores busy during the block."""
    spinning = [
        start([sys.executable, "-c", "while True: pass"], subprocess.DEVNULL) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in spinning:
            stop(process, patience=1)


def time_figures(sessions: CountedSessions) -> list[Figure]:
    """Time a session of two versions whose builds are cached."""
    for version in (OLD, NEW):
        provide(version, sessions.home, sessions.progress)
    began = time.monotonic()
    uid = sessions.run((OLD, NEW))
    minutes = (time.monotonic() - began) / 60
    compared = sessions.compared(uid, OLD, NEW)
    steps = compared.steps
    decided = sum(not step.is_open for step in steps)
    note = f"{decided} of {len(steps)} steps decided: {_in_words(_changes(compared))}"
    return [Figure(f"{OLD} and {NEW}, {len(steps)} steps", minutes, "min", at_most=MAX_MINUTES, note=note)]

"""A user's own files and patch: how soon there is an answer, and what slices cost that pgbench cannot pause.

`$TIDEMARK_BENCH_PARTS` selects parts. `table`, `answer` and `patch` run commands as a new user does, in an
empty home to which only the builds are linked: two files and two versions to the first table; the same until
decided, within a budget of 20 minutes; a patch to one of the versions, compiled without ccache's help.
`slices` compares transactions per second of Tidemark's slices with those of one long pgbench by hand, in
turns.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.intervals import ratio_interval
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.loaded_server import loaded_server
from benchmarks.surroundings.scratch_home import link_home, tidemark
from build.home import ROOT, Home, locate
from build.make import provide
from build.programs import environment
from build.version import parse_version
from runners.commands.demo import PATCH
from runners.console import Lines
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.checking.queries import connected
from suites.definition import load_suite
from suites.generators.load import Share, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.placement import placement
from suites.keys.step import Step
from suites.metric import QPS
from suites.server import Address
from suites.sizing import Sizes, sizes, this_machine
from suites.slices import Schedule
from suites.turns.run import run_slices

VERSIONS = ("postgres@17.11", "postgres@18.6")
FILES = ROOT / "docs" / "results" / "reports" / "partitions"
WORKLOAD = ("--setup", "setup.sql", "--script", "search.pgbench", "--clients", "16")

TABLE_MINUTES = 5
ANSWER_MINUTES = 20
PATCH_MINUTES = 10

REMAINDER = re.compile(r"^undecided in .*: about .+ more: .+", re.MULTILINE)
"""The last line of a run that has not decided every step."""

SLICE_SECONDS = 5
MIN_PAIRS, MAX_PAIRS = 20, 80
CONFIDENCE = 0.99
MIN_RATIO = 0.98
MAX_RATIO = 1.1
"""Beyond it the two do not compare: slices cannot be so much faster than one long run."""


def table_figures(home: Home) -> Iterable[Figure]:
    """Yield the minutes from an empty home to the first table of two versions."""
    with _empty_home(home) as empty:
        minutes, code, _ = _tidemark(empty, "run", *WORKLOAD, *VERSIONS)
    yield Figure("exit code of run", code, "", at_most=0)
    yield Figure("to the first table", minutes, "minutes", at_most=TABLE_MINUTES)


def answer_figures(home: Home) -> Iterable[Figure]:
    """Yield the minutes until decided or out of budget, and the steps with neither verdict nor remainder.

    The remainder is the last line of a run that could not decide: the minutes that are left, and the command.
    """
    budget = ("--until-decided", "--budget", str(ANSWER_MINUTES))
    with _empty_home(home) as empty:
        minutes, code, said = _tidemark(empty, "run", *budget, *WORKLOAD, *VERSIONS)
        _, _, text = _tidemark(empty, "compare", "--format", "json", *VERSIONS, shows=False)
    steps = [step for contender in json.loads(text)["contenders"] for step in contender["steps"]]
    has_remainder = REMAINDER.search(said) is not None
    silent = [step for step in steps if step["verdict"] == "inconclusive" and not has_remainder]
    yield Figure("exit code of run", code, "", at_most=0)
    note = ", ".join(f"{step['step']} {step['verdict']}" for step in steps)
    yield Figure("to an answer", minutes, "minutes", at_most=ANSWER_MINUTES, note=note)
    yield Figure("steps without an answer or a remainder", len(silent), "", at_most=0)


def patch_figures(home: Home) -> Iterable[Figure]:
    """Yield the minutes of a try of the demo's loop, and whether instructions found it."""
    steps = [word for step in ("update-index", "delete", "insert") for word in ("--step", step)]
    with _empty_home(home) as empty:
        given = (str(PATCH), "--against", VERSIONS[-1], *steps, "--budget", str(PATCH_MINUTES))
        minutes, code, _ = _tidemark(empty, "try", *given)
    yield Figure("exit code of try, 1 for more work", code, "", at_least=1, at_most=1)
    yield Figure("from a patch to its answer", minutes, "minutes", at_most=PATCH_MINUTES)


def slices_figures(home: Home) -> Iterable[Figure]:
    """Yield transactions per second in slices over those of one long pgbench, which sleeps meanwhile.

    Each has a server of its own with the same data, and they take turns every few seconds: a machine whose
    speed changes from minute to minute changes both.
    """
    suite = load_suite("pgbench")
    version = parse_version(VERSIONS[-1])
    build = provide(version, home, Lines())
    room = sizes(suite, suite.profile("smoke"), this_machine(), suite.steps)
    generator, step = Pgbench(suite, room, build), suite.steps[0]
    by_hand: list[float] = []
    through: list[float] = []
    with (
        measuring_alone(home),
        data_folder(home, f"o{os.getpid()}") as folder,
        loaded_server(suite, version, home, folder / "1") as long,
        loaded_server(suite, version, home, folder / "2") as sliced,
        _bare_pgbench(generator, step, room, long.address) as pgbench,
    ):
        for pair in range(MAX_PAIRS):
            by_hand.append(_awake(pgbench, long.address))
            share = Share(Schedule(SLICE_SECONDS, (0,), gap_share=0.0), round=pair + 1)
            (measured,) = run_slices([sliced], generator, step, share, 0, resets=False)
            through.append(measured.values[QPS] / step.queries)
            interval = ratio_interval(by_hand, through, CONFIDENCE)
            decided = interval is not None and not interval.low <= MIN_RATIO <= interval.high
            if pair + 1 >= MIN_PAIRS and decided:
                break
    assert interval is not None  # every slice has transactions
    note = (
        f"{len(through)} pairs, {100 * CONFIDENCE:.0f} % interval {interval.low:.4f} to {interval.high:.4f}"
    )
    yield Figure(
        "pgbench in slices / by hand", interval.estimate, "", at_least=MIN_RATIO, at_most=MAX_RATIO, note=note
    )


@contextmanager
def _bare_pgbench(
    generator: Pgbench, step: Step, room: Sizes, address: Address
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield one long pgbench, stopped (SIGSTOP), on the cores of the slices' client.

    On other cores of a virtual machine it would have another throughput.
    """
    cores = placement(step, room).client
    command = generator.arguments(address, step, WorkLimit(MAX_PAIRS * SLICE_SECONDS * 10, None))
    bound = ["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []
    nowhere = subprocess.DEVNULL
    pgbench = subprocess.Popen(
        [*bound, *command], stdout=nowhere, stderr=nowhere, env=environment.measured({})
    )
    try:
        time.sleep(1)  # clients connect, and fill their caches
        pgbench.send_signal(signal.SIGSTOP)
        yield pgbench
    finally:
        pgbench.kill()
        pgbench.wait()


def _awake(pgbench: subprocess.Popen[bytes], address: Address) -> float:
    """Let pgbench work for a slice, and return its transactions per second, of which each inserts a row."""
    before, began = _history_rows(address), time.monotonic()
    pgbench.send_signal(signal.SIGCONT)
    time.sleep(SLICE_SECONDS)
    pgbench.send_signal(signal.SIGSTOP)
    seconds = time.monotonic() - began
    return (_history_rows(address) - before) / seconds


def _history_rows(address: Address) -> int:
    with connected(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pgbench_history")
        return int(cursor.fetchone()[0])


@contextmanager
def _empty_home(home: Home) -> Iterator[Path]:
    """Yield a folder with the user's files and an empty home, to which the builds of `home` are linked."""
    with tempfile.TemporaryDirectory(prefix="own-", dir=home.path) as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user of the servers enters it
        link_home(home, Home(folder / "home"), keeps_builds=False)
        for file in FILES.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        yield folder


def _tidemark(folder: Path, *words: str, shows: bool = True) -> tuple[float, int, str]:
    """Run a command in the folder of the files; return minutes, exit code and output."""
    ran = tidemark(words, Home(folder / "home"), folder, shows=shows)
    return ran.minutes, ran.exit_code, ran.printed


PARTS: Mapping[str, Callable[[Home], Iterable[Figure]]] = {
    "table": table_figures,
    "answer": answer_figures,
    "patch": patch_figures,
    "slices": slices_figures,
}
"""Part -> function that yields its figures with their targets."""


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    words = chosen_parts("own", PARTS)
    home = locate()
    for version in VERSIONS:
        provide(parse_version(version), home, Lines())
    return report([figure for word in words for figure in PARTS[word](home)])

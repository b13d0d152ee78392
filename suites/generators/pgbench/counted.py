"""A counted pass by pgbench: one client, a fixed number of transactions, and marks among them.

pgbench sends nothing between two transactions, so that marks have to be in the scripts. It is given copies of
them, in which the transactions are counted by pgbench itself, without the server, and marks are sent before
the first counted transaction and after the last one.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.files import make_folder
from suites.generators.load import CountedLoad, CountedWork, LoadError
from suites.generators.pass_course import PassCourse
from suites.generators.pgbench.command import PgbenchCommand
from suites.generators.pgbench.loading import naming_the_line
from suites.generators.pgbench.transcript import PgbenchTranscript, logged_transactions
from suites.generators.programs import LateError, lines_of
from suites.keys.pgbench_scripts import WeightedScript, weighted_script
from suites.keys.step import Step
from suites.processes import client_folder, log_folder, run
from suites.server import Address

SAMPLED = 3
"""The transactions of each script that decide how many are counted. The first one is left out: a server under
callgrind translates its code when it first executes it."""

MAX_TRIES = 1000
"""How often a transaction of the fixed work is tried: a version that refuses some has to do the same work.
How many it refuses is counted in rounds."""

REPORT_SECONDS = 10
"""The seconds between two reports of a pass."""

_BUILTIN = "builtin.sql"

_ONE_CONNECTION = "instructions were counted on one connection, without those of connecting"

_HEAD = r"""\set tidemark_done :tidemark_done + 1
\if :tidemark_done = :tidemark_first
{mark};
{mark};
{mark};
\endif
"""

# A script may end within a statement, or with a backslash that continues its last line.
_TAIL = r"""

\if :tidemark_done = :tidemark_last
{mark};
\endif
"""


def count(pgbench: PgbenchCommand, address: Address, step: Step, work: CountedWork) -> CountedLoad:
    """Run the fixed work of one client on one connection, whose random numbers are the same in every pass.

    Scripts are drawn by their weights. Raises LoadError, and LongPassError at the time limit.
    """
    course = PassCourse(work)
    with client_folder("tidemark-pgbench-") as folder:
        scripts = _marked_scripts(pgbench, step, folder, work.mark)
        marked = step.model_copy(update={"scripts": tuple(scripts)})
        connected = [*pgbench.connected_to(address), pgbench.protocol(step, address), *_fixed(pgbench)]
        try:
            began = time.monotonic()
            password = address.password_variables
            seconds = _seconds_of_transaction(connected, password, pgbench, step, folder, work.seconds)
            length = course.choose(seconds)
            numbers = {"done": 0, "first": length.warm + 1, "last": length.transactions}
            defined = [f"--define=tidemark_{name}={number}" for name, number in numbers.items()]
            files = [f"--file={script}" for script in scripts]
            limits = [f"--transactions={length.transactions}", f"--progress={REPORT_SECONDS}"]
            argv = [*connected, *limits, *pgbench.variables(step), *defined, *files]
            transcript, done = PgbenchTranscript(), 0.0
            with naming_the_line(pgbench.suite.folder, marked, folder, _HEAD.count("\n")):
                limit = work.seconds - (time.monotonic() - began)
                for _, line in lines_of(argv, limit, password, None, folder, pgbench.account):
                    if transcript.read(line):
                        before = transcript.ticks[-2][0] if len(transcript.ticks) > 1 else 0.0
                        after, tps = transcript.ticks[-1]
                        done += (after - before) * tps
                        course.tell(round(done), length.transactions, after)
        except LateError as error:
            raise course.too_long(step.name) from error
    if transcript.summary.get("transactions") != length.transactions:
        raise LoadError(
            "pgbench did not finish the transactions of a counted pass",
            where=step.name,
            hint="look at the server's log: a transaction may have failed and not been tried again",
        )
    notes = [_ONE_CONNECTION] if step.options.get("connect") else []
    return CountedLoad(length.counted, step.queries, notes)


def _fixed(pgbench: PgbenchCommand) -> Sequence[str]:
    tries = [f"--max-tries={MAX_TRIES}"] if pgbench.can_retry else []
    return ["--client=1", "--no-vacuum", f"--random-seed={pgbench.suite.seed}", *tries]


def _marked_scripts(pgbench: PgbenchCommand, step: Step, folder: Path, mark: str) -> Sequence[str]:
    """Write the scripts of a step with marks into `folder`; return their names with weights."""
    texts = {
        script.name: (pgbench.suite.folder / script.name).read_text(
            encoding="utf-8", errors="surrogateescape"
        )
        for script in map(weighted_script, step.scripts)
    }
    if not step.scripts:
        show: list[str | Path] = [pgbench.program, f"--show-script={step.options['builtin']}"]
        texts[_BUILTIN] = run(show, what="pgbench --show-script", account=pgbench.account)
    for name, text in texts.items():
        marked = _HEAD.format(mark=mark) + text + _TAIL.format(mark=mark)
        make_folder((folder / name).parent)
        (folder / name).write_text(marked, encoding="utf-8", errors="surrogateescape")
        (folder / name).chmod(0o644)
    return step.scripts or [_BUILTIN]


def _seconds_of_transaction(
    connected: Sequence[str],
    password: Mapping[str, str],
    pgbench: PgbenchCommand,
    step: Step,
    folder: Path,
    limit: float,
) -> float:
    """Return the mean seconds of a transaction by the weights of the scripts, of a few of each."""
    scripts = [weighted_script(text) for text in step.scripts] or [WeightedScript(_BUILTIN)]
    began, seconds, weights = time.monotonic(), 0.0, 0
    for script in scripts:
        alone = step.model_copy(update={"scripts": (script.name,) if step.scripts else ()})
        logs = log_folder(folder)
        sample = [f"--transactions={SAMPLED}", "--log", f"--log-prefix={logs}/log"]
        with naming_the_line(pgbench.suite.folder, alone):
            argv, left = [*connected, *sample, *pgbench.scripts(alone)], limit - (time.monotonic() - began)
            for _ in lines_of(argv, left, password, None, pgbench.suite.folder, pgbench.account):
                pass
        latencies = logged_transactions(logs)[:, 0]
        if latencies.size != SAMPLED:
            raise LoadError(
                f"pgbench carried out {latencies.size} of {SAMPLED} transactions", where=script.name
            )
        seconds += script.weight * float(latencies[1:].mean()) / 1e6
        weights += script.weight
    return seconds / weights

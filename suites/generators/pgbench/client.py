"""Running the pgbench of one build for all servers of a session."""

import contextlib
import pwd
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from build.accounts import server_account
from build.files import make_folder
from build.finished_build import Build
from build.version import Engine
from suites.definition import Suite
from suites.generators.complaints import complaint
from suites.generators.load import (
    CountedLoad,
    CountedWork,
    Load,
    LoadError,
    Observer,
    WorkLimit,
    whole_seconds,
)
from suites.generators.pass_course import PassCourse
from suites.generators.pgbench.transcript import (
    PgbenchTranscript,
    histogram_of,
    kinds_in,
    logged_transactions,
)
from suites.generators.placement import placement
from suites.generators.programs import OVERTIME_SECONDS, TRIAL_SECONDS, LateError, lines_of, run_all
from suites.generators.separate_runs.slices import RestartedGenerator
from suites.keys.pgbench_scripts import WeightedScript, located, weighted_script
from suites.keys.profile import SizedBy
from suites.keys.step import Step
from suites.postgres.client_options import client_database, client_options
from suites.postgres.setup_file import trial_copy
from suites.processes import ProcessError, client_folder, log_folder, require_files, run
from suites.server import Address
from suites.setup.loading import load_files
from suites.sizing import Sizes

ROWS_PER_SCALE = 100_000
"""Rows of pgbench_accounts per unit of --scale, by which suites without a scale are sized."""


@dataclass(frozen=True)
class PgbenchCommand:
    """The pgbench of one build, and what its command lines depend on."""

    suite: Suite
    sizes: Sizes
    program: Path
    prepares: bool = True
    """Whether a client may prepare statements."""

    can_retry: bool = True
    """Whether it is pgbench 15 or newer, which can try a transaction again after a serialisation failure."""

    @property
    def scale(self) -> int:
        """The scale factor of pgbench's own tables."""
        data = self.sizes.data
        return data.scale or max(1, data.rows // ROWS_PER_SCALE)

    @property
    def has_own_tables(self) -> bool:
        """Whether pgbench's own tables are loaded."""
        return self.suite.sized_by is not SizedBy.FILES

    def connected_to(self, address: Address) -> list[str]:
        """Return the program and the options with which it finds a server; it gets the password otherwise."""
        return [str(self.program), *client_options(address), client_database(address)]

    @property
    def account(self) -> pwd.struct_passwd | None:
        """The user that pgbench runs as, since the commit that is measured brings it; None for this one."""
        return server_account()

    def protocol(self, step: Step, address: Address) -> str:
        """Return how the statements of a step are sent to a server, as its layer says if it has one.

        Through a pooler it is as one that cannot prepare does.
        """
        protocol = address.protocol or str(step.options.get("protocol", "prepared"))
        return f"--protocol={protocol if self.prepares else 'simple'}"

    def scripts(self, step: Step) -> Sequence[str]:
        """Return the options for the scripts of a step, and for their variables.

        It must start in the folder of the suite: its user may have no access to the folders around it.
        """
        if not step.scripts:
            return [f"--builtin={step.options['builtin']}"]
        files = [f"--file={script}" for script in step.scripts]
        return [*self.variables(step), *files]

    def variables(self, step: Step) -> Sequence[str]:
        """Return the options for the variables of the scripts of a step."""
        scale = [f"--scale={self.scale}"] if self.has_own_tables else []
        return [*scale, *(f"--define={name}={value}" for name, value in step.variables.items())]


_UNREACHABLE = "connection to server"
"""What pgbench says of a server that it cannot reach, which it tries when it has read its scripts."""


def _load(pgbench: PgbenchCommand, client: Build, address: Address) -> None:
    """Load pgbench's tables with `pgbench --initialize`, then the suite's file of data, then its SQL file.

    Before that pgbench reads all scripts, and after it, it carries out each once. Raises LoadError, and
    SetupError for the files.
    """
    suite = pgbench.suite
    steps = [step for step in suite.steps if step.scripts]
    for step in steps:
        _require_readable(pgbench, step)
    if pgbench.has_own_tables:
        argv = [
            *pgbench.connected_to(address),
            *("--initialize", f"--scale={pgbench.scale}", "--quiet"),
            *(suite.initialize.words if suite.initialize else ()),
        ]
        seconds = 60.0 + 60 * pgbench.scale
        run_all([argv], 1, seconds, address.password_variables, suite.folder, pgbench.account)
    load_files([client], address, suite)
    if steps:
        with trial_copy(address) as copy:
            for step in steps:
                _try_scripts(pgbench, copy, step)


def _require_readable(pgbench: PgbenchCommand, step: Step) -> None:
    """Raise LoadError, with file and line, if pgbench cannot parse the scripts of a step.

    It reads them before it connects, here to a server that does not exist. Raises AccountError for one that
    its user may not read.
    """
    folder = pgbench.suite.folder
    require_files(pgbench.program, folder, [weighted_script(script).name for script in step.scripts])
    nowhere = [str(pgbench.program), "--host=/nonexistent", "--transactions=1", "--no-vacuum"]
    try:
        asked = [*nowhere, *pgbench.scripts(step)]
        run(asked, what="pgbench", cwd=folder, account=pgbench.account)
    except ProcessError as error:
        if _UNREACHABLE not in error.what:
            said = complaint(error.what.splitlines()) or error.what
            raise LoadError(said, where=f"{folder / 'suite.toml'}") from error


def _try_scripts(pgbench: PgbenchCommand, address: Address, step: Step) -> None:
    """Carry out one transaction of each script of a step. Raises LoadError with file and line."""
    for script in step.scripts:
        alone = step.model_copy(update={"scripts": (weighted_script(script).name,)})
        once = ["--client=1", "--transactions=1", "--no-vacuum", *pgbench.scripts(alone)]
        argv = [*pgbench.connected_to(address), pgbench.protocol(step, address), *once]
        tried = f"it was tried once, in {address.database}, a copy of the database made for that"
        with naming_the_line(pgbench.suite.folder, alone, hint=tried):
            password, folder = address.password_variables, pgbench.suite.folder
            run_all([argv], 1, TRIAL_SECONDS, password, folder, pgbench.account)


@contextlib.contextmanager
def naming_the_line(
    folder: Path, step: Step, copies: Path | None = None, lines_before: int = 0, hint: str = ""
) -> Iterator[None]:
    """Name file and line in a LoadError about a command of a script of the step, in the suite's `folder`.

    pgbench was given `copies` of the scripts in another folder, if any, with so many lines more before them.
    The error has the `hint`.
    """
    try:
        yield
    except LoadError as error:
        for file, at, said in located(error.what, copies or folder, step.scripts):
            line = max(1, at - lines_before)
            raise LoadError(
                f"{file}, line {line}: {said}",
                where=f"{folder / file}:{line}",
                hint=hint,
                place=error.place,
            ) from error
        raise


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


def _count(pgbench: PgbenchCommand, address: Address, step: Step, work: CountedWork) -> CountedLoad:
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


LOGGED_TRANSACTIONS = 2_000_000
"""Approximate maximum number of transactions whose latency is logged; above that, a random sample is."""

EXPECTED_TPS = 100_000
"""An upper bound of a client's transactions/s, which determines the sampling rate."""

_TELLS_FAILURES = 15
"""The first version whose pgbench goes on after a serialisation failure or a deadlock, and counts both."""

_ABORTED = re.compile(r"pgbench: (?:error|fatal): client \d+ (?:script \d+ )?aborted in command")
"""What pgbench says when a statement or a command of a client has failed, and the client has ended."""


class Pgbench(RestartedGenerator):
    """The pgbench of one build."""

    def __init__(self, suite: Suite, sizes: Sizes, build: Build, *, prepares: bool = True) -> None:
        self.suite = suite
        self.sizes = sizes
        self.build, program = build, build.program("pgbench")
        self.command = PgbenchCommand(suite, sizes, program, prepares, can_retry=self._tells_failures)

    @property
    def _tells_failures(self) -> bool:
        return self.build.numbers[0] >= _TELLS_FAILURES

    def version(self) -> str:
        """Return the output of `pgbench --version`."""
        asked = [str(self.command.program), "--version"]
        return run(asked, what="pgbench --version", account=self.command.account).strip()

    def load(self, address: Address) -> None:
        """Load the data of the suite, and try its scripts. Raises LoadError and SetupError."""
        _load(self.command, self.build, address)

    def arguments(self, address: Address, step: Step, work: WorkLimit, turn: int = 0) -> list[str]:
        """Return the command line of one step, without log options; every `turn` has its own seed."""
        clients = self.sizes.clients_of(step)
        threads = min(clients, max(self.sizes.threads, len(self.sizes.usable)))
        limit = f"--time={whole_seconds(work)}"
        if work.transactions is not None:
            limit = f"--transactions={max(1, work.transactions // clients)}"
        connections = [
            f"--client={clients}",
            f"--jobs={threads}",
            self.command.protocol(step, address),
            "--no-vacuum",
            *(["--failures-detailed"] if self._tells_failures else []),
            *(["--connect"] if step.options.get("connect") else []),
            *([f"--rate={step.rate:g}"] if step.rate is not None else []),
        ]
        report = ["--progress=1", f"--random-seed={self.suite.seed + turn}"]
        return [
            *self.command.connected_to(address),
            *connections,
            limit,
            *report,
            *self.command.scripts(step),
        ]

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int = 0) -> Load:
        """Run one step; the observer measures from the first progress report to the last."""
        sampled = min(1.0, LOGGED_TRANSACTIONS / (EXPECTED_TPS * work.seconds))
        transcript, said = PgbenchTranscript(), list[str]()
        with client_folder("tidemark-pgbench-") as folder:
            logs = log_folder(folder)
            log = ["--log", f"--log-prefix={logs}/log", f"--sampling-rate={sampled:g}"]
            argv = [*self.arguments(address, step, work, turn), *log]
            client = placement(step, self.sizes).client
            with naming_the_line(self.suite.folder, step):
                limit, password = work.seconds + OVERTIME_SECONDS, address.password_variables
                where, account = self.suite.folder, self.command.account
                for pid, line in lines_of(argv, limit, password, client, where, account):
                    said.append(line)
                    if _ABORTED.match(line):
                        # The other clients would go on until their time is over.
                        raise LoadError(f"pgbench failed: {complaint(said)}")
                    if transcript.read(line):
                        if len(transcript.ticks) == 1:
                            observer.begin(pid)
                        else:
                            observer.end(pid)
            arrivals = None if step.rate is None else step.rate * whole_seconds(work)
            logged = logged_transactions(logs)
            load = transcript.load(step.queries, logged, arrivals)
            scripts = [weighted_script(script).name for script in step.scripts]
            load = replace(load, kinds=kinds_in(logged, scripts, load.transactions))
            return replace(load, histogram=histogram_of(logged)) if sampled == 1 else load

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run the fixed work of one client, between marks in copies of the scripts."""
        return _count(self.command, address, step, work)


def newest_postgres(builds: Sequence[Build]) -> Build | None:
    """Return the newest build of Postgres, whose pgbench is used for all servers; None without one.

    A pgbench also works with older servers.
    """
    postgres = (build for build in builds if build.version.engine is Engine.POSTGRES)
    return max(postgres, key=lambda build: build.numbers, default=None)

"""Running the pgbench of one build for all servers of a session."""

import contextlib
import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
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
from suites.postgres.connecting import client_database, client_options
from suites.postgres.setup_file import trial_copy
from suites.processes import ProcessError, client_folder, log_folder, require_files, run
from suites.server import Address
from suites.setup.loading import load_files
from suites.sizing import Sizes

ROWS_PER_SCALE = 100_000
"""Rows of pgbench_accounts per unit of --scale, by which suites without a scale are sized."""


_UNREACHABLE = "connection to server"
"""What pgbench says of a server that it cannot reach, which it tries when it has read its scripts."""


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


LOGGED_TRANSACTIONS = 2_000_000
"""Approximate maximum number of transactions whose latency is logged; above that, a random sample is."""

EXPECTED_TPS = 100_000
"""An upper bound of a client's transactions/s, which determines the sampling rate."""

_TELLS_FAILURES = 15
"""The first version whose pgbench goes on after a serialisation failure or a deadlock, and counts both."""

_ABORTED = re.compile(r"pgbench: (?:error|fatal): client \d+ (?:script \d+ )?aborted in command")
"""What pgbench says when a statement or a command of a client has failed, and the client has ended."""


class Pgbench(RestartedGenerator):
    """The pgbench of one build.

    It runs as a user of its own, since the commit that is measured brings it, and starts in the folder of the
    suite: that user may have no access to the folders around it.
    """

    def __init__(self, suite: Suite, sizes: Sizes, build: Build, *, prepares: bool = True) -> None:
        self.suite = suite
        self.sizes = sizes
        self.build = build
        self.prepares = prepares
        self.program = build.program("pgbench")

    @property
    def _tells_failures(self) -> bool:
        return self.build.numbers[0] >= _TELLS_FAILURES

    def version(self) -> str:
        """Return the output of `pgbench --version`."""
        asked = [str(self.program), "--version"]
        return run(asked, what="pgbench --version", account=server_account()).strip()

    # --- command lines

    @property
    def scale(self) -> int:
        """The scale factor of pgbench's own tables."""
        data = self.sizes.data
        return data.scale or max(1, data.rows // ROWS_PER_SCALE)

    @property
    def has_own_tables(self) -> bool:
        """Whether pgbench's own tables are loaded."""
        return self.suite.sized_by is not SizedBy.FILES

    def _connected_to(self, address: Address) -> list[str]:
        """Return the program and the options with which it finds a server; it gets the password otherwise."""
        return [str(self.program), *client_options(address), client_database(address)]

    def _protocol(self, step: Step, address: Address) -> str:
        """Return how the statements of a step are sent to a server, as its layer says if it has one.

        Through a pooler it is as one that cannot prepare does.
        """
        protocol = address.protocol or str(step.options.get("protocol", "prepared"))
        return f"--protocol={protocol if self.prepares else 'simple'}"

    def _scripts(self, step: Step) -> Sequence[str]:
        """Return the options for the scripts of a step, and for their variables."""
        if not step.scripts:
            return [f"--builtin={step.options['builtin']}"]
        return [*self._variables(step), *(f"--file={script}" for script in step.scripts)]

    def _variables(self, step: Step) -> Sequence[str]:
        """Return the options for the variables of the scripts of a step."""
        scale = [f"--scale={self.scale}"] if self.has_own_tables else []
        return [*scale, *(f"--define={name}={value}" for name, value in step.variables.items())]

    def _lines(
        self,
        address: Address,
        argv: Sequence[str],
        seconds: float,
        cores: Collection[int] | None = None,
        folder: Path | None = None,
    ) -> Iterator[tuple[int, str]]:
        """Yield the pid of pgbench, which ends within so many seconds, and each line. Raises LoadError.

        Its scripts are in `folder`, else in that of the suite.
        """
        where, password = folder or self.suite.folder, address.password_variables
        return lines_of(argv, seconds, password, cores, where, server_account())

    def _run(self, address: Address, argv: Sequence[str], seconds: float) -> None:
        run_all([argv], 1, seconds, address.password_variables, self.suite.folder, server_account())

    # --- loading

    def load(self, address: Address) -> None:
        """Load pgbench's tables with `pgbench --initialize`, then the suite's file of data and its SQL file.

        Before that pgbench reads all scripts, and after it, it carries out each once. Raises LoadError, and
        SetupError for the files.
        """
        steps = [step for step in self.suite.steps if step.scripts]
        for step in steps:
            self._require_readable(step)
        if self.has_own_tables:
            words = self.suite.initialize.words if self.suite.initialize else ()
            initialize = ["--initialize", f"--scale={self.scale}", "--quiet", *words]
            self._run(address, [*self._connected_to(address), *initialize], 60.0 + 60 * self.scale)
        load_files([self.build], address, self.suite)
        if steps:
            with trial_copy(address) as copy:
                for step in steps:
                    self._try_scripts(copy, step)

    def _require_readable(self, step: Step) -> None:
        """Raise LoadError, with file and line, if pgbench cannot parse the scripts of a step.

        It reads them before it connects, here to a server that does not exist. Raises AccountError for one
        that its user may not read.
        """
        folder = self.suite.folder
        require_files(self.program, folder, [weighted_script(script).name for script in step.scripts])
        nowhere = [str(self.program), "--host=/nonexistent", "--transactions=1", "--no-vacuum"]
        try:
            run([*nowhere, *self._scripts(step)], what="pgbench", cwd=folder, account=server_account())
        except ProcessError as error:
            if _UNREACHABLE not in error.what:
                said = complaint(error.what.splitlines()) or error.what
                raise LoadError(said, where=f"{folder / 'suite.toml'}") from error

    def _try_scripts(self, address: Address, step: Step) -> None:
        """Carry out one transaction of each script of a step. Raises LoadError with file and line."""
        for script in step.scripts:
            alone = step.model_copy(update={"scripts": (weighted_script(script).name,)})
            once = ["--client=1", "--transactions=1", "--no-vacuum", *self._scripts(alone)]
            argv = [*self._connected_to(address), self._protocol(step, address), *once]
            tried = f"it was tried once, in {address.database}, a copy of the database made for that"
            with naming_the_line(self.suite.folder, alone, hint=tried):
                self._run(address, argv, TRIAL_SECONDS)

    # --- running

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
            self._protocol(step, address),
            "--no-vacuum",
            *(["--failures-detailed"] if self._tells_failures else []),
            *(["--connect"] if step.options.get("connect") else []),
            *([f"--rate={step.rate:g}"] if step.rate is not None else []),
        ]
        report = ["--progress=1", f"--random-seed={self.suite.seed + turn}"]
        return [
            *self._connected_to(address),
            *connections,
            limit,
            *report,
            *self._scripts(step),
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
                for pid, line in self._lines(address, argv, work.seconds + OVERTIME_SECONDS, client):
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

    # --- counting

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run the fixed work of one client on one connection, between marks in copies of the scripts.

        Scripts are drawn by their weights; random numbers are the same in every pass.
        """
        course = PassCourse(work)
        with client_folder("tidemark-pgbench-") as folder:
            scripts = self._marked_scripts(step, folder, work.mark)
            marked = step.model_copy(update={"scripts": tuple(scripts)})
            tries = [f"--max-tries={MAX_TRIES}"] if self._tells_failures else []
            fixed = ["--client=1", "--no-vacuum", f"--random-seed={self.suite.seed}", *tries]
            connected = [*self._connected_to(address), self._protocol(step, address), *fixed]
            try:
                began = time.monotonic()
                length = course.choose(
                    self._seconds_of_transaction(address, connected, step, folder, work.seconds)
                )
                numbers = {"done": 0, "first": length.warm + 1, "last": length.transactions}
                defined = [f"--define=tidemark_{name}={number}" for name, number in numbers.items()]
                files = [f"--file={script}" for script in scripts]
                limits = [f"--transactions={length.transactions}", f"--progress={REPORT_SECONDS}"]
                argv = [*connected, *limits, *self._variables(step), *defined, *files]
                transcript, done = PgbenchTranscript(), 0.0
                with naming_the_line(self.suite.folder, marked, folder, _HEAD.count("\n")):
                    left = work.seconds - (time.monotonic() - began)
                    for _, line in self._lines(address, argv, left, folder=folder):
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

    def _marked_scripts(self, step: Step, folder: Path, mark: str) -> Sequence[str]:
        """Write the scripts of a step with marks into `folder`; return their names with weights."""
        texts = {
            script.name: (self.suite.folder / script.name).read_text(
                encoding="utf-8", errors="surrogateescape"
            )
            for script in map(weighted_script, step.scripts)
        }
        if not step.scripts:
            show: list[str | Path] = [self.program, f"--show-script={step.options['builtin']}"]
            texts[_BUILTIN] = run(show, what="pgbench --show-script", account=server_account())
        for name, text in texts.items():
            marked = _HEAD.format(mark=mark) + text + _TAIL.format(mark=mark)
            make_folder((folder / name).parent)
            (folder / name).write_text(marked, encoding="utf-8", errors="surrogateescape")
            (folder / name).chmod(0o644)
        return step.scripts or [_BUILTIN]

    def _seconds_of_transaction(
        self, address: Address, connected: Sequence[str], step: Step, folder: Path, limit: float
    ) -> float:
        """Return the mean seconds of a transaction by the weights of the scripts, of a few of each."""
        scripts = [weighted_script(text) for text in step.scripts] or [WeightedScript(_BUILTIN)]
        began, seconds, weights = time.monotonic(), 0.0, 0
        for script in scripts:
            alone = step.model_copy(update={"scripts": (script.name,) if step.scripts else ()})
            logs = log_folder(folder)
            sample = [f"--transactions={SAMPLED}", "--log", f"--log-prefix={logs}/log"]
            with naming_the_line(self.suite.folder, alone):
                left = limit - (time.monotonic() - began)
                for _ in self._lines(address, [*connected, *sample, *self._scripts(alone)], left):
                    pass
            latencies = logged_transactions(logs)[:, 0]
            if latencies.size != SAMPLED:
                raise LoadError(
                    f"pgbench carried out {latencies.size} of {SAMPLED} transactions", where=script.name
                )
            seconds += script.weight * float(latencies[1:].mean()) / 1e6
            weights += script.weight
        return seconds / weights


def newest_postgres(builds: Sequence[Build]) -> Build | None:
    """Return the newest build of Postgres, whose pgbench is used for all servers; None without one.

    A pgbench also works with older servers.
    """
    postgres = (build for build in builds if build.version.engine is Engine.POSTGRES)
    return max(postgres, key=lambda build: build.numbers, default=None)

"""Running the pgbench of one build for all servers of a session."""

import re
from collections.abc import Sequence
from dataclasses import replace

from build.build import Build
from build.version import Engine
from suites.definition import Suite
from suites.generators.complaints import complaint
from suites.generators.load import (
    CountedLoad,
    CountedWork,
    Load,
    LoadError,
    Observer,
    Share,
    WorkLimit,
    whole_seconds,
)
from suites.generators.pgbench import counted, loading
from suites.generators.pgbench.command import PgbenchCommand
from suites.generators.pgbench.transcript import (
    PgbenchTranscript,
    histogram_of,
    kinds_in,
    logged_transactions,
)
from suites.generators.placement import placement
from suites.generators.programs import OVERTIME_SECONDS, lines_of
from suites.generators.separate_runs.slices import run_each_slice
from suites.keys.pgbench_scripts import weighted_script
from suites.keys.step import Step
from suites.processes import client_folder, log_folder, run
from suites.server import Address
from suites.sizing import Sizes

LOGGED_TRANSACTIONS = 2_000_000
"""Approximate maximum number of transactions whose latency is logged; above that, a random sample is."""

EXPECTED_TPS = 100_000
"""An upper bound of a client's transactions/s, which determines the sampling rate."""

_TELLS_FAILURES = 15
"""The first version whose pgbench goes on after a serialisation failure or a deadlock, and counts both."""

_ABORTED = re.compile(r"pgbench: (?:error|fatal): client \d+ (?:script \d+ )?aborted in command")
"""What pgbench says when a statement or a command of a client has failed, and the client has ended."""


class Pgbench:
    """The pgbench of one build; implements suites.generators.load.Generator."""

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
        loading.load(self.command, self.build, address)

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
            with loading.naming_the_line(self.suite.folder, step):
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

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run pgbench once per slice, because it cannot pause; see run_each_slice."""
        return run_each_slice(self.run, addresses, step, share, observers)

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Raise LoadError: pgbench has no command that prints the statements of a script."""
        raise LoadError("pgbench cannot print statements", hint="omit plans in suite.toml")

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run the fixed work of one client, between marks in copies of the scripts."""
        return counted.count(self.command, address, step, work)


def newest_postgres(builds: Sequence[Build]) -> Build | None:
    """Return the newest build of Postgres, whose pgbench is used for all servers; None without one.

    A pgbench also works with older servers.
    """
    postgres = (build for build in builds if build.version.engine is Engine.POSTGRES)
    return max(postgres, key=lambda build: build.numbers, default=None)

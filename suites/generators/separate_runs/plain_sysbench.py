"""sysbench 1.0 with a script that knows nothing of Tidemark, which it runs once in each slice."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from build.finished_build import Build
from suites.definition import LUA_MODULES, Suite
from suites.engines import engine_of
from suites.generators.drivers import connection_options, current_folder, statement_options
from suites.generators.load import (
    NUMBER,
    CountedLoad,
    CountedWork,
    Load,
    LoadError,
    Observer,
    WorkLimit,
    whole_seconds,
)
from suites.generators.pass_course import AnsweredCourse
from suites.generators.placement import placement
from suites.generators.programs import OVERTIME_SECONDS, TRIAL_SECONDS, lines_of
from suites.generators.separate_runs.script_options import lacks, located_in, lua_path
from suites.generators.separate_runs.slices import RestartedGenerator, least_due
from suites.generators.transcript import SysbenchTranscript
from suites.keys.step import Step
from suites.keys.values import Option
from suites.processes import run, tool
from suites.server import SETUP_SECONDS, Address
from suites.setup.loading import load_files
from suites.sizing import Sizes

FAILING_SECONDS = 3
"""How long a script may begin its transaction again and again before the step fails."""

COUNTING_SCRIPT = Path(__file__).with_name("counted.lua")
"""The script that carries out the counted pass of another one."""

_TICK = re.compile(rf"\[ \d+s \] thds: \d+ tps: ({NUMBER}) .* err/s: ({NUMBER})")


@dataclass
class _Failing:
    """Whether transactions fail in a way after which sysbench begins them again, for good."""

    seconds: int = 0

    def read(self, line: str) -> None:
        """Parse one line of output. Raises LoadError when for FAILING_SECONDS no transaction has ended."""
        match = _TICK.match(line)
        if match is None:
            return
        self.seconds = self.seconds + 1 if float(match[2]) > 0 == float(match[1]) else 0
        if self.seconds == FAILING_SECONDS:
            raise LoadError(
                f"no transaction has ended for {FAILING_SECONDS} s: each fails with an error after which "
                "sysbench begins it again, such as a duplicate key",
                hint="give the script other values, or correct it",
            )


class PlainSysbench(RestartedGenerator):
    """sysbench with a script that people have."""

    def __init__(self, suite: Suite, sizes: Sizes, builds: Sequence[Build], *, prepares: bool = True) -> None:
        self.suite = suite
        self.sizes = sizes
        self.builds = builds
        self.prepares = prepares
        self.program = tool("sysbench")

    def version(self) -> str:
        """Return the output of `sysbench --version`."""
        return run([self.program, "--version"], what="sysbench --version").strip()

    def load(self, address: Address) -> None:
        """Load the suite's files, run the script's `prepare`, and try one event of each step.

        Files or `prepare` may be missing. As many threads prepare as clients run at most, because scripts
        make a table for each. Raises LoadError, and SetupError for the files.
        """
        load_files(self.builds, address, self.suite)
        threads = [f"--threads={self.sizes.connections}", f"--rand-seed={self.suite.seed}"]
        argv = self._command(address, [*threads, *_options(self.sizes.data.options), "prepare"])
        try:
            for _ in self._lines(address, argv, SETUP_SECONDS):
                pass
        except LoadError as error:
            if not self.suite.has_files or lacks(error.what) != "prepare":
                raise
        with engine_of(address.engine).setup.trial(address) as trial:
            for step in self.suite.steps:
                self._try_once(trial, step)

    def _try_once(self, address: Address, step: Step) -> None:
        """Carry out one event of a step. Raises LoadError, with file and line of the script."""
        once = ["--threads=1", "--events=1", "--time=0", "--report-interval=1"]
        options = _options({**self.sizes.data.options, **step.options})
        argv = self._command(address, [*once, f"--rand-seed={self.suite.seed}", *options, "run"])
        failing = _Failing()
        for _, line in self._lines(address, argv, TRIAL_SECONDS):
            failing.read(line)

    def arguments(self, address: Address, step: Step, work: WorkLimit, turn: int = 0) -> list[str]:
        """Return the command line of one step; every `turn` has its own seed."""
        return self._command(
            address,
            [
                f"--threads={self.sizes.clients_of(step)}",
                f"--time={whole_seconds(work)}",
                f"--events={work.transactions or 0}",
                f"--rand-seed={self.suite.seed + turn}",
                *([f"--rate={step.rate:g}"] if step.rate is not None else []),
                *("--report-interval=1", "--histogram=on", "--percentile=99"),
                *_options({**self.sizes.data.options, **step.options}),
                "run",
            ],
        )

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int = 0) -> Load:
        """Run a step on one server; the observer measures from the first report of a second to the last."""
        transcript, failing, reports = SysbenchTranscript(), _Failing(), 0
        argv = self.arguments(address, step, work, turn)
        cores = placement(step, self.sizes).client
        for pid, line in self._lines(address, argv, work.seconds + OVERTIME_SECONDS, cores):
            transcript.read(line)
            failing.read(line)
            if len(transcript.per_second) > reports:
                (observer.end if reports else observer.begin)(pid)
                reports = len(transcript.per_second)
        load = transcript.load()
        steady = load.per_second[1:]
        return replace(
            load,
            watched_queries=sum(steady),
            watched_seconds=float(len(steady)),
            due=None if step.rate is None else least_due(step.rate * whole_seconds(work), load.transactions),
        )

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run the fixed work of one thread, by a script of Tidemark that loads that of the suite."""
        folder = self.suite.folder
        seed = self.suite.seed + 1  # the trial of loading has the suite's own
        limits = ["--threads=1", "--time=0", "--events=0", f"--rand-seed={seed}"]
        options = _options({**self.sizes.data.options, **step.options})
        argv = self._command(address, [*limits, *options, "run"], COUNTING_SCRIPT)
        with TemporaryDirectory(prefix="tidemark-") as place:
            course = AnsweredCourse(work, Path(place) / "length")
            variables = {
                "LUA_PATH": f"{folder}/?.lua;{LUA_MODULES}/?.lua;;",
                "TIDEMARK_SCRIPT": str(folder / str(self.suite.script)),
                "TIDEMARK_COUNTED_FILE": str(course.answer),
                "TIDEMARK_MARK": work.mark,
                "TIDEMARK_SEED": str(seed),
            }
            lines = self._lines(address, argv, work.seconds, variables=variables)
            return course.followed(step, (line for _, line in lines))

    def _lines(
        self,
        address: Address,
        argv: Sequence[str],
        seconds: float,
        cores: Collection[int] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[int, str]]:
        """Yield the pid of sysbench and each line. Raises LoadError, with file and line of the script."""
        fatal: list[str] = []
        try:
            path, cwd = variables or lua_path(self.suite.folder), current_folder(address)
            environment = {**path, **address.password_variables}
            for pid, line in lines_of(argv, seconds, environment, cores, cwd):
                fatal += [line] if line.startswith("FATAL: ") else []
                yield pid, line
        except LoadError as error:
            if not fatal:
                raise
            where = str(self.suite.folder / str(self.suite.script))
            said = located_in("\n".join(fatal), self.suite.folder)
            raise LoadError(said, where=where, place=error.place) from error

    def _command(self, address: Address, extra: Sequence[str], script: Path | None = None) -> list[str]:
        return [
            self.program,
            str(script or self.suite.folder / str(self.suite.script)),
            *connection_options(address),
            *statement_options(address, prepares=self.prepares),
            *extra,
        ]


def _options(values: Mapping[str, Option]) -> list[str]:
    """Return the options of a script; a boolean is a switch."""
    switches = {True: "on", False: "off"}
    return [
        f"--{name}={switches[value] if isinstance(value, bool) else value}" for name, value in values.items()
    ]

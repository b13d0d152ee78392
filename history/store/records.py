"""The records of a history: machines, sessions, runs, dropped rounds, noise."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from history.counts import counted
from history.stats.layouts import MIN_LAYOUTS
from history.stats.noise_model import Noise
from suites.control_groups.declared import Declared
from suites.metrics import INSTRUCTIONS, METRICS, PRIMARY
from suites.turns.warmth import WARMED_UP, Warmth, warmth_of

if TYPE_CHECKING:
    from build.finished_build import Build
    from suites.measurement import Measurement


class SessionStatus(StrEnum):
    """How far a session came. A session with single failed runs can be finished."""

    RUNNING = "running"
    FINISHED = "finished"
    """Every planned run was carried out or recorded as failed."""

    INTERRUPTED = "interrupted"
    """Stopped by a person or a full disk, or its process died: planned runs are missing."""

    FAILED = "failed"
    """It could not continue: planned runs are missing."""


class FailureCause(StrEnum):
    """Whether a version failed because of itself, which every further night would show again."""

    VERSION = "version"
    """Its source does not compile, it cannot run the suite, or its server failed while the base's did not."""

    MACHINE = "machine"
    """Anything else: network, disk, memory, a missing package, a killed process."""


@dataclass(frozen=True)
class VersionFailure:
    """Why a version of a session has no result, or not all of them."""

    cause: FailureCause
    reason: str

    def __str__(self) -> str:
        return self.reason


LAYOUTS = "layouts"
"""The option of a session with the number of layouts on each side and the version of the linker."""

LAYOUT_SEEDS = "layout_seeds"
"""The option with the seeds of the layouts by version, in the order in which rounds take them in turns."""


class RunStatus(StrEnum):
    """How a run of a step ended. Only finished runs are compared."""

    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class ChangeStatus(StrEnum):
    """Whether a change still needs attention."""

    OPEN = "open"
    CLOSED = "closed"
    """Its series are back at the old level."""

    ACKNOWLEDGED = "acknowledged"
    """A person has acknowledged it, and its alert is muted."""

    EXPLAINED = "explained"
    """The machine, the base, the suite or the tools changed between the same nights."""


@dataclass(frozen=True)
class Machine:
    """The machine that a session ran on."""

    fingerprint: str
    """The digest of everything below: machines with the same fingerprint are one row."""

    hostname: str
    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    operating_system: str
    details: Mapping[str, object] = field(default_factory=dict)
    """Further properties, such as governor and disks; must be JSON."""

    @property
    def processor(self) -> str:
        """The CPU and its cores, for people; a table that came in need not say how many there are."""
        return f"{self.cpu_model}, {counted(self.cores, 'core')}" if self.cores else "processor unknown"


@dataclass(frozen=True)
class SessionStart:
    """The properties of a session that are fixed before its first run."""

    uid: str
    """The unique name of the session, also in exports."""

    machine: Machine
    suite: str
    profile: str
    suite_digest: str
    """What it does (Suite.work_digests): JSON with a digest of the data, and one of each step.

    Before Tidemark knew these it was the hex SHA-256 of the suite's files.
    """

    seed: int
    durability: str
    repetitions: int
    """The planned runs of each step per version; at least 1. Of an imported session that is read, the most
    that a step of a version has."""

    command: str
    tools: Mapping[str, str]
    """The versions of the measuring programs, such as sysbench and Tidemark itself."""

    options: Mapping[str, object]
    """All other options of the session; must be JSON."""


@dataclass(frozen=True, kw_only=True)
class Session(SessionStart):
    """A session as it is stored in the history. Times are in UTC, with time zone."""

    id: int
    status: SessionStatus
    started_at: datetime
    ended_at: datetime | None
    """None while it runs; for an interrupted session the end of its last recorded run."""

    @property
    def counted_passes(self) -> int:
        """The planned counted passes of each step per version; 0 in a session that counted nothing."""
        exact = self.options.get(EXACT)
        passes = exact.get("passes") if isinstance(exact, dict) else 0
        return passes if isinstance(passes, int) else 0

    @property
    def declared(self) -> Declared:
        """What each server got in place of what the machine has."""
        return Declared.of(self.options)

    @property
    def is_long(self) -> bool:
        """Whether its servers stayed up, and each step inherited the data of the step before."""
        return is_long(self.options)

    @property
    def round_name(self) -> str:
        """The noun for what is recorded as one round: in long mode it is a block."""
        return "block" if self.is_long else "round"

    @property
    def warmth(self) -> Mapping[str, Warmth]:
        """How servers warmed up, by step; empty where nothing was waited for."""
        return warmth_of(self.options.get(WARMED_UP))

    @property
    def layouts(self) -> int:
        """The layouts on each side, which rounds took in turns; 0 where all rounds had the same build."""
        option = self.options.get(LAYOUTS)
        count = option.get("count") if isinstance(option, dict) else 0
        return count if isinstance(count, int) and count >= MIN_LAYOUTS else 0

    @property
    def only_counted(self) -> bool:
        """Whether it has counted passes and nothing else."""
        return _only_counted(self.options)

    @property
    def primary(self) -> str:
        """The metric that its rounds are about."""
        return _primary(self.options)

    @property
    def judged_by(self) -> str:
        """The metric of its verdicts, unless another one is asked for; see `judged_metric`."""
        return judged_metric(self.options)

    @property
    def is_imported(self) -> bool:
        """Whether it was imported from other people's tables."""
        return self.options.get(IMPORTED) is True


def is_long(options: Mapping[str, object]) -> bool:
    """Return whether the servers of a session with these options stayed up."""
    return options.get("mode") == "long"


def judged_metric(options: Mapping[str, object]) -> str:
    """Return the metric that the verdicts of a session with these options are about.

    It is that of its rounds, or instructions where there are only counted passes.
    """
    return INSTRUCTIONS if _only_counted(options) else _primary(options)


def _only_counted(options: Mapping[str, object]) -> bool:
    exact = options.get(EXACT)
    return isinstance(exact, dict) and exact.get("when") == ONLY


def _primary(options: Mapping[str, object]) -> str:
    primary = options.get(PRIMARY_METRIC)
    return primary if isinstance(primary, str) and primary in METRICS else PRIMARY


@dataclass(frozen=True)
class RunRecord:
    """A run of a step that is to be recorded. Times must have a time zone.

    A step that never ran because its version failed before is recorded too: its `status` is failed, `failure`
    gives the reason, `started_at` equals `ended_at`, and there is no measurement.
    """

    build: "Build"
    configuration: Mapping[str, str] | None
    """The complete effective server configuration; None when no server started."""

    step: str
    step_position: int
    """The position of the step in its suite."""

    repetition: int
    """The number of the round, from 1."""

    position: int
    """The position in the order in which the session carried out its runs."""

    status: RunStatus
    failure: str | None
    started_at: datetime
    ended_at: datetime
    measurement: "Measurement | None"


@dataclass(frozen=True)
class DroppedRound:
    """A round of a step that was disturbed, and therefore measured again."""

    step: str
    repetition: int
    """The number of the round that replaced it."""

    reason: str
    """What disturbed it, with figures."""

    measured: Mapping[str, float]
    """The measured QPS by version."""


@dataclass(frozen=True)
class StepNoise:
    """The noise of a metric of a step: how much identical builds differ on a machine."""

    step: str
    metric: str
    sd: float
    """The standard deviation of the natural log ratio of one round."""

    degrees_of_freedom: float
    rounds: int

    @property
    def noise(self) -> Noise:
        """The noise as the statistics use it."""
        return Noise(self.sd, self.degrees_of_freedom)


@dataclass(frozen=True, kw_only=True)
class CalibratedNoise(StepNoise):
    """The noise of a step as stored in the history, with the calibration that determined it."""

    session: str
    """The uid of the calibration's session."""

    started_at: datetime
    """When that session began."""


@dataclass(frozen=True)
class Run:
    """A run as stored in the history, without its per-second samples."""

    id: int
    version: str
    """The requested `engine@ref`; the same build can have been requested under several names."""

    build_key: str
    step: str
    step_position: int
    repetition: int
    position: int
    status: RunStatus
    failure: str | None
    values: Mapping[str, float]
    """The values by metric, in the units of suites.metrics.METRICS."""
    warnings: tuple[str, ...] = ()
    """Reasons to distrust the values, such as a reset that did not finish."""
    source_digest: str = ""


@dataclass(frozen=True)
class LatestRun:
    """The latest session with a run of a version, in one suite and profile."""

    version: str
    suite: str
    profile: str
    session_uid: str
    started_at: datetime


@dataclass(frozen=True)
class Environment:
    """What a night has in common with the next one: box, suite and configuration."""

    box: str
    suite: str
    configuration: str


ALL_STEPS = ""
"""The step of a gap that concerns all steps of a version."""

EXACT = "exact"
"""The option of a session with counted passes: an object with `tool`, `passes` and `when`."""

PRIMARY_METRIC = "primary_metric"
"""The option of a session whose verdicts are not about QPS: the metric that they are about."""

RESTARTS = "restarts"
"""The option of a session whose load generator cannot pause, with the value true: each slice was a run of its
own, whose clients connected anew."""

HELD = "held"
"""The option of a session that held connections: the levels of each step."""

ONLY = "only"
"""The value of `when` in a session that has counted passes and nothing else."""

PLANS = "plans"
"""The option of a session with the plans of its statements: by version, and by step."""

CLIENTS = "clients"
"""The option of a session with the clients of each version that work at once, by step. Sessions of older
Tidemarks do not have it, nor do those that hold connections."""

DATA = "data"
"""The option of a session with the extent of the loaded data: by version, an object with `rows`, `bytes`,
`index_levels` and `cache_bytes`. Sessions of older Tidemarks do not have it."""

LEFT_OUT = "left_out"
"""The option with the names of the caller's environment variables that neither servers nor clients got."""

IMPORTED = "imported"
"""The option of a session of other people's tables, with the value true."""

BASE = "base"
"""The option of an imported session whose base a person named: a version. Without it there is no base."""

STANDS_AT = "stands_at"
"""The option of a session that measured past commits of branches: the place in its series, a time as text, of
each version that does not stand at the start of the session."""

FAILED = "failed"
"""The option of a session in which versions failed: by version, an object with `cause` and `reason`. Sessions
of older Tidemarks do not say, and their versions without a result are tried again."""

TRY = "try"
"""The option of a session of `./tidemark try`, with the value true: it is not a night of any series."""
NO_NIGHT = ("bisect", TRY, LAYOUTS)
"""The options of sessions that are not nights. One with layouts compiles and links its builds differently."""
OUT_OF_TIME = "out_of_time"
"""The option of a finished session that the same request continues, with the value true: its budget ended."""
EXECUTED = "executed"
"""The option of the counted session of a try: by step where known, the changed functions that it executed."""
RUNNABLE = "runnable"
"""The option of a session with the number of processes beside it that wanted a core when it began."""
LIMIT_SECONDS = "limit_seconds"
"""The option of a session of long queries: the most that one of them may take."""
CONFIRMS = "confirms"
"""The option of a confirming session, which measures a commit of a branch against an earlier one.

Such a session is not a night of any series (history/derive.py)."""

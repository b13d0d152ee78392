"""What goes into the history and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from history.stats.noise_model import Noise

if TYPE_CHECKING:
    from build.build import Build
    from suites.measurement import Measurement


class SessionStatus(StrEnum):
    """How far a session came. Single failed runs do not make a failed session."""

    RUNNING = "running"
    FINISHED = "finished"
    """Every planned run was carried out or recorded as failed."""

    INTERRUPTED = "interrupted"
    """Stopped by a person or a full disk, or its process died: planned runs are missing."""

    FAILED = "failed"
    """Could not go on: planned runs are missing."""


class RunStatus(StrEnum):
    """How one run of a step ended. Only finished runs are ever compared."""

    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Machine:
    """The machine that a session ran on."""

    fingerprint: str
    """Identifies everything below: machines with one fingerprint are one row, written when first seen."""

    hostname: str
    cpu_model: str
    cores: int
    memory_bytes: int
    kernel: str
    operating_system: str
    details: Mapping[str, object] = field(default_factory=dict)
    """Anything else worth keeping, such as governor and disks; must be JSON."""


@dataclass(frozen=True)
class SessionStart:
    """What is known of a session before its first run."""

    uid: str
    """Names the session to people and in exports; unique."""

    machine: Machine
    suite: str
    profile: str
    suite_digest: str
    """Hex SHA-256 of the suite's files."""

    seed: int
    durability: str
    repetitions: int
    """How often each step is to be run per version; at least 1."""

    command: str
    tools: Mapping[str, str]
    """Versions of the programs that measure, such as sysbench and Tidemark itself."""

    options: Mapping[str, object]
    """Everything else that was chosen; must be JSON."""


@dataclass(frozen=True, kw_only=True)
class Session(SessionStart):
    """A session as the history holds it. Times are aware, in UTC."""

    id: int
    status: SessionStatus
    started_at: datetime
    ended_at: datetime | None
    """None while it runs; of an interrupted one the end of its last recorded run."""

    @property
    def is_imported(self) -> bool:
        """Whether its numbers come from tables of others."""
        return self.options.get("imported") is True


@dataclass(frozen=True)
class RunRecord:
    """One run of one step, to be recorded. Times must be aware.

    A step that never ran because its version failed before is recorded too: `status` failed, `failure`
    says why, `started_at` equals `ended_at`, no measurement.
    """

    build: "Build"
    configuration: Mapping[str, str] | None
    """The whole effective server configuration; None when no server came up."""

    step: str
    step_position: int
    """Place of the step in its suite."""

    repetition: int
    """From 1."""

    position: int
    """Place in the order in which the session carried out its runs."""

    status: RunStatus
    failure: str | None
    started_at: datetime
    ended_at: datetime
    measurement: "Measurement | None"


@dataclass(frozen=True)
class DroppedRound:
    """A round of a step that was measured and not believed, and measured again."""

    step: str
    repetition: int
    """The number that the round which replaced it has."""

    reason: str
    """What disturbed it, with figures."""

    measured: Mapping[str, float]
    """QPS by version: nothing measured is lost."""


@dataclass(frozen=True)
class StepNoise:
    """How much one metric of one step differs between identical builds on a machine."""

    step: str
    metric: str
    sd: float
    """Standard deviation of the natural logarithm of one round's ratio."""

    degrees_of_freedom: float
    rounds: int

    @property
    def noise(self) -> Noise:
        """As statistics take it."""
        return Noise(self.sd, self.degrees_of_freedom)


@dataclass(frozen=True, kw_only=True)
class CalibratedNoise(StepNoise):
    """A step's noise as the history holds it, with the calibration that found it."""

    session: str
    """The uid of the calibration's session."""

    started_at: datetime
    """When that session began."""


@dataclass(frozen=True)
class Run:
    """A run as the history holds it, without its per-second samples."""

    id: int
    version: str
    """`engine@ref` as it was asked for; one build can have been asked for under several names."""

    build_key: str
    step: str
    step_position: int
    repetition: int
    position: int
    status: RunStatus
    failure: str | None
    values: Mapping[str, float]
    """Metric name to value in the unit of suites.metrics.METRICS."""

    warnings: tuple[str, ...] = ()
    """What makes a reader doubt the values, such as a reset that was not finished."""


@dataclass(frozen=True)
class Sighting:
    """The latest session that holds a run of a version in one suite and profile."""

    version: str
    suite: str
    profile: str
    session_uid: str
    started_at: datetime


@dataclass(frozen=True)
class Environment:
    """Where nights follow each other: what one box runs of one suite in one configuration."""

    box: str
    suite: str
    configuration: str


ALL_STEPS = ""
"""The step of a gap that is all of a version's steps."""

CONFIRMS = "confirms"
"""Among the options of a session that measures a commit against an earlier one, to decide about a suspicion:
such a session is no night of any series (history/derive.py)."""

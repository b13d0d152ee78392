"""What a person asked for: versions, suite, steps, and when to stop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from build.version import Engine, Version
from history.changes.confirmation import Confirms
from history.stats.estimators import MINIMUM_REPETITIONS
from suites.definition import Mode, Profile, Step, Suite
from suites.durability import Durability


class Sampled(StrEnum):
    """When perf samples."""

    AFTER = "after"
    """In slices of their own at the end of each step, which count for nothing else."""
    DURING = "during"
    """In the measured slices, which perf slows down a little."""


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    versions: tuple[Version, ...]
    """The base first."""
    suite: Suite
    profile_name: str
    steps: tuple[Step, ...]
    repetitions: int
    """Rounds of each step; with `until_decided` the least."""
    until_decided: bool = False
    """Whether steps without a verdict get more rounds, up to the profile's most and the budget."""
    budget_seconds: float | None = None
    """Instead of the profile's: when no further round begins; counts from the first round."""
    keep_disturbed: bool = False
    """Whether a disturbed round is taken, with a warning, instead of being run again."""
    mode: Mode | None = None
    """Instead of the profile's."""
    perf: Sampled | None = None
    """Whether CPU profiles are taken, and when."""
    durability: Durability = Durability.RELAXED
    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that override the template's; `postgres.NAME` and `mysql.NAME` are for one engine."""
    seconds: float | None = None
    """How long each version works in a round, instead of the profile's."""
    resume: bool = False
    """Whether to go on with an interrupted session of a day at most that asked for the same."""
    branches: Mapping[str, str] = field(default_factory=dict)
    """The branches that versions stand for which are commits, such as `postgres@master`."""
    git: Mapping[Engine, str] = field(default_factory=dict)
    """The git source of each engine, where it is not the environment's."""
    needs_contender: bool = False
    """Whether nothing is measured when all but the first version could not be built."""
    confirms: Confirms | None = None
    """Of a session that settles a suspicion, and is no night: what it settles."""
    patches: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """By variant: what is applied to the source of versions such as `postgres@18.6#variant`."""

    bisect: str = ""
    """The uid of the bisect that it belongs to: its session is then no night of any series."""

    @property
    def profile(self) -> Profile:
        """The profile, with what was chosen instead of its own."""
        changes: dict[str, object] = {}
        if self.seconds is not None:
            changes["seconds"] = self.seconds
        if self.mode is not None:
            changes["mode"] = self.mode
        return self.suite.profile(self.profile_name).model_copy(update=changes)

    @property
    def least_rounds(self) -> int:
        """Rounds that every step gets."""
        return max(self.repetitions, MINIMUM_REPETITIONS) if self.until_decided else self.repetitions

    @property
    def most_rounds(self) -> int:
        """Rounds that a step gets at most."""
        return max(self.profile.most_rounds, self.least_rounds) if self.until_decided else self.repetitions

    @property
    def limit_seconds(self) -> float:
        """How long after the beginning of the first round another one may begin."""
        if not self.until_decided:
            return float("inf")
        return self.profile.budget_minutes * 60 if self.budget_seconds is None else self.budget_seconds

    def settings_of(self, engine: Engine) -> dict[str, str]:
        """The chosen settings that concern `engine`, by their plain names."""
        chosen = {}
        for name, value in self.settings.items():
            owner, dot, plain = name.partition(".")
            if not dot or owner not in set(Engine):
                chosen[name] = value
            elif owner == engine:
                chosen[plain] = value
        return chosen

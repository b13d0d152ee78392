"""The request of a session: versions, suite, steps, and when to stop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from build.request import BuildRequest
from build.version import Engine, Version
from history.changes.confirmation import Confirms
from history.comparison.exact import MAX_PASSES
from history.stats.estimators import MINIMUM_REPETITIONS
from runners.measuring.variants import (
    EVERY,
    Variants,
    compiled_for_layers,
    definition_of,
)
from suites.additions.registry import prepares, settings_for
from suites.additions.variant import UNCHANGED, CompanionName, Variant
from suites.capabilities import CAPABILITIES
from suites.counting.engines import COUNTED
from suites.counting.executed_functions import WatchedFunction
from suites.definition import Suite
from suites.keys.durability import Durability
from suites.keys.profile import Mode, Profile
from suites.keys.step import Step
from suites.layers.choice import Layers, layers_of


def counted_once(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps that are counted: the first level of each, because a pass has one client."""
    first: dict[str, Step] = {}
    for step in steps:
        first.setdefault(step.plain_name, step)
    return tuple(first.values())


def is_slowly_counted(version: Version) -> bool:
    """Return whether a counted pass of a version takes minutes, because its server starts so slowly."""
    return not COUNTED[version.engine].beside_rounds


class Sampled(StrEnum):
    """When perf samples."""

    AFTER = "after"
    """In separate slices at the end of each step, which are not part of the measurement."""
    DURING = "during"
    """In the measured slices, which this slows down a little."""


PASSES = 2
"""The counted passes of each step in a session of nothing else, unless they show a change or disagree."""


class Exact(StrEnum):
    """Whether the instructions of fixed work are counted under callgrind."""

    NO = "no"
    BESIDE = "beside"
    """In the first rounds of each step, after the slices."""
    ONLY = "only"
    """Instead of the slices: each round is one counted pass."""
    FIRST = "first"
    """In passes of their own before all rounds: steps that they leave in doubt get rounds first. Where a pass
    takes minutes, half of the budget is left to rounds."""
    DRIVEN = "driven"
    """Instead of the slices, in the rounds that the driver of the session chooses."""


@dataclass(frozen=True)
class Request:
    """What a session is asked to measure."""

    versions: tuple[Version, ...]
    """The versions, the base first."""
    suite: Suite
    profile_name: str
    steps: tuple[Step, ...]
    repetitions: int
    """The rounds of each step; with `until_decided` the minimum. In long mode `blocks` are in its place
    without `until_decided`."""
    until_decided: bool = False
    """Whether steps without a verdict get more rounds, up to the maximum of the profile and the budget."""
    blocks: int | None = None
    """The blocks of each step in long mode; None for as many as the seconds of the profile hold."""
    budget_seconds: float | None = None
    """The time after which no further round begins, from the first round; None for that of the profile."""
    has_deadline: bool = False
    """Whether the budget is all the time there is: it begins with the session, and no round begins that would
    end after it. Otherwise every step gets its least rounds."""
    first_steps: tuple[str, ...] = ()
    """The names of the steps that are decided before the others get a round."""
    keep_disturbed: bool = False
    """Whether a disturbed round is recorded, with a warning, instead of being measured again."""
    mode: Mode | None = None
    """The mode; None for that of the profile."""
    perf: Sampled | None = None
    """When CPU profiles are taken; None for no profiles."""
    durability: Durability = Durability.RELAXED
    seconds: float | None = None
    """How long each version is measured in a round; None for the time of the profile."""
    resume: bool = False
    """Whether to resume an interrupted session of the same request that is at most a day old."""
    explains_resume: bool = False
    """Whether to say why nothing is resumed, because a person has asked for it."""
    resumed_by: str = ""
    """The command that resumes the session; empty if it is the same command, or nothing does."""
    branches: Mapping[str, str] = field(default_factory=dict)
    """The branches, such as `postgres@master`, whose tips some versions are; by version."""
    git: Mapping[Engine, str] = field(default_factory=dict)
    """The git source by engine, where it is not that of the environment."""
    needs_contender: bool = False
    """Whether nothing is measured when only the base could be built."""
    confirms: Confirms | None = None
    """What the session confirms, when it examines a suspected change and is not a night; else None."""
    variants: Variants = field(default_factory=dict)
    """The definitions of versions such as `postgres@18.6#variant`, by variant, and of what every version
    gets."""

    exact: Exact = Exact.NO
    """Whether instructions are counted, where valgrind is installed."""

    counts_functions: bool = True
    """Whether the first counted pass of each step tells instructions by function, which takes longer."""

    beside_passes: int | None = None
    """The counted passes of each step beside the rounds; None for those of the profile."""

    unattended: bool = False
    """Whether a variant with a setting that does not exist is skipped, like any version that cannot be
    measured; otherwise such a mistake ends the session before it starts."""

    stands_at: Mapping[str, datetime] = field(default_factory=dict)
    """The dates of past commits, at which these stand in the series of their branches; by version."""

    layouts: int = 0
    """The layouts on each side, which rounds take in turns; 0 for the builds themselves in all rounds."""

    is_try: bool = False
    """Whether it is of `./tidemark try`; its session is then not a night of any series."""

    bisect: str = ""
    """The uid of the bisect that it belongs to; its session is then not a night of any series."""

    proved_steps: frozenset[str] = frozenset()
    """The plain names of the steps in which an earlier session has compared what the same builds hold after
    the same work (runners/measuring/passes/work_proofs.py): once is enough."""

    watched: tuple[WatchedFunction, ...] = ()
    """The functions of which the first counted pass of each step finds out whether any server but the base's
    executes them."""

    @property
    def profile(self) -> Profile:
        """The profile with the overrides of the request."""
        changes: dict[str, object] = {}
        if self.seconds is not None:
            changes["seconds"] = self.seconds
        if self.mode is not None:
            changes["mode"] = self.mode
        return self.suite.profile(self.profile_name).model_copy(update=changes)

    @property
    def passes(self) -> int:
        """The counted passes that every step gets."""
        if self.profile.mode is Mode.LONG:
            return 0  # a pass starts from the loaded data, which long mode does not keep
        if self.exact in (Exact.ONLY, Exact.DRIVEN):
            return self.repetitions
        if self.exact is Exact.FIRST:
            return PASSES
        if self.exact is Exact.NO or not self.profile.counted_passes:
            return 0
        return self.profile.counted_passes if self.beside_passes is None else self.beside_passes

    @property
    def first_pass(self) -> int:
        """The number of the round with the first counted pass: those of their own follow all rounds."""
        return self.most_rounds + 1 if self.exact is Exact.FIRST else 1

    @property
    def has_many_clients(self) -> bool:
        """Whether a step that may be counted is measured with several clients, of which a pass has one."""
        return any(clients > 1 for step in self.steps for clients in step.clients)

    @property
    def round_name(self) -> str:
        """The noun for what is recorded as one round."""
        if self.exact is Exact.ONLY:
            return "pass"
        return "block" if self.profile.mode is Mode.LONG else "round"

    @property
    def least_rounds(self) -> int:
        """The rounds that every step gets, or blocks in long mode."""
        if self.until_decided:
            return max(self.repetitions, MINIMUM_REPETITIONS)
        profile = self.profile
        return self.blocks or profile.blocks if profile.mode is Mode.LONG else self.repetitions

    @property
    def most_rounds(self) -> int:
        """The most rounds that a step gets."""
        if self.exact is Exact.ONLY:
            return max(self.repetitions, MAX_PASSES)  # for pairs of passes that do not decide
        if not self.until_decided:
            return self.least_rounds
        profile = self.profile
        most = profile.blocks if profile.mode is Mode.LONG else profile.most_rounds
        return max(most, self.least_rounds)

    @property
    def limit_seconds(self) -> float:
        """The seconds after the start of the first round during which further rounds may begin."""
        if not self.until_decided:
            return float("inf")
        return self.profile.budget_minutes * 60 if self.budget_seconds is None else self.budget_seconds

    def companions_of(self, version: Version) -> tuple[CompanionName, ...]:
        """Return the companions of the server of `version`."""
        return definition_of(version, self.variants).companions

    def layers_of(self, version: Version) -> Layers:
        """Return how clients reach the server of `version`: as the suite says, and as its variant does."""
        return layers_of({**self.suite.layers, **definition_of(version, self.variants).layers})

    def initdb_of(self, version: Version) -> Mapping[str, str]:
        """Return what the initdb of `version` is told, by name; empty for what every one is told."""
        return definition_of(version, self.variants).initdb

    def build_of(self, version: Version) -> BuildRequest:
        """Return which build of `version` is measured: it is compiled as its variant says.

        Where any version has TLS, all are compiled with it, so that builds differ in nothing else.
        """
        definition = definition_of(version, self.variants)
        needs_tls = any(self.layers_of(other).tls for other in self.versions) and not version.is_install
        of_any = {"tls": "on"} if needs_tls else {}
        return BuildRequest(
            version.plain,
            definition.patches,
            compiled_for_layers(replace(definition, layers={}), version.engine, of_any).build,
            self.git.get(version.engine),
            relinks=bool(self.layouts),
            extensions=definition.extensions,
        )

    @property
    def has_companions(self) -> bool:
        """Whether any server has a companion."""
        return any(self.companions_of(version) for version in self.versions)

    @property
    def prepares(self) -> bool:
        """Whether clients prepare statements: of all versions or, if one cannot, of none."""
        return all(prepares(self.companions_of(version)) for version in self.versions)

    @property
    def every(self) -> Variant:
        """What every version of the session gets."""
        return self.variants.get(EVERY, UNCHANGED)

    def settings_of(self, version: Version) -> dict[str, str]:
        """Return the settings that the suite and the request give to `version`, by their plain names.

        Those of the request override those of its companions, and these those of the suite.
        """
        chosen = dict(self.suite.server.get(version.engine, {}))
        if self.suite.isolation is not None:
            name, value = CAPABILITIES[version.engine].isolation(self.suite.isolation)
            chosen[name] = value
        definition = definition_of(version, self.variants)
        chosen |= settings_for(definition.companions)
        for name, value in definition.settings.items():
            owner, dot, plain = name.partition(".")
            if not dot or owner not in set(Engine):
                chosen[name] = value
            elif owner == version.engine:
                chosen[plain] = value
        return chosen


def counted_alone(request: Request) -> Request:
    """Return a request that counts the instructions of the same steps, and times nothing."""
    steps = counted_once(request.steps)
    return replace(request, steps=steps, exact=Exact.ONLY, repetitions=PASSES, until_decided=False, perf=None)

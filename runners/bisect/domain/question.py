"""The question of a bisect and the range of candidates, as the history stores them."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from build.addresses import without_secrets
from build.errors import TidemarkError
from build.version import Engine, Version, parse_version
from runners.bisect.domain.rules import Direction, Rules
from suites.additions.variant import described
from suites.control_groups.declared import DECLARED, Declared, memory_text, parse_disk
from suites.definition import Suite, load_suite
from suites.keys.profile import Mode
from suites.keys.step import Step
from suites.metrics import (
    CONNECTION_KIB,
    HARDWARE_INSTRUCTIONS,
    INSTRUCTIONS,
    METRICS,
    SERVER_CPU,
    SERVER_MEMORY,
    SERVER_SWITCHES,
    SERVER_WRITTEN,
    WAL_BYTES,
    Better,
    CountedBy,
    Metric,
)

BUILD_COST_ROUNDS = 2.5
"""The cost of compiling one more commit, in rounds; the search prefers commits that are compiled already."""


MAX_CONFIRMING_PASSES = 4
"""The counted passes of bad after which counts that guide a search are given up: they differ too little."""


MAX_PASSES = 60
"""The counted passes of all positions after which they are given up: three times what a long range takes."""


MAX_WOBBLE_SHARE = 0.2
"""The most that the wobble can be as a share of a threshold that was asked for."""


SHORT = 12
"""The hex digits of a commit that tables show."""


SHORT_NAMES: Mapping[str, str] = {
    "connection-memory": CONNECTION_KIB,
    "cpu-per-op": SERVER_CPU,
    "cs-per-op": SERVER_SWITCHES,
    "hardware-instructions-per-op": HARDWARE_INSTRUCTIONS,
    "instructions-per-op": INSTRUCTIONS,
    "server-memory": SERVER_MEMORY,
    "wal-per-op": WAL_BYTES,
    "written-per-op": SERVER_WRITTEN,
}
"""Short name that `bisect --metric` accepts -> metric, in alphabetical order."""


class QuestionError(TidemarkError):
    """The question cannot be answered by a bisect."""


@dataclass(frozen=True)
class Question:
    """What is searched for. Equal questions about equal candidate ranges are one bisect."""

    engine: Engine
    good: str
    bad: str
    """The refs as they were given on the command line."""

    suite: str
    profile: str
    step: str
    metric: str
    direction: Direction
    confidence: float
    """The probability, as a fraction, with which a verdict has to be right."""

    git: str | None
    """The address of the git source without passwords and tokens; None for a list of releases."""

    seconds: float | None = None
    """How long each version is measured in a round; None for the time of the profile."""

    variant: Mapping[str, Any] = field(default_factory=dict)
    """What every position gets: settings, build and patches, as a session records a variant."""

    extension: str = ""
    """The extension whose commits are searched, `git` being its repository; empty for a server."""

    server: str = ""
    """The version of the server that it is compiled for, such as `postgres@18.6`; empty without one."""

    memory: int | None = None
    """The memory of each server in bytes, page cache included; None for the profile's, or the machine's."""

    disk: str = ""
    """What the disk of each server does at most, as `500iops`; empty for the profile's, or what it can."""

    threshold: float | None = None
    """The smallest change of the metric that is searched for, as a fraction; None for that of the metric."""

    def rules(self) -> Rules:
        """Return the rules of the search for this question."""
        rules = self._rules_of(METRICS[self.metric])
        if self.threshold is None:
            return rules
        wobble = min(rules.wobble, MAX_WOBBLE_SHARE * self.threshold)
        return replace(rules, threshold=self.threshold, wobble=wobble)

    def counted_rules(self) -> Rules | None:
        """Return the rules of the search by counts that guides this one; None when no count says anything."""
        evidence = METRICS[self.metric].evidence
        if not evidence:
            return None
        # Counts that do not tell soon are no help.
        return replace(
            self._rules_of(METRICS[evidence]),
            most_confirming=MAX_CONFIRMING_PASSES,
            most_rounds=MAX_PASSES,
        )

    def _rules_of(self, metric: Metric) -> Rules:
        rules = Rules(
            direction=self.direction,
            higher_is_better=metric.better is Better.HIGHER,
            confidence=self.confidence,
            wobble=metric.scatter.wobble,
            least_scale=metric.scatter.least,
            typical_scale=metric.scatter.typical,
            scale_spread=metric.scatter.spread,
            least_rounds=metric.scatter.rounds,
        )
        return (
            rules
            if metric.threshold_percent is None
            else replace(rules, threshold=metric.threshold_percent / 100)
        )

    def to_json(self, rules: Rules, counted: Rules | None = None) -> dict[str, Any]:
        """Return the question with the rules of its search, so that a replay always uses the same rules.

        `counted` are those of the search by counts that guides it; None when nothing is counted.
        """
        kept = asdict(self)
        for name in ("variant", "extension", "server", "threshold", *DECLARED):
            if not kept[name]:
                del kept[name]  # as in older histories
        guide = {} if counted is None else {"counted_rules": asdict(counted)}
        return kept | {"rules": asdict(rules), "build_cost_rounds": BUILD_COST_ROUNDS} | guide

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "Question":
        """Read what `to_json` wrote."""
        known = {attribute.name: kept[attribute.name] for attribute in fields(cls) if attribute.name in kept}
        git = known.get("git")  # of an older Tidemark it may hold a token
        return cls(**known | {"engine": Engine(kept["engine"]), "git": git and without_secrets(git)})

    def measured_suite(self) -> Suite:
        """Return the suite, with what each server gets. Raises SuiteError and LimitError."""
        disk = parse_disk(self.disk) if self.disk else None
        return load_suite(self.suite).with_declared(self.memory, disk)

    @property
    def declared(self) -> Declared:
        """What each server gets in place of what the profile, or the machine, has."""
        return Declared(memory_text(self.memory) if self.memory else "", self.disk)

    @property
    def metrics(self) -> set[str]:
        """The metrics that its search reads: its own, and the one that is counted to guide it."""
        return {self.metric, METRICS[self.metric].evidence} - {""}

    @property
    def is_counted(self) -> bool:
        """Whether its rounds are counted passes, which do not depend on what else the machine does."""
        return METRICS[self.metric].is_counted

    @property
    def summary(self) -> str:
        """The question in one line."""
        where = f"{self.suite} {self.profile}, {self.step}"
        every = f", {described(self.variant)}" if self.variant else ""
        every += f", {self.declared}" if self.declared.options else ""
        every += "" if self.threshold is None else f", changes from {100 * self.threshold:g} % on"
        searched = f"{self.extension} on {self.server}" if self.extension else str(self.engine)
        return f"{searched} {self.good}..{self.bad}: {self.metric} {self.direction} in {where}{every}"


def rules_of(kept: Mapping[str, Any]) -> Rules:
    """Return the rules that a question was stored with; rules that no longer exist are ignored."""
    return _rules_from(kept["rules"])


def counted_rules_of(kept: Mapping[str, Any]) -> Rules | None:
    """Return the rules of the search by counts that a question was stored with; None without one."""
    return _rules_from(kept["counted_rules"]) if "counted_rules" in kept else None


def _rules_from(kept: Mapping[str, Any]) -> Rules:
    names = {attribute.name for attribute in fields(Rules)}
    return Rules(**{name: value for name, value in kept.items() if name in names})


@dataclass(frozen=True)
class BisectPoint:
    """One position: good, bad or a candidate between them.

    Author, subject and message come from the repository and are not trusted.
    """

    version: str
    """The version that is built and measured: `postgres@git:5bf748b86b12`, `postgres@18.6`; for a commit of
    an extension `postgres@18.6#5bf748b86b12`."""

    commit: str = ""
    """The commit id of 40 hex digits; empty for a release."""

    author: str = ""
    date: str = ""
    subject: str = ""
    message: str = ""

    @property
    def parsed(self) -> Version:
        """The version, parsed."""
        return parse_version(self.version)

    @property
    def short(self) -> str:
        """The abbreviated commit, or the release, as tables show it."""
        return self.commit[:SHORT] or self.parsed.ref


@dataclass(frozen=True)
class CandidateRange:
    """Good, the candidates in order with bad as the last one, and the commits that cannot change a server."""

    points: tuple[BisectPoint, ...]
    """At least two points."""

    collapsed: tuple[Mapping[str, str], ...] = ()
    """The commits that are no candidates: mappings with `commit`, `subject` and `reason`."""

    bad: str = ""
    """The commit that was given as bad when it is collapsed into the last point; else empty."""

    parents: tuple[tuple[int, ...], ...] = ()
    """The parents of points 1, 2, ... as positions, 0 also for those older than good; empty when every point
    descends from the one before it."""

    merged_by: Mapping[str, str] = field(default_factory=dict)
    """Commit of a point -> the merge among the first parents of bad that brought it; both of 40 digits."""

    @property
    def length(self) -> int:
        """The position of bad."""
        return len(self.points) - 1

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of all points, in order."""
        return tuple(point.version for point in self.points)

    def to_json(self) -> dict[str, Any]:
        """Return the range as the history stores it."""
        points = [asdict(point) for point in self.points]
        kept = {"points": points, "collapsed": list(self.collapsed), "bad": self.bad}
        if self.parents:
            kept |= {"parents": [list(ups) for ups in self.parents]}
        return kept | ({"merged_by": dict(self.merged_by)} if self.merged_by else {})

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "CandidateRange":
        """Read what `to_json` wrote."""
        points = tuple(BisectPoint(**point) for point in kept["points"])
        parents = tuple(map(tuple, kept.get("parents", ())))
        return cls(
            points, tuple(kept["collapsed"]), kept.get("bad", ""), parents, dict(kept.get("merged_by", {}))
        )

    def with_messages_of(self, positions: Collection[int]) -> "CandidateRange":
        """Return the range in which only the commits at these positions have their messages."""
        points = [
            point if place in positions else replace(point, message="")
            for place, point in enumerate(self.points)
        ]
        return replace(self, points=tuple(points))

    def named(self, position: int) -> str:
        """Return the abbreviated commit or release of a position, with the merge that brought it."""
        point = self.points[position]
        merge = self.merged_by.get(point.commit, "")
        return f"{point.short} (merged by {merge[:SHORT]})" if merge else point.short


def metric_named(text: str) -> Metric:
    """Return the metric of a name, with hyphens or underscores, or of an alias. Raises QuestionError."""
    name = SHORT_NAMES.get(text, text.replace("-", "_"))
    if name not in METRICS:
        known = ", ".join([*SHORT_NAMES, *METRICS])
        raise QuestionError(
            f"there is no metric '{text}'", where="--metric", hint=f"the metrics are: {known}"
        )
    if METRICS[name].counted_by is CountedBy.PROOF:
        raise QuestionError(
            f"{name} is recorded in the first rounds of a session, not in every one, as a bisect needs it",
            where="--metric",
            hint="search by wal-per-op or instructions-per-op",
        )
    return METRICS[name]


def require_direction(metric: Metric, direction: Direction) -> None:
    """Raise QuestionError when a metric has no worse or better."""
    if metric.better is Better.NEITHER and direction != "either":
        raise QuestionError(
            f"metric {metric.name} has no direction: neither more nor less is worse",
            where=f"--direction {direction}",
            hint="use --direction either",
        )


def require_threshold(metric: Metric, threshold: float | None) -> None:
    """Raise QuestionError for a threshold that is too near to the difference between equal commits."""
    least = metric.scatter.least_threshold
    if threshold is not None and threshold < least:
        raise QuestionError(
            f"no change of {100 * threshold:g} % of {metric.name} can be searched for: equal commits differ "
            "too much",
            where="--threshold",
            hint=f"at least {100 * least:g}",
        )


def step_of(suite: Suite, profile: str, name: str) -> Step:
    """Return the step that is measured.

    Raises SuiteError when profile or step do not exist, and QuestionError when the profile has no rounds.
    """
    if suite.profile(profile).mode is Mode.LONG:
        raise QuestionError(
            f"profile {profile} keeps its servers up, but a bisect needs rounds",
            where="--profile",
            hint="use smoke or short",
        )
    steps = suite.select((name,), profile)
    if len(steps) > 1:
        names = ", ".join(step.name for step in steps)
        raise QuestionError(
            f"step {name} has several levels", where="--step", hint=f"name one of them: {names}"
        )
    return steps[0]

"""What a bisect is asked, and the points it may answer with, as the history keeps them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from build.errors import TidemarkError
from build.version import Engine, Version, parse_version
from runners.bisect.domain.rules import Direction, Rules
from suites.definition import Mode, Step, Suite
from suites.metrics import METRICS, Better, Metric, short_names

BUILD_COST_ROUNDS = 2.5
"""What compiling one more commit costs, in rounds: the search prefers what is compiled already."""


class QuestionError(TidemarkError):
    """The question makes no sense."""


@dataclass(frozen=True)
class Question:
    """What is searched for. Two that are equal, with equal points, are one bisect."""

    engine: Engine
    good: str
    bad: str
    """Refs as they were asked for."""

    suite: str
    profile: str
    step: str
    metric: str
    direction: Direction
    confidence: float
    """A fraction."""

    git: str | None
    """Address of the git source without user name and password; None for a list of releases."""

    seconds: float | None = None
    """How long each version works in a round, instead of the profile's."""

    def rules(self) -> Rules:
        """As the search takes them."""
        return Rules(
            direction=self.direction,
            higher_is_better=METRICS[self.metric].better is Better.HIGHER,
            confidence=self.confidence,
        )

    def to_json(self, rules: Rules) -> dict[str, Any]:
        """With the rules of the search, so that it is replayed by the same ones for ever."""
        return asdict(self) | {"rules": asdict(rules), "build_cost_rounds": BUILD_COST_ROUNDS}

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "Question":
        """What `to_json` wrote."""
        known = {each.name: kept[each.name] for each in fields(cls) if each.name in kept}
        return cls(**known | {"engine": Engine(kept["engine"])})

    @property
    def told(self) -> str:
        """In one line."""
        where = f"{self.suite} {self.profile}, {self.step}"
        return f"{self.engine} {self.good}..{self.bad}: {self.metric} {self.direction} in {where}"


def rules_of(kept: Mapping[str, Any]) -> Rules:
    """The rules that a question was asked with; of an older Tidemark those that are still known."""
    names = {each.name for each in fields(Rules)}
    return Rules(**{name: value for name, value in kept["rules"].items() if name in names})


@dataclass(frozen=True)
class BisectPoint:
    """One position: good, bad or a candidate between them. Author, subject and message are others' texts."""

    version: str
    """As it is built and measured: `postgres@git:5bf748b86b12`, `postgres@18.6`."""

    commit: str = ""
    """40 hex digits; empty of a release."""

    author: str = ""
    date: str = ""
    subject: str = ""
    message: str = ""

    @property
    def parsed(self) -> Version:
        """For the build cache."""
        return parse_version(self.version)

    @property
    def short(self) -> str:
        """Commit or release, as tables have it."""
        return self.commit[:12] or self.parsed.ref


@dataclass(frozen=True)
class CandidateRange:
    """Good, the candidates in order, bad last; and the commits that cannot matter."""

    points: tuple[BisectPoint, ...]
    """At least two."""

    collapsed: tuple[Mapping[str, str], ...] = ()
    """Each with `commit`, `subject` and `reason`."""

    bad: str = ""
    """The commit that was asked for as bad, when it is collapsed into the last point; else empty."""

    @property
    def length(self) -> int:
        """The position of bad."""
        return len(self.points) - 1

    @property
    def versions(self) -> tuple[str, ...]:
        """Of the points."""
        return tuple(each.version for each in self.points)

    def to_json(self) -> dict[str, Any]:
        """For the history."""
        points = [asdict(each) for each in self.points]
        return {"points": points, "collapsed": list(self.collapsed), "bad": self.bad}

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "CandidateRange":
        """What `to_json` wrote."""
        points = tuple(BisectPoint(**each) for each in kept["points"])
        return cls(points, tuple(kept["collapsed"]), kept.get("bad", ""))


def metric_named(text: str) -> Metric:
    """A metric by its name, with hyphens or underscores, or by its short name. Raises QuestionError."""
    name = short_names().get(text, text.replace("-", "_"))
    if name not in METRICS:
        known = ", ".join([*short_names(), *METRICS])
        raise QuestionError(
            f"there is no metric '{text}'", where="--metric", hint=f"the metrics are: {known}"
        )
    return METRICS[name]


def require_direction(metric: Metric, direction: Direction) -> None:
    """Raise QuestionError when a metric has no worse or better."""
    if metric.better is Better.NEITHER and direction != "either":
        raise QuestionError(
            f"of {metric.name} neither more nor less is worse",
            where=f"--direction {direction}",
            hint="--direction either",
        )


def step_of(suite: Suite, profile: str, name: str) -> Step:
    """The step that is measured. Raises SuiteError when suite, profile or step do not exist."""
    if suite.profile(profile).mode is Mode.LONG:
        raise QuestionError(
            f"profile {profile} keeps its servers up for hours, and a bisect needs rounds",
            where="--profile",
            hint="take smoke or short",
        )
    (step,) = suite.select((name,))
    return step

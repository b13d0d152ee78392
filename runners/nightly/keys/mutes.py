"""What a plan says of changes that nobody is to be told of for a while."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal, Protocol

from pydantic import Field, field_validator, model_validator

from build.errors import did_you_mean
from history.changes.level_shift import Direction
from history.changes.rules.mutes import Mute
from runners.nightly.keys.owners import Suite
from runners.nightly.keys.tracked import PlanPart
from suites.metrics import METRICS

LONGEST_DAYS = 366
"""The days after which a mute has to be decided again."""


class MutePlan(PlanPart):
    """Changes that open no issue until a day. What is not given matches everything."""

    reason: Annotated[str, Field(min_length=1, max_length=500)]
    until: date
    """The last day, in UTC, for which it holds."""

    suites: tuple[Suite, ...] = ()
    steps: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    """Boxes of the plan, by name."""

    branches: tuple[str, ...] = ()
    """Branches as the history names them, such as `postgres@master`; `*` matches any characters."""

    direction: Literal["worse", "better"] | None = None
    below_percent: Annotated[float, Field(gt=0, lt=1000)] | None = None
    """The size in percent from which on a change is not muted."""

    @field_validator("reason")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.strip() or not value.isprintable():
            raise ValueError("it must be one line that says why")
        return value.strip()

    @field_validator("until")
    @classmethod
    def _within_a_year(cls, value: date) -> date:
        last = datetime.now(UTC).date() + timedelta(days=LONGEST_DAYS)
        if value > last:
            raise ValueError(f"{value} is more than a year ahead: mute it until {last} at most")
        return value

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in METRICS:
                guess = did_you_mean(name, METRICS)
                raise ValueError(f"there is no metric '{name}'{f'; {guess}' if guess else ''}")
        return value

    @model_validator(mode="after")
    def _matches_something(self) -> "MutePlan":
        if not str(self.rule({})):
            raise ValueError(
                "it has no condition, and would mute everything: give suites, steps, metrics, ..."
            )
        return self

    def rule(self, hostnames: dict[str, str]) -> Mute:
        """Return it as it is applied to changes; `hostnames` has those that are not the names of boxes."""
        return Mute(
            self.reason,
            self.until,
            self.suites,
            self.steps,
            self.metrics,
            tuple(hostnames.get(box, box) for box in self.boxes),
            self.branches,
            self.direction and Direction(self.direction),
            self.below_percent,
        )


class MutedBox(Protocol):
    """A box of a plan, as far as mutes need it."""

    @property
    def hostname(self) -> str | None:
        """The host name, if it is not the name of the box; `*` is any."""


def rules_of(mutes: Sequence[MutePlan], boxes: Mapping[str, MutedBox]) -> list[Mute]:
    """Return mutes as they are applied to changes, with boxes by the host names of their machines."""
    hostnames = {name: box.hostname for name, box in boxes.items() if box.hostname}
    return [mute.rule(hostnames) for mute in mutes]


def problems_of(mutes: Sequence[MutePlan], boxes: Mapping[str, MutedBox]) -> Iterator[str]:
    """Yield what contradicts the plan or another mute."""
    known: set[str] = set()
    for number, (mute, rule) in enumerate(zip(mutes, rules_of(mutes, boxes), strict=True)):
        for name in mute.boxes:
            if name not in boxes:
                yield f"mutes.{number}.boxes: there is no box {name!r}"
            elif boxes[name].hostname == "*":
                yield f"mutes.{number}.boxes: box {name} is any machine; give it a host name"
        if str(rule) in known:
            yield f"mutes.{number}: another mute has the same conditions: {rule}"
        known.add(str(rule))

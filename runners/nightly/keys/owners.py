"""What a plan says of whose changes are."""

import re
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from history.changes.rules.owners import OwnerRule
from history.changes.rules.path_globs import problem_of
from runners.nightly.keys.tracked import PlanPart

_ACCOUNT = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,98}"
_TEAM = re.compile(rf"@?{_ACCOUNT}(?:/{_ACCOUNT})*")

Suite = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class OwnerPlan(PlanPart):
    """Whose changes in some suites and steps are, or those of commits that touch some files."""

    paths: tuple[str, ...] = ()
    """Patterns of paths as in CODEOWNERS; without one, the rule holds for any commit."""

    suites: tuple[Suite, ...] = ()
    steps: tuple[str, ...] = ()
    assignee: Annotated[str, Field(pattern=rf"^@?{_ACCOUNT}$")] | None = None
    """The account to which the issue is assigned; one whom the tracker refuses is mentioned alone."""

    mention: tuple[str, ...] = ()
    """The accounts or teams that the issue mentions; one needs no list."""

    @field_validator("mention", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("mention")
    @classmethod
    def _teams(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if _TEAM.fullmatch(name) is None:
                raise ValueError(f"'{name}' is no account or team; write such as @alice or @org/storage")
        return value

    @field_validator("paths")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            problem = problem_of(pattern)
            if problem:
                raise ValueError(f"'{pattern}': {problem}")
        return value

    @model_validator(mode="after")
    def _names_somebody(self) -> "OwnerPlan":
        if self.assignee is None and not self.mention:
            raise ValueError("it names nobody: give an assignee, or whom to mention")
        return self

    def rule(self) -> OwnerRule:
        """Return it as it is applied to changes."""
        names = [name.removeprefix("@") for name in (self.assignee or "", *self.mention)]
        return OwnerRule(self.paths, self.suites, self.steps, names[0], tuple(names[1:]))

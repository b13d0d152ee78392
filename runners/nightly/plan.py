"""The plan of a night: boxes, tracked versions, suites, limits. `runners/nightly.toml`, read and checked."""

import os
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from build.errors import TidemarkError
from build.home import Home
from build.sources.git import without_credentials
from build.version import Engine, VersionError, is_ref, is_release, parse_version
from runners.alerting.tracker_registry import TRACKERS
from suites.definition import Suite, SuiteError, load_suite

Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Of boxes and runners: nothing that a shell or a workflow could take for something else."""

Minutes = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1)]
SuiteName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
"""A suite of this checkout: a plan names no paths."""


CONFIRM_MINUTES = 60.0
"""For a suspicion, unless a box has others: twenty rounds of a few steps in most profiles."""


class PlanError(TidemarkError):
    """The plan cannot be read, or asks for something that makes no sense."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Box(_Strict):
    """A machine that measures."""

    label: Label
    """Of its runner, unlike every other's: jobs are routed by it."""

    hostname: str | None = None
    """What the machine calls itself, when it is not the name of the box; `*` is any machine."""

    budget_minutes: Minutes = 480.0
    """How long after the beginning of a night another session may begin."""

    confirm_minutes: Minutes = CONFIRM_MINUTES
    """How long a session goes on at most that settles one suspicion."""


class Tracked(_Strict):
    """What is followed of one engine."""

    base: str
    """The release that everything is compared with, measured in every session."""

    releases: tuple[str, ...] = ()
    """Each measured once in every place."""

    branches: tuple[str, ...] = ()
    """Each measured whenever it has moved."""

    git: str | None = None
    """Where the branches come from: a URL, or a path of the box; else the environment says it."""

    @field_validator("git")
    @classmethod
    def _no_password(cls, value: str | None) -> str | None:
        if value is not None and without_credentials(value) != value:
            raise ValueError("it holds a user or a password, which git would show in the list of processes")
        return value

    @field_validator("releases")
    @classmethod
    def _releases(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not is_release(each):
                raise ValueError(f"'{each}' is no release; branches have a list of their own")
        return value

    @field_validator("branches")
    @classmethod
    def _branches(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not is_ref(each):
                raise ValueError(f"'{each}' is no branch that git could have")
        return value

    @model_validator(mode="after")
    def _no_repeats(self) -> "Tracked":
        for name in ("releases", "branches"):
            its = getattr(self, name)
            if len(set(its)) != len(its):
                raise ValueError(f"{name}: one of them is named twice")
        return self


class Task(_Strict):
    """A suite that is run, and where."""

    suite: SuiteName
    profile: str
    engines: tuple[Engine, ...] = ()
    """Those of the plan that the suite can run, unless some are named."""

    boxes: tuple[str, ...] = ()
    """All of the plan, unless some are named."""

    steps: tuple[str, ...] = ()
    """All of the suite, unless some are named."""

    priority: Annotated[int, Field(strict=True)] = 10
    """What has a smaller number comes first."""

    rounds: Count | None = None
    """Of each step, instead of the profile's."""

    seconds: Minutes | None = None
    """How long each version works in a round, instead of the profile's."""

    until_decided: bool = False
    perf: bool = True
    durability: Annotated[str, Field(pattern="^(relaxed|full)$")] = "relaxed"
    keep_disturbed: bool = False
    """Whether rounds that others disturbed are taken, with a warning, instead of being run again."""


class Alerts(_Strict):
    """Where issues are opened."""

    tracker: str = "github"
    """Which of `runners.alerting.tracker_registry`."""

    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")] | None = None
    """`owner/name` of the issue tracker; without one alerts stay in the history."""

    most_new_issues: Annotated[int, Field(strict=True, ge=0)] = 3
    """In a night; the rest is summed up in one."""

    labels: tuple[Label, ...] = ("performance",)
    """Of every issue."""

    @field_validator("tracker")
    @classmethod
    def _known_tracker(cls, value: str) -> str:
        if value not in TRACKERS:
            raise ValueError(f"there is no tracker '{value}': the trackers are {', '.join(TRACKERS)}")
        return value


class Plan(_Strict):
    """A whole plan."""

    history: str = "history.db"
    """A path, relative to Tidemark's output folder, or a URL."""

    backups: Annotated[int, Field(strict=True, ge=0)] = 14
    """Copies of the history that are kept."""

    regression_percent: Annotated[float, Field(gt=0, lt=100)] = 2.0
    """Changes of this size or less are not worth a person's time."""

    confirm: bool = True
    """Whether what looks changed in a night is measured again in it, the old commit against the new one."""

    boxes: dict[Label, Box] = Field(min_length=1)
    engines: dict[Engine, Tracked] = Field(min_length=1)
    tasks: tuple[Task, ...] = Field(min_length=1)
    alerts: Alerts = Alerts()

    @model_validator(mode="after")
    def _consistent(self) -> "Plan":
        labels = [box.label for box in self.boxes.values()]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"boxes: the label {label} has two boxes; a job could go to either")
        for problem in _task_problems(self):
            raise ValueError(problem)
        for engine, tracked in self.engines.items():
            _check_base(engine, tracked)
        return self

    def tasks_of(self, box: str) -> list[Task]:
        """What a box runs, the most important first."""
        mine = [task for task in self.tasks if not task.boxes or box in task.boxes]
        return sorted(mine, key=lambda task: task.priority)

    def engines_of(self, task: Task) -> list[Engine]:
        """The engines of the plan that a task measures."""
        able = load_suite(task.suite).engines
        return [engine for engine in self.engines if engine in (task.engines or able)]


def load_plan(path: Path) -> Plan:
    """Read a plan. Raises PlanError that names the file, the key and the reason."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"the plan cannot be read: {error.strerror}", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"not TOML: {error}", where=str(path)) from error
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        raise PlanError(
            "the plan has a mistake:\n" + "\n".join(f"    {line}" for line in _mistakes(error)),
            where=str(path),
            hint="docs/nightly.md describes every key",
        ) from error


def plan_history(plan: Plan, home: Home) -> Path | str:
    """The path or URL of the plan's history."""
    return plan.history if "://" in plan.history else home.path / plan.history


def find_box(plan: Plan, chosen: str | None, hostname: str) -> str:
    """The name of the box that this machine is: the one chosen (--box, $TIDEMARK_BOX), else by host name.

    Raises PlanError when it is none of the plan's: a name that a workflow hands on is checked here.
    """
    wanted = os.environ.get("TIDEMARK_BOX") if chosen is None else chosen
    if wanted is not None:
        if wanted not in plan.boxes:
            raise PlanError(f"the plan has no box {wanted!r}", hint=f"its boxes are: {', '.join(plan.boxes)}")
        return wanted
    for name, box in plan.boxes.items():
        if hostname in (name, box.hostname) or box.hostname == "*":
            return name
    raise PlanError(
        f"no box of the plan has the host name {hostname}",
        hint=f"name one with --box or $TIDEMARK_BOX: {', '.join(plan.boxes)}",
    )


def _task_problems(plan: Plan) -> Iterator[str]:
    for number, task in enumerate(plan.tasks):
        where = f"tasks.{number}"
        for box in task.boxes:
            if box not in plan.boxes:
                yield f"{where}.boxes: there is no box {box!r}"
        for engine in task.engines:
            if engine not in plan.engines:
                yield f"{where}.engines: nothing of {engine} is tracked"
        try:
            yield from _suite_problems(where, task, load_suite(task.suite))
        except SuiteError as error:
            yield f"{where}.suite: {error.what}"


def _suite_problems(where: str, task: Task, suite: Suite) -> Iterator[str]:
    if task.profile not in suite.profiles:
        yield f"{where}.profile: {suite.name} has {', '.join(suite.profiles)}, but not {task.profile!r}"
    for engine in task.engines:
        if engine not in suite.engines:
            yield f"{where}.engines: {suite.name} does not run on {engine}"
    names = [step.name for step in suite.steps]
    for step in task.steps:
        if step not in names:
            yield f"{where}.steps: {suite.name} has no step {step!r}"


def _check_base(engine: Engine, tracked: Tracked) -> None:
    try:
        base = parse_version(tracked.base)
    except VersionError as error:
        raise ValueError(f"engines.{engine}.base: {error.what}") from error
    if base.engine is not engine or not base.is_release:
        raise ValueError(f"engines.{engine}.base: {tracked.base} is no release of {engine}")
    if base.ref in tracked.releases:
        raise ValueError(f"engines.{engine}.releases: {base.ref} is the base already")


def _mistakes(error: ValidationError) -> Sequence[str]:
    found = []
    for each in error.errors(include_url=False):
        key = ".".join(str(part) for part in each["loc"])
        reason: Any = each["msg"].removeprefix("Value error, ")
        found.append(f"{key}: {reason}" if key else str(reason))
    return found

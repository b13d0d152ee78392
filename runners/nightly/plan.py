"""The plan of a night: boxes, tracked versions, suites, limits. `runners/nightly.toml`, read and checked."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

from build.errors import TidemarkError
from build.files import toml_value
from build.home import Home
from build.version import Engine, Version, is_variant
from history.changes.rules.mutes import Mute
from history.changes.rules.owners import OwnerRule
from history.stats.layouts import MIN_LAYOUTS
from runners.alerting.notices.digest import WEEKDAYS
from runners.alerting.notices.routes import Route
from runners.alerting.tracker import muting_label
from runners.alerting.tracker_registry import TRACKERS, WITH_SUBGROUPS, WITHOUT_ADDRESS
from runners.measuring.variants import Variants
from runners.nightly.backfill_plan import Backfill
from runners.nightly.keys.metrics import MetricsPlan
from runners.nightly.keys.mistakes import mistakes
from runners.nightly.keys.mutes import MutePlan, problems_of, rules_of
from runners.nightly.keys.owners import OwnerPlan
from runners.nightly.keys.retention import Retention
from runners.nightly.keys.tracked import PlanPart, Tracked
from runners.nightly.variant_plan import planned, with_versions
from suites.additions.variant import Variant
from suites.definition import Suite, SuiteError, load_suite
from suites.keys.levels import LEVEL
from suites.keys.step import Levels, require_levels
from suites.keys.values import Disk, Memory
from suites.slices import LONGEST_BUDGET_MINUTES, LONGEST_SECONDS, MAX_ROUNDS

Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""A name of a box or a runner, without characters that are special to shells or workflows."""

Minutes = Annotated[float, Field(strict=True, gt=0, le=LONGEST_BUDGET_MINUTES)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=LONGEST_SECONDS)]
Count = Annotated[int, Field(strict=True, ge=1, le=MAX_ROUNDS)]
HowMany = Annotated[int, Field(strict=True, ge=0, le=10_000)]
SuiteName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
"""The name of a suite of this checkout; paths are not allowed in a plan."""


CONFIRM_MINUTES = 60.0
"""The default minutes to examine a suspicion: twenty rounds of a few steps in most profiles."""


class PlanError(TidemarkError):
    """The plan cannot be read, or contradicts itself."""


class Box(PlanPart):
    """A machine that measures."""

    label: Label
    """The unique label of its runner, by which jobs are routed."""

    hostname: str | None = None
    """The host name of the machine, when it is not the name of the box; `*` matches any machine."""

    budget_minutes: Minutes = 480.0
    """The minutes after the start of a night during which further sessions may begin."""

    confirm_minutes: Minutes = CONFIRM_MINUTES
    """The most minutes of a session that examines one suspicion."""

    ping: Annotated[str, Field(pattern=r"^https?://[!-~]+$")] | None = None
    """The address of a dead man's switch, which the box pings after its nights; None for none."""


class Task(PlanPart):
    """A suite to run, with its options and boxes."""

    suite: SuiteName
    profile: str
    engines: tuple[Engine, ...] = ()
    """The engines to measure; by default those of the plan that the suite supports."""

    boxes: tuple[str, ...] = ()
    """The boxes to run on; by default all of the plan."""

    steps: tuple[str, ...] = ()
    """The steps to run; by default all of the suite."""

    clients: Levels = ()
    """The levels of every step; by default those of the suite."""

    priority: Annotated[int, Field(strict=True)] = 10
    """The priority; tasks with smaller numbers run first."""

    rounds: Count | None = None
    """The rounds of each step, or blocks in long mode; None for those of the profile."""

    seconds: Seconds | None = None
    """How long each version is measured in a round; None for the time of the profile."""

    memory: Memory | None = None
    """The memory of each server, page cache included; None for that of the profile, or the machine's."""

    disk: Disk | None = None
    """What the disk of each server does at most; None for that of the profile, or what it can."""

    until_decided: bool = False
    confirm_layouts: Annotated[int, Field(strict=True, ge=MIN_LAYOUTS, le=MAX_ROUNDS)] | None = None
    """The layouts on each side in sessions that confirm; None for the builds themselves."""

    perf: bool = True
    exact: bool = True
    """Whether the instructions of fixed work are counted beside the rounds, where valgrind is installed."""

    durability: Annotated[str, Field(pattern="^(relaxed|full)$")] = "relaxed"
    keep_disturbed: bool = False
    """Whether disturbed rounds are recorded, with a warning, instead of being measured again."""

    backfill: tuple[Backfill, ...] = ()
    """The past commits that are measured in what a night leaves of the budget."""


class Alerts(PlanPart):
    """Where issues are opened."""

    tracker: str = "github"
    """Which of `runners.alerting.tracker_registry`."""

    url: Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~-]+)*/?$")] | None = None
    """The address of the tracker's pages; None for the tracker's own, such as https://gitlab.com."""

    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$")] | None = None
    """`owner/name` of the issue tracker; without one alerts stay in the history."""

    most_new_issues: HowMany = 3
    """In a night; the rest is summed up in one."""

    labels: tuple[Label, ...] = ("performance",)
    """Of every issue."""

    @field_validator("tracker")
    @classmethod
    def _known_tracker(cls, value: str) -> str:
        if value not in TRACKERS:
            raise ValueError(f"there is no tracker '{value}': the trackers are {', '.join(TRACKERS)}")
        return value

    @model_validator(mode="after")
    def _fits_the_tracker(self) -> Self:
        if self.repository is None:
            return self
        if self.url is None and self.tracker in WITHOUT_ADDRESS:
            raise ValueError(
                f'{self.tracker} needs the address of its pages: url = "https://git.example.org"'
            )
        if self.repository.count("/") > 1 and self.tracker not in WITH_SUBGROUPS:
            raise ValueError(f"a repository of {self.tracker} is owner/name, and not {self.repository}")
        return self

    @field_validator("labels")
    @classmethod
    def _no_muting_label(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        muting = muting_label(value)
        if muting is not None:
            raise ValueError(f"the label '{muting}' mutes an alert: every issue would be muted")
        return value


class SitePlan(PlanPart):
    """The report site, which is renewed after each night."""

    write: bool = False
    """Whether there is one."""

    folder: str | None = None
    """Where it is written; None for `site` in Tidemark's output folder."""

    public: bool = False
    """Whether it is for publishing, and leaves out what may not leave the house."""

    address: Annotated[str, Field(pattern=r"^https://[A-Za-z0-9._~:/%-]+$")] | None = None
    """Where it is published; issues link to its pages then."""


class Plan(PlanPart):
    """A whole plan."""

    history: str = "history.db"
    """A path, relative to Tidemark's output folder, or a URL."""

    backups: HowMany = 14
    """The number of backups of the history that are kept."""

    regression_percent: Annotated[float, Field(gt=0, lt=100)] = 2.0
    """Changes of at most this size, in percent, are not reported."""

    confirm: bool = True
    """Whether suspected changes are measured again in the same night, the old commit against the new one."""

    boxes: dict[Label, Box] = Field(min_length=1)
    engines: dict[Engine, Tracked] = Field(min_length=1)
    tasks: tuple[Task, ...] = Field(min_length=1)
    variants: dict[str, Annotated[Variant, PlainValidator(planned)]] = Field(default={})
    """The variants by name, which releases and branches are followed by after a `#`."""

    alerts: Alerts = Alerts()
    notify: tuple[Route, ...] = ()
    """Where people are told besides issues."""

    digest_day: Annotated[str, Field(pattern=f"^({'|'.join(WEEKDAYS)})$")] = "monday"
    """The weekday, in UTC, after whose first report the digest of the week is told."""

    site: SitePlan = SitePlan()
    retention: Retention = Retention()
    owners: tuple[OwnerPlan, ...] = ()
    """Whose changes are; the last one that matches counts."""

    mutes: tuple[MutePlan, ...] = ()
    """The changes that open no issue for a while."""
    metrics: MetricsPlan = MetricsPlan()

    @model_validator(mode="after")
    def _consistent(self) -> "Plan":
        labels = [box.label for box in self.boxes.values()]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"boxes: two boxes have the label {label}; labels must be unique")
        for problem in (*_task_problems(self), *_route_problems(self)):
            raise ValueError(problem)
        for problem in problems_of(self.mutes, self.boxes):
            raise ValueError(problem)
        for task in self.tasks:
            for asked in task.backfill:
                self.require_measurable(task, asked)
        for engine, tracked in self.engines.items():
            tracked.require_consistent(engine)
            _check_variants(engine, tracked, self.variants)
        return self

    def require_measurable(self, task: Task, asked: Backfill) -> None:
        """Raise ValueError unless a task of the plan can measure what a backfill asks for."""
        if asked.engine not in self.engines_of(task):
            raise ValueError(
                f"tasks.backfill: {asked.branch}: {task.suite} does not measure {asked.engine} here"
            )
        if asked.version.variant and asked.version.variant not in self.variants:
            raise ValueError(f"tasks.backfill: {asked.branch}: no [variants.{asked.version.variant}]")

    def definitions(self, versions: Iterable[Version] = ()) -> Variants:
        """Return the definitions of all variants, and of `versions` at a commit of an extension."""
        return with_versions(self.variants, versions)

    def owner_rules(self) -> list[OwnerRule]:
        """Return the rules by which changes have owners."""
        return [owner.rule() for owner in self.owners]

    def mute_rules(self) -> list[Mute]:
        """Return the mutes, with boxes by the host names of their machines."""
        return rules_of(self.mutes, self.boxes)

    def tasks_of(self, box: str) -> list[Task]:
        """Return the tasks of a box in order of priority."""
        mine = [task for task in self.tasks if not task.boxes or box in task.boxes]
        return sorted(mine, key=lambda task: task.priority)

    def engines_of(self, task: Task) -> list[Engine]:
        """Return the engines of the plan that a task measures."""
        able = load_suite(task.suite).engines
        return [engine for engine in self.engines if engine in (task.engines or able)]


def load_plan(path: Path) -> Plan:
    """Read a plan. Raises PlanError, which names the file, the key and the reason."""
    try:
        data = toml_value(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PlanError(f"the plan cannot be read: {error.strerror}", where=str(path)) from error
    except ValueError as error:
        raise PlanError(f"not TOML: {error}", where=str(path)) from error
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        raise PlanError(
            "the plan is invalid:\n" + "\n".join(f"    {line}" for line in mistakes(error)),
            where=str(path),
            hint="docs/nightly.md describes every key",
        ) from error


def plan_history(plan: Plan, home: Home) -> Path | str:
    """The path or URL of the plan's history."""
    return plan.history if "://" in plan.history else home.path / plan.history


def find_box(plan: Plan, chosen: str | None, hostname: str) -> str:
    """Return the box that this machine is: the chosen one (--box, $TIDEMARK_BOX), else by host name.

    Raises PlanError when the plan has no such box; the names that workflows pass on are checked here.
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


def _route_problems(plan: Plan) -> Iterator[str]:
    names = [route.name for route in plan.notify]
    known = {"suites": [task.suite for task in plan.tasks], "boxes": list(plan.boxes)}
    for number, route in enumerate(plan.notify):
        if names.count(route.name) > 1:
            yield f"notify.{number}.name: two routes have the name {route.name}"
        for key, there in known.items():
            for entry in getattr(route, key):
                if entry not in there:
                    yield f"notify.{number}.{key}: the plan has no {entry!r}; it has {', '.join(there)}"
        for branch in route.branches:
            if branch.partition("@")[0] not in plan.engines or "@" not in branch or "#" in branch:
                yield f"notify.{number}.branches: {branch!r} is not a branch such as 'postgres@master'"


def _task_problems(plan: Plan) -> Iterator[str]:
    for number, task in enumerate(plan.tasks):
        where = f"tasks.{number}"
        for box in task.boxes:
            if box not in plan.boxes:
                yield f"{where}.boxes: there is no box {box!r}"
        for engine in task.engines:
            if engine not in plan.engines:
                yield f"{where}.engines: {engine} is not tracked"
        try:
            yield from _suite_problems(where, task, load_suite(task.suite))
        except SuiteError as error:
            yield f"{where}.suite: {error.what}"


def _suite_problems(where: str, task: Task, suite: Suite) -> Iterator[str]:
    if task.profile not in suite.profiles:
        yield f"{where}.profile: {suite.name} has no {task.profile!r}; it has {', '.join(suite.profiles)}"
    for engine in task.engines:
        if engine not in suite.engines:
            yield f"{where}.engines: {suite.name} does not run on {engine}"
    try:
        require_levels(task.clients)
    except ValueError as error:
        yield f"{where}.{error}"
    names = [step.name for step in suite.steps]
    for step in task.steps:
        if step.partition(LEVEL)[0] not in names:
            yield f"{where}.steps: {suite.name} has no step {step!r}"


def _check_variants(engine: Engine, tracked: Tracked, variants: Variants) -> None:
    for key in ("releases", "branches", "installs"):
        for entry in getattr(tracked, key):
            _, hash_, name = entry.partition("#")
            if hash_ and name not in variants:
                known = ", ".join(variants) or "none"
                raise ValueError(f"engines.{engine}.{key}: {entry}: no [variants.{name}]; there are: {known}")
    for name in variants:
        if not is_variant(name):
            raise ValueError(f"variants.{name}: not a valid name of a variant")

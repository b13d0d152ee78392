"""Validation of the inputs of a workflow: only what plan and suites know is allowed."""

from dataclasses import dataclass
from pathlib import Path

from build.version import Engine, parse_version
from runners.nightly.plan import Box, Plan, PlanError, find_box
from suites.definition import load_suite, suite_names


@dataclass(frozen=True)
class Inputs:
    """The unvalidated inputs of a bisect."""

    engine: str
    good: str
    bad: str
    suite: str
    step: str
    profile: str


@dataclass(frozen=True)
class TryInputs:
    """The unvalidated inputs of a try."""

    engine: str
    ref: str
    against: str | None
    suite: str
    profile: str
    steps: tuple[str, ...]


def box_for_try(plan: Plan, name: str, inputs: TryInputs) -> Box:
    """Return the box that a try is to run on.

    Raises TidemarkError as `box_for` does, and for a ref that is the path of a file: a patch of a workflow's
    input would be foreign code.
    """
    box = _box_of_engine(plan, name, inputs.engine)
    for ref in (inputs.ref, inputs.against):
        if ref:
            parse_version(f"{inputs.engine}@{ref}")
    if Path(inputs.ref).exists():
        raise PlanError(f"{inputs.ref!r} is a file here, and not a ref", hint="name a branch, tag or commit")
    _check_suite(inputs.suite, inputs.engine, inputs.profile, inputs.steps)
    return box


def box_for(plan: Plan, name: str, inputs: Inputs) -> Box:
    """Return the box that a bisect is to run on.

    Raises TidemarkError for a box or an engine that the plan does not have, an invalid ref, a suite that is a
    path, and a step or profile that the suite does not have.
    """
    box = _box_of_engine(plan, name, inputs.engine)
    for ref in (inputs.good, inputs.bad):
        parse_version(f"{inputs.engine}@{ref}")
    _check_suite(inputs.suite, inputs.engine, inputs.profile, (inputs.step,))
    return box


def _box_of_engine(plan: Plan, name: str, engine: str) -> Box:
    box = plan.boxes[find_box(plan, name, "")]
    if engine not in plan.engines:
        raise PlanError(
            f"the plan tracks no engine {engine!r}",
            hint=f"its engines are: {', '.join(plan.engines)}",
        )
    return box


def _check_suite(name: str, engine: str, profile: str, steps: tuple[str, ...]) -> None:
    # A user of the box may name the path of a suite; a path from a workflow would be foreign code.
    if name not in suite_names():
        raise PlanError(
            f"this checkout has no suite {name!r}", hint=f"its suites are: {', '.join(suite_names())}"
        )
    suite = load_suite(name)
    if Engine(engine) not in suite.engines:
        raise PlanError(f"{suite.name} does not run on {engine}")
    suite.profile(profile)
    suite.select(steps)

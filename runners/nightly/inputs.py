"""Validation of the inputs of a workflow: only what plan and suites know is allowed."""

from dataclasses import dataclass

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


def box_for(plan: Plan, name: str, inputs: Inputs) -> Box:
    """Return the box that a bisect is to run on.

    Raises TidemarkError for a box or an engine that the plan does not have, an invalid ref, a suite that is a
    path, and a step or profile that the suite does not have.
    """
    box = plan.boxes[find_box(plan, name, "")]
    if inputs.engine not in plan.engines:
        raise PlanError(
            f"the plan tracks no engine {inputs.engine!r}",
            hint=f"its engines are: {', '.join(plan.engines)}",
        )
    for ref in (inputs.good, inputs.bad):
        parse_version(f"{inputs.engine}@{ref}")
    _check_suite(inputs)
    return box


def _check_suite(inputs: Inputs) -> None:
    # A user of the box may name the path of a suite; a path from a workflow would be foreign code.
    if inputs.suite not in suite_names():
        raise PlanError(
            f"this checkout has no suite {inputs.suite!r}", hint=f"its suites are: {', '.join(suite_names())}"
        )
    suite = load_suite(inputs.suite)
    if Engine(inputs.engine) not in suite.engines:
        raise PlanError(f"{suite.name} does not run on {inputs.engine}")
    suite.profile(inputs.profile)
    suite.select((inputs.step,))

"""What somebody may ask of a box through a workflow: nothing that the plan and the suites do not know."""

from dataclasses import dataclass

from build.version import Engine, parse_version
from runners.nightly.plan import Box, Plan, PlanError, find_box
from suites.definition import load_suite, suite_names


@dataclass(frozen=True)
class Inputs:
    """The inputs of a bisect as they came: nobody has looked at them yet."""

    engine: str
    good: str
    bad: str
    suite: str
    step: str
    profile: str


def box_for(plan: Plan, name: str, inputs: Inputs) -> Box:
    """The box that a bisect is to run on.

    Raises TidemarkError for what could not be meant: a box or an engine that is not the plan's, a ref that
    git cannot have, a suite that is a path, a step or profile that the suite has not.
    """
    box = plan.boxes[find_box(plan, name, "")]
    if inputs.engine not in plan.engines:
        raise PlanError(
            f"the plan tracks nothing of {inputs.engine!r}",
            hint=f"its engines are: {', '.join(plan.engines)}",
        )
    for ref in (inputs.good, inputs.bad):
        parse_version(f"{inputs.engine}@{ref}")
    _check_suite(inputs)
    return box


def _check_suite(inputs: Inputs) -> None:
    # A person at the box may name the path of a suite; one that came from elsewhere is code from elsewhere.
    if inputs.suite not in suite_names():
        raise PlanError(
            f"this checkout has no suite {inputs.suite!r}", hint=f"its suites are: {', '.join(suite_names())}"
        )
    suite = load_suite(inputs.suite)
    if Engine(inputs.engine) not in suite.engines:
        raise PlanError(f"{suite.name} does not run on {inputs.engine}")
    suite.profile(inputs.profile)
    suite.select((inputs.step,))

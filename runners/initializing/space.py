"""The disk space and the memory that a session takes on a box."""

from runners.measuring import preparation
from runners.nightly.plan import Plan, Task
from suites.definition import Suite, load_suite
from suites.sizing import fit_together, sizes, this_machine


def session_bytes(suite: Suite, profile_name: str, versions: int) -> int:
    """Return the most bytes that a session with so many versions takes on this machine."""
    profile = suite.profile(profile_name)
    return preparation.session_bytes(profile, sizes(suite, profile, this_machine()), versions)


def night_bytes(plan: Plan, box: str) -> int:
    """Return the most bytes that a session of the nights of a box takes on this machine; 0 without tasks."""
    tasks = plan.tasks_of(box)
    return max(
        (session_bytes(suite_of(task), task.profile, most_versions(plan, task)) for task in tasks), default=0
    )


def most_versions(plan: Plan, task: Task) -> int:
    """Return how many versions a session of a task has at most, the base included."""
    engines = (plan.engines[engine] for engine in plan.engines_of(task))
    return max((1 + len(tracked.releases) + len(tracked.moving) for tracked in engines), default=0)


def fits_in_memory(task: Task) -> bool:
    """Return whether this machine has the memory for one server with the most clients of a task."""
    suite, machine = suite_of(task), this_machine()
    steps = suite.select(task.steps, task.profile, task.clients)
    return fit_together(1, sizes(suite, suite.profile(task.profile), machine, steps), machine)


def suite_of(task: Task) -> Suite:
    """Return the suite of a task, with the memory and disk that the task declares for each server."""
    return load_suite(task.suite).with_declared(task.memory, task.disk)

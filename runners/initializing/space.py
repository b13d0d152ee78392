"""The disk space and the memory that a session takes on a box."""

from runners.measuring import preparation
from runners.nightly.plan import Task
from suites.definition import Suite, load_suite
from suites.sizing import fit_together, sizes, this_machine


def session_bytes(suite: Suite, profile_name: str, versions: int) -> int:
    """Return the most bytes that a session with so many versions takes on this machine."""
    profile = suite.profile(profile_name)
    return preparation.session_bytes(profile, sizes(suite, profile, this_machine()), versions)


def fits_in_memory(task: Task) -> bool:
    """Return whether this machine has the memory for one server with the most clients of a task."""
    suite, machine = suite_of(task), this_machine()
    steps = suite.select(task.steps, task.profile, task.clients)
    return fit_together(1, sizes(suite, suite.profile(task.profile), machine, steps), machine)


def suite_of(task: Task) -> Suite:
    """Return the suite of a task, with the memory and disk that the task declares for each server."""
    return load_suite(task.suite).with_declared(task.memory, task.disk)

"""`./tidemark suite`: list the suites with what they cost, or keep one of own files under a name."""

import argparse

from history.rendering.plain_table import PlacedField, standard_output
from runners.own_workload.suite_folder import save
from suites.definition import Suite, load_suite, own_suites, suite_names
from suites.sizing import sizes, this_machine

PROFILE = "short"
"""The profile whose minutes and disk space are shown; the first one of a suite without it."""


def main(arguments: argparse.Namespace) -> int:
    """Print the suites, or where one was saved; return 0."""
    if arguments.what == "list":
        _list()
        return 0
    folder = save(arguments.suite, arguments.name)
    print(f"saved: {folder}")
    print(f"measure it with --suite {arguments.name}, or name it as the suite of a task in the plan")
    return 0


def _list() -> None:
    """Print a line for each suite of Tidemark, and of the home."""
    sections = [[_cells(load_suite(name)) for name in names] for names in (suite_names(), own_suites())]
    screen = standard_output()
    heads = ("suite", "steps", "minutes", "GB", "what it measures")
    screen.table(
        heads, [rows for rows in sections if rows], left=(heads[0], heads[-1]), gap=2, wraps_last=True
    )
    screen.line()
    screen.line(
        f"Profile {PROFILE}, or a suite's first one, on this machine: minutes of the rounds of two versions, "
        "without compiling, loading and resets, and disk space of each. Measure one with "
        "./tidemark run --suite NAME, or a part of it with --step."
    )


def _cells(suite: Suite) -> list[PlacedField]:
    profile = suite.profiles.get(PROFILE) or next(iter(suite.profiles.values()))
    minutes = len(suite.steps) * profile.repetitions * 2 * profile.seconds / 60
    disk = sizes(suite, profile, this_machine(), suite.steps).disk_bytes / 1e9
    texts = (
        suite.name,
        str(len(suite.steps)),
        f"{minutes:.0f}" if minutes >= 1 else "<1",
        f"{disk:.1f}",
        suite.title,
    )
    return [PlacedField(text) for text in texts]

"""`./tidemark suite`: list the suites below the home, or keep one that a command line made under a name."""

import argparse

from runners.own_workload.suite_folder import save
from suites.definition import load_suite, own_suites


def main(arguments: argparse.Namespace) -> int:
    """Print the suites, or where one was saved; return 0."""
    if arguments.what == "list":
        for name in own_suites():
            print(f"{name}  {load_suite(name).title}")
        return 0
    folder = save(arguments.suite, arguments.name)
    print(f"saved: {folder}")
    print(f"measure it with --suite {arguments.name}, or name it as the suite of a task in the plan")
    return 0

"""The arguments of `./tidemark update`."""

import argparse

from runners.occupancy.arguments import add_wait
from runners.plan_argument import add_plan


def add_update(command: argparse.ArgumentParser) -> None:
    """Add what to update to, and how long to wait for the machine."""
    command.description = (
        "Bring this checkout, its environment and the history to another commit. It is tried first: on a "
        "copy of the history, by check, and in a short night. If it fails, the commit before stays in use."
    )
    command.epilog = "exit codes: 0 updated, or nothing is new; 2 trouble: the commit before is in use"
    to = "tag, commit or branch to update to; may be an older one (default: the branch that is followed)"
    command.add_argument("--to", metavar="REF", help=to)
    command.add_argument("--dry-run", action="store_true", help="only fetch, and print what is new")
    add_plan(command, "plan of the box")
    add_wait(command)

"""The subcommands of `./tidemark service` and their arguments."""

import argparse

from runners.occupancy.arguments import add_pauses, add_wait
from runners.plan_argument import add_plan

AT = "03:17"
"""When a night begins, in UTC: two hours after GitHub's schedule, which may be late."""


def add_subcommands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands to the parser of `service`."""
    what = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    install = what.add_parser("install", help="install users, folders and units of a box, or renew them")
    install.description = (
        "Set up this machine as the box that the plan in /etc/tidemark/nightly.toml describes. Called again, "
        "it writes what differs; changes of units belong into drop-ins (systemctl edit)."
    )
    install.epilog = "exit codes: 0 done, or nothing to do; 2 refused or failed"
    _add_box(install)
    home = "folder of history and builds; default: $TIDEMARK_HOME, else /var/lib/tidemark"
    install.add_argument("--home", metavar="FOLDER", help=home)
    install.add_argument(
        "--at", default=AT, metavar="HH:MM", help="start of a night in UTC (default: %(default)s)"
    )
    update = what.add_parser("update", help="update Tidemark on this box, and go back if that fails")
    update.description = (
        "Bring this checkout to the newest commit of the branch that it follows, its environment, units and "
        "history with it. The history is copied before; if anything fails, all is as it was."
    )
    update.epilog = "exit codes: 0 updated, or nothing is new; 2 trouble: the commit before is in use"
    update.add_argument("--dry-run", action="store_true", help="only fetch, and print what is new")
    add_plan(update, "plan of the box")
    add_wait(update)
    add_pauses(what)
    alert = what.add_parser("test-alert", help="send a message to each route; open an issue, and close it")
    alert.description = (
        "Send a message to each route of the plan, and say which arrived; open an issue where alerts go, and "
        "close it again."
    )
    alert.epilog = (
        "exit codes: 0 done; 1 opened without the plan's labels; 2 an alert or a message would not arrive, "
        "and why"
    )
    add_plan(alert)
    _add_box(alert)


def _add_box(parser: argparse.ArgumentParser) -> None:
    box = "box of the plan that this machine is; default: $TIDEMARK_BOX, else by host name"
    parser.add_argument("--box", metavar="NAME", help=box)

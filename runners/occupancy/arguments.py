"""Arguments about who has the machine: how long a command waits for it, and pauses."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from history.timestamps import now
from runners.occupancy.pause import moment_to_come
from runners.values import minutes

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_wait(options: "argparse._ActionsContainer") -> None:
    """Add `--wait`, in minutes, to the parser of a command, or to a group of its arguments."""
    wait = "wait up to so many minutes while the machine is held, by a measurement or a report; default: none"
    options.add_argument("--wait", type=minutes, default=0.0, metavar="MINUTES", help=wait)


def add_pauses(subcommands: "Subcommands") -> None:
    """Add `pause` and `resume` to the subcommands of `service`."""
    pause = subcommands.add_parser("pause", help="let no night begin on this box until a certain time")
    pause.description = (
        "Until then no night, no bisect and no try of a workflow begins on this box, and no night counts as "
        "missed. A session that is running goes on; the night ends after it."
    )
    until = "18:00, which is the next one; 2026-12-24; or '2026-12-24 18:00', in this machine's time zone"
    pause.add_argument("--until", type=_until, required=True, metavar="TIME", help=until)
    pause.add_argument("--why", required=True, metavar="TEXT", help="reason, which others are shown")
    interrupt = "end a running night now; the next night continues its session"
    pause.add_argument("--interrupt", action="store_true", help=interrupt)
    resume = subcommands.add_parser("resume", help="end a pause")
    resume.description = "End the pause of this box."
    for subcommand in (pause, resume):
        subcommand.epilog = "exit codes: 0 done, or not paused; 2 trouble"


def _until(text: str) -> datetime:
    try:
        return moment_to_come(text, now())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error

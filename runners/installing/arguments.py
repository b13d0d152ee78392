"""The words of `./tidemark runner` and their arguments."""

import argparse

from runners.installing.site import AT


def add_words(it: argparse.ArgumentParser, plan: str) -> None:
    """Give the parser of `runner` its words; `plan` is the default plan's path."""
    what = it.add_subparsers(dest="what", required=True, metavar="WHAT")
    install = what.add_parser("install", help="user, folders, services, timers and job hooks of a box")
    install.epilog = (
        "exit codes: 0 done, or nothing to do; 1 a file that somebody has changed was kept; 2 trouble"
    )
    _plan(install, plan)
    install.add_argument("--home", metavar="FOLDER", help="default: $TIDEMARK_HOME, else /var/lib/tidemark")
    install.add_argument(
        "--user", metavar="NAME", help="who measures; default: $TIDEMARK_USER, else tidemark"
    )
    install.add_argument(
        "--at", default=AT, metavar="HH:MM", help="when a night begins, in UTC (default: %(default)s)"
    )
    agent = "the folder of GitHub's runner: its jobs get hooks that make the machine fit"
    install.add_argument("--actions-runner", metavar="FOLDER", help=agent)
    uninstall = what.add_parser("uninstall", help="remove what install wrote; history and builds stay")
    uninstall.epilog = (
        "exit codes: 0 done, or nothing to do; 1 a file that somebody has changed was kept; 2 trouble"
    )
    for each in (install, uninstall):
        each.add_argument("--dry-run", action="store_true", help="say everything and change nothing")
        each.add_argument(
            "--force", action="store_true", help="replace or remove files that somebody has changed too"
        )
    show = what.add_parser("show", help="is everything as it was installed?")
    show.epilog = (
        "exit codes: 0 as it was installed; 1 changed, gone, failed, or nothing is installed; 2 trouble"
    )
    for each in (install, uninstall, show):
        each.add_argument("--root", metavar="FOLDER", help="install below this folder, for another machine")
    watch = what.add_parser("watch", help="say when a night hangs, died or was missed; its timer calls it")
    watch.epilog = "exit codes: 0 well; 1 a night hangs, died, or was missed; 2 trouble"
    _plan(watch, plan)
    hook = what.add_parser("hook", help="what GitHub's runner calls around a job")
    hook.add_argument("when", choices=["started", "completed"])


def _plan(it: argparse.ArgumentParser, plan: str) -> None:
    it.add_argument("--plan", default=plan, metavar="FILE", help="default: runners/nightly.toml")
    box = "which box of the plan this machine is; default: $TIDEMARK_BOX, else by host name"
    it.add_argument("--box", metavar="NAME", help=box)

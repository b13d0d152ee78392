"""The subcommands of `./tidemark runner` and their arguments."""

import argparse
from typing import Any

from runners.occupancy.arguments import add_pauses
from runners.plan_argument import add_plan

AT = "03:17"
"""When a night begins, in UTC: two hours after GitHub's schedule, which may be late."""


PLAN = "/etc/tidemark/nightly.toml"
"""Where `init` writes a plan: outside of the checkout, in which an update refuses local edits."""


def add_subcommands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands to the parser of `runner`."""
    what = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    _init(what)
    install = what.add_parser(
        "install", help="install user, folders, services, timers and job hooks of a box"
    )
    install.epilog = "exit codes: 0 done, or nothing to do; 1 a modified file was kept; 2 trouble"
    _plan(install)
    install.add_argument("--home", metavar="FOLDER", help="default: $TIDEMARK_HOME, else /var/lib/tidemark")
    install.add_argument(
        "--user", metavar="NAME", help="user who measures; default: $TIDEMARK_USER, else tidemark"
    )
    install.add_argument(
        "--at", default=AT, metavar="HH:MM", help="start of a night in UTC (default: %(default)s)"
    )
    agent = "folder of GitHub's runner, whose jobs get hooks that prepare the machine"
    install.add_argument("--actions-runner", metavar="FOLDER", help=agent)
    uninstall = what.add_parser("uninstall", help="remove what install wrote; history and builds are kept")
    uninstall.epilog = "exit codes: 0 done, or nothing to do; 1 a modified file was kept; 2 trouble"
    for subcommand in (install, uninstall):
        subcommand.add_argument("--dry-run", action="store_true", help="only print what would be done")
        subcommand.add_argument("--force", action="store_true", help="replace or remove modified files too")
    show = what.add_parser("show", help="show whether everything is as it was installed")
    show.epilog = (
        "exit codes: 0 as installed; 1 modified, missing, failed, or nothing is installed; 2 trouble"
    )
    for subcommand in (install, uninstall, show):
        subcommand.add_argument(
            "--root", metavar="FOLDER", help="write files below this folder, for another machine"
        )
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
    _plan(alert)
    hook = what.add_parser("hook", help="prepare or clean up for a job; run by GitHub's runner")
    hook.add_argument("when", choices=["started", "completed"])


def _init(what: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    init = what.add_parser("init", help="write the plan of a box, and check all that its nights need")
    init.description = (
        "Ask for what a plan has to say, with what is found on this machine as defaults; write the plan; "
        "check machine, disk, memory, programs, git, releases, tracker and routes; print the commands that "
        "are left. Without a terminal, what no option says is named at once, unless --yes takes the defaults."
    )
    init.epilog = (
        "exit codes: 0 a night can begin when the printed commands are done; 1 something has to be corrected "
        "before; 2 no plan was written, or trouble"
    )
    init.add_argument("--yes", action="store_true", help="ask nothing: take the default of what is not given")
    file = f"where the plan is written (default: {PLAN})"
    init.add_argument("--plan", metavar="FILE", help=file)
    init.add_argument("--force", action="store_true", help="replace a plan that is there")
    check = "write nothing, and check the plan that is there; default: that of the installed units"
    init.add_argument("--check", action="store_true", help=check)
    init.add_argument("--home", metavar="FOLDER", help="default: $TIDEMARK_HOME, else /var/lib/tidemark")
    answers = init.add_argument_group("answers")
    answers.add_argument("--box", metavar="NAME", help="name of this box (default: its host name)")
    several: dict[str, Any] = {"action": "append"}
    base = "release that everything else is compared with; once for each engine"
    answers.add_argument("--base", metavar="VERSION", help=base, **several)
    release = "release that is measured once, or none; can be repeated"
    answers.add_argument("--release", metavar="VERSION", help=release, **several)
    branch = "engine@branch that is measured whenever it has moved, or none; can be repeated"
    answers.add_argument("--branch", metavar="VERSION", help=branch, **several)
    git = "where the branches are: URL or path; ENGINE=SOURCE with several engines"
    answers.add_argument("--git", metavar="SOURCE", help=git, **several)
    answers.add_argument("--suite", metavar="NAME", help="suite to run; can be repeated", **several)
    answers.add_argument("--profile", metavar="NAME", help="profile of the suites")
    budget = "minutes of a night in which sessions may begin"
    answers.add_argument("--budget", metavar="MINUTES", help=budget)
    issues = "address of the repository in which issues are opened, or none"
    answers.add_argument("--issues", metavar="URL", help=issues)
    tracker = "what runs at that address: github, gitlab or gitea (default: by its host)"
    answers.add_argument("--tracker", metavar="KIND", help=tracker)
    notify = (
        "route by which people are told, or none; with a URL only if that holds no secret; can be repeated"
    )
    answers.add_argument("--notify", metavar="NAME[=URL]", help=notify, **several)


def _plan(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    box = "box of the plan that this machine is; default: $TIDEMARK_BOX, else by host name"
    parser.add_argument("--box", metavar="NAME", help=box)

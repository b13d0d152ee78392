"""The arguments of `./tidemark try`."""

import argparse

from build.sources.repository import GIT_HELP
from build.version import Engine
from runners.occupancy.arguments import add_wait
from runners.own_workload.arguments import USUAL_SUITE, add_own_workload
from runners.plan_argument import add_plan
from runners.values import LAYOUTS_HELP, levels, minutes, rounds
from runners.variant_arguments import add_declared, add_with
from suites.keys.durability import Durability

BUDGET_MINUTES = 30.0
"""The default minutes, compiling included: as long as a reviewer may wait."""

SERVER_KEYS = ("setting", "layer", "companion")
"""The keys of `--with` here: what else a variant has is what a try compares."""

EXIT_CODES = (
    "exit codes: 0 no step is worse, for certain; 1 a step is slower, has a finding that is worse, or "
    "executes more without being faster; 2 trouble, or a step in which something may be worse"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a try."""
    parser.description = (
        "Compare what is in your clone or the tip of a branch with its merge base, patches with what they "
        "apply to, or an install prefix with another version: instructions are counted first, then rounds "
        "are measured until decided or the budget is used up. No series gets a point."
    )
    parser.epilog = EXIT_CODES
    add = parser.add_argument
    add(
        "what",
        nargs="*",
        metavar="REF|PATCH",
        help="branch, tag or commit, such as postgres@topic; patches in their order, as files, a folder, or "
        "mails (mbox); or an install prefix, such as postgres@new=/opt/pg; default: HEAD and what is "
        "uncommitted in the clone around the current folder",
    )
    against = (
        "what a ref is to be merged into, what patches apply to, or what an install prefix is compared "
        "with; default: the commit that a patch names, else upstream's main branch; for HEAD the branch that "
        "is tracked, else origin/HEAD"
    )
    add("--against", metavar="REF", help=against)
    add("--engine", choices=list(Engine), help="default: that of the clone, else postgres")
    add("--git", metavar="SOURCE", help=GIT_HELP)
    extension = "try a ref of an extension's repository, such as pgvector=. in a clone of it; needs --server"
    add("--extension", metavar="NAME=REPO", help=extension)
    add("--server", metavar="VERSION", help="the Postgres that the extension is tried on: postgres@18.6")
    add("--suite", help=f"name or folder of the suite (default: {USUAL_SUITE})")
    add("--profile", default="smoke", help="how long and large: smoke (default), short or io")
    add("--step", action="append", default=[], metavar="NAME", help="only this step; can be repeated")
    clients = "client connections, such as 1,8,64, instead of the suite's levels"
    add("--clients", type=levels, default=(), metavar="N,N...", help=clients)
    budget = (
        f"all the time there is, compiling included (default: {BUDGET_MINUTES:g}); instructions are counted "
        "even when compiling has used it up"
    )
    add("--budget", type=minutes, default=BUDGET_MINUTES, metavar="MINUTES", help=budget)
    _add_servers(parser)
    add("--layouts", type=rounds, default=0, metavar="N", help=LAYOUTS_HELP)
    add("--no-exact", action="store_true", help="count no instructions")
    disturbed = "keep rounds that were disturbed by other processes instead of measuring them again"
    add("--keep-disturbed", action="store_true", help=disturbed)
    add_wait(parser)
    page = "where the page to mail is written; default: a file in the folder tries of the home"
    add("--page", metavar="FILE", help=page)
    add_own_workload(parser)
    _add_planned(parser)


def _add_servers(parser: argparse.ArgumentParser) -> None:
    """Add what the servers of both sides get."""
    add = parser.add_argument
    durability = "durability of commits: relaxed (default) may lose the last second in a crash"
    add("--durability", choices=list(Durability), default=Durability.RELAXED, help=durability)
    add_with(parser, "the servers of both sides get", SERVER_KEYS)
    add_declared(parser)


def _add_planned(parser: argparse.ArgumentParser) -> None:
    """Add what a workflow names."""
    planned = parser.add_argument_group("for workflows")
    box = (
        "the box of the plan to run on; the git source is then the plan's, a branch or tag of it has to lead "
        "to the commits, and a patch is refused"
    )
    planned.add_argument("--box", metavar="NAME", help=box)
    pull = (
        "with --box: the number of a pull request of the plan's git source, which has to lead to the commit"
    )
    planned.add_argument("--pull", type=rounds, metavar="NUMBER", help=pull)
    add_plan(planned, "plan of the nights")
    check = "with --box: only check the arguments and print the label of the box's runner"
    planned.add_argument("--check", action="store_true", help=check)

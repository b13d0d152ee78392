"""The arguments of `nightly` about past commits."""

import argparse


def add_past(command: argparse.ArgumentParser) -> None:
    """Add `--backfill` and the options that say which past commits it measures, and how."""
    past = command.add_argument_group("past commits")
    backfill = "measure past commits of a branch instead of what is new; resumes, and ends with the budget"
    past.add_argument("--backfill", action="store_true", help=backfill)
    past.add_argument("--branch", metavar="BRANCH", help="with --backfill: such as postgres@master")
    past.add_argument("--since", metavar="DATE", help="with --backfill: the first date, such as 2025-01")
    every = "with --backfill: the days between two dates, such as 7d (default)"
    past.add_argument("--every", metavar="DAYS", help=every)
    counted = "with --backfill: count instructions and time nothing; the next commit compiles meanwhile"
    past.add_argument("--counted", action="store_true", help=counted)

"""The arguments of `./tidemark data`."""

import argparse


def add_data(command: argparse.ArgumentParser) -> None:
    """Add what is done with the kept copies of loaded data."""
    what = command.add_subparsers(dest="what", required=True, metavar="WHAT")
    what.add_parser("list", help="show the kept copies of loaded data, and how large they are")
    prune = what.add_parser("prune", help="delete copies that are damaged, or whose build is gone")
    prune.add_argument("names", nargs="*", metavar="NAME", help="delete these copies instead")
    prune.add_argument("--all", action="store_true", help="delete all copies")

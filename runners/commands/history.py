"""`./tidemark history`: hands over to what carries each of its words out."""

import argparse

from runners.commands import history_views


def main(arguments: argparse.Namespace) -> int:
    """Carry out a word of `history`, and return its exit code."""
    return history_views.main(arguments)

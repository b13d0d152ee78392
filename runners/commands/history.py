"""`./tidemark history`: hands over to what carries each of its words out."""

import argparse
from importlib import import_module

PLACES = {
    "show": "views",
    "series": "views",
    "export": "transfers",
    "import": "transfers",
    "merge": "transfers",
    "backup": "transfers",
    "prune": "transfers",
    "judge": "changes",
    "changes": "changes",
    "acknowledge": "changes",
}
"""Word -> the module of runners.history that has a function of its name."""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a word, and return its exit code."""
    word = arguments.what
    module = import_module(f"runners.history.{PLACES[word]}")
    act = getattr(module, f"{word}_")
    return int(act(arguments))

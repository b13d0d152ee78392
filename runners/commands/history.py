"""`./tidemark history`: calls the function of its subcommand."""

import argparse
from importlib import import_module

MODULES = {
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
"""The module of runners.history with the function of a subcommand, which is called like it with a `_`."""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a subcommand, and return its exit code."""
    name = arguments.what
    module = import_module(f"runners.history.{MODULES[name]}")
    subcommand = getattr(module, f"{name}_")
    return int(subcommand(arguments))

"""`./tidemark history`: calls the function of its subcommand."""

import argparse
from importlib import import_module

MODULES = {
    "show": "views",
    "series": "views",
    "change-points": "views",
    "export": "transfers",
    "import": "transfers",
    "merge": "transfers",
    "deliver": "delivery",
    "backup": "transfers",
    "prune": "transfers",
    "judge": "changes",
    "changes": "changes",
    "acknowledge": "changes",
}
"""The module of runners.history with the function of a subcommand.

It is called like the subcommand, with a `_` for a hyphen and at its end.
"""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a subcommand, and return its exit code."""
    name = arguments.what
    module = import_module(f"runners.history.{MODULES[name]}")
    subcommand = getattr(module, f"{name.replace('-', '_')}_")
    return int(subcommand(arguments))

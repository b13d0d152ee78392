"""`./tidemark history`: calls the function of its subcommand."""

import argparse
import sys
from importlib import import_module

from build.home import locate
from runners.occupancy.waiting import beside

MODULES = {
    "show": "views",
    "series": "views",
    "change-points": "views",
    "export": "transfers",
    "import": "transfers",
    "merge": "transfers",
    "deliver": "delivery",
    "backup": "transfers",
    "migrate": "transfers",
    "restore": "restoring",
    "prune": "transfers",
    "judge": "changes",
    "changes": "changes",
    "acknowledge": "changes",
}
"""The module of runners.history with the function of a subcommand.

It is called like the subcommand, with a `_` for a hyphen and at its end.
"""

HEAVY = ("export", "import", "merge", "backup", "prune", "judge")
"""The subcommands that load the machine. They do not wait: a copy is wanted most where a night hangs."""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a subcommand, and return its exit code."""
    name = arguments.what
    if name in HEAVY and (warning := beside(locate())) is not None:
        print(f"tidemark: {warning}", file=sys.stderr)
    module = import_module(f"runners.history.{MODULES[name]}")
    subcommand = getattr(module, f"{name.replace('-', '_')}_")
    return int(subcommand(arguments))

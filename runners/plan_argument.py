"""The argument `--plan` of commands that read the plan of a box."""

import argparse


def add_plan(options: "argparse._ActionsContainer", what: str = "") -> None:
    """Add `--plan` to the parser of a command, or to a group of its arguments; `what` begins its help."""
    default = "default: that of the installed units, else runners/nightly.toml"
    options.add_argument("--plan", metavar="FILE", help="; ".join(filter(None, [what, default])))

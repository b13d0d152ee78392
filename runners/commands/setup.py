"""`./tidemark setup`: the launcher installs everything; this says what comes next."""

import argparse


def main(arguments: argparse.Namespace) -> int:
    """Say that the packages are installed; return 0."""
    del arguments
    print("ready: ./tidemark demo")
    return 0

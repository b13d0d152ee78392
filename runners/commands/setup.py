"""`./tidemark setup`: install what the launcher does not install itself."""

import argparse

from build.home import locate_for_writing
from build.inferno import provide_inferno
from runners.console import progress


def main(arguments: argparse.Namespace) -> int:
    """Compile inferno unless it is installed; return 0."""
    del arguments
    home = locate_for_writing()
    with progress() as shown:
        provide_inferno(home, shown)
    print("ready: ./tidemark demo")
    return 0

"""`./tidemark bench NAME`: run one of Tidemark's own benchmarks against its targets."""

import argparse
from collections.abc import Callable
from importlib import import_module

from build.errors import TidemarkError
from build.home import ROOT, locate_for_writing


def main(arguments: argparse.Namespace) -> int:
    """Run benchmarks/NAME.py; return 0 when every figure meets its target, 1 when one misses it."""
    if arguments.name not in names():
        raise TidemarkError(
            f"there is no benchmark '{arguments.name}'", hint="the benchmarks are: " + ", ".join(names())
        )
    locate_for_writing()  # which raises where root may not write
    benchmark: Callable[[], int] = import_module(f"benchmarks.{arguments.name}").main
    return benchmark()


def names() -> list[str]:
    """Return the names of all benchmarks."""
    files = (ROOT / "benchmarks").glob("*.py")
    return sorted(path.stem for path in files if _MAIN in path.read_text(encoding="utf-8"))


_MAIN = "\ndef main() -> int:\n"
"""What makes a module a benchmark, and not a part of one."""

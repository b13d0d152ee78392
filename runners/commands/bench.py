"""`./tidemark bench NAME`: run one of Tidemark's own benchmarks against its targets."""

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from build.errors import TidemarkError
from build.home import ROOT, locate_for_writing


def main(arguments: argparse.Namespace) -> int:
    """Run the benchmark; return 0 when every figure meets its target, 1 when one misses it."""
    if arguments.name not in names():
        raise TidemarkError(
            f"there is no benchmark '{arguments.name}'", hint="the benchmarks are: " + ", ".join(names())
        )
    locate_for_writing()  # which raises where root may not write
    benchmark: Callable[[], int] = import_module(f"benchmarks.{arguments.name}").main
    return benchmark()


def names() -> list[str]:
    """Return the names of all benchmarks: modules and packages with a `main`."""
    return sorted(name for name, path in files().items() if _MAIN in path.read_text(encoding="utf-8"))


def files() -> Mapping[str, Path]:
    """Return the files below benchmarks/ by the name of their module or package."""
    folder = ROOT / "benchmarks"
    packages = {path.parent.name: path for path in folder.glob("*/__init__.py")}
    return {**packages, **{path.stem: path for path in folder.glob("*.py")}}


_MAIN = "\ndef main() -> int:\n"
"""What makes a module or a package a benchmark, and not a part of one."""

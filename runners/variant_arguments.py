"""The options that define variants, in every command that builds or measures versions."""

import argparse

from build.recipes.choices import KEYS
from build.version import Engine


def add_variants(it: argparse.ArgumentParser) -> None:
    """Add the options that define variants, which runners.measuring.variants reads."""
    *others, last = (f"{engine}.NAME" for engine in Engine)
    names = f"{', '.join(others)} or {last}"
    setting = (
        "override a server setting in every version, or only in engine@ref#VARIANT; "
        f"{names} for one engine; can be repeated"
    )
    patch = "apply FILE to the source of engine@ref#VARIANT before compiling; can be repeated"
    add = it.add_argument
    add("--set", action="append", default=[], metavar="[VARIANT:]NAME=VALUE", help=setting)
    add_build_choices(it)
    add("--patch", action="append", default=[], metavar="VARIANT=FILE", help=patch)


def add_build_choices(it: argparse.ArgumentParser) -> None:
    """Add the option that says how versions are compiled differently from their recipe."""
    build = (
        f"compile every version, or only engine@ref#VARIANT, with another {', '.join(KEYS)}, such as "
        "CFLAGS=-O3 or CC=clang; can be repeated"
    )
    it.add_argument("--build", action="append", default=[], metavar="[VARIANT:]KEY=VALUE", help=build)

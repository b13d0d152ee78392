"""The options that say what servers get, in every command that builds or measures versions."""

import argparse

from build.recipes.recipe import KEYS
from build.version import Engine
from runners.values import disk, memory
from suites.additions.names import CompanionName
from suites.layers.choice import LayerName, described_values
from suites.postgres.initdb_options import OPTIONS


def add_variants(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what servers get: those of variants, and the memory and disk of all."""
    *others, last = (f"{engine}.NAME" for engine in Engine)
    names = f"{', '.join(others)} or {last}"
    setting = (
        "override a server setting in every version, or only in engine@ref#VARIANT; "
        f"{names} for one engine; can be repeated"
    )
    patch = "apply FILE to the source of engine@ref#VARIANT before compiling; can be repeated"
    add = parser.add_argument
    add("--set", action="append", default=[], metavar="[VARIANT:]NAME=VALUE", help=setting)
    add_build_choices(parser)
    index = (
        "add an index to the loaded tables of every version, or only of engine@ref#VARIANT, such as "
        "'sbtest*(id) INCLUDE (c, pad)'; can be repeated"
    )
    companion = (
        "run a companion process beside every version, or only beside engine@ref#VARIANT; "
        f"{', '.join(CompanionName)}; can be repeated"
    )
    add("--index", action="append", default=[], metavar="[VARIANT:]INDEX", help=index)
    add("--companion", action="append", default=[], metavar="[VARIANT:]NAME", help=companion)
    extension = (
        "compile an extension of Postgres from a git repository by PGXS, for every version or only for "
        "engine@ref#VARIANT, and create it before data are loaded; can be repeated"
    )
    add("--extension", action="append", default=[], metavar="[VARIANT:]NAME=REPO@REF", help=extension)
    layer = (
        "how clients reach the server of every version, or only of engine@ref#VARIANT: "
        f"{'; '.join(f'{name}: {described_values(name)}' for name in LayerName)}; can be repeated"
    )
    add("--layer", action="append", default=[], metavar="[VARIANT:]LAYER=VALUE", help=layer)
    initdb = (
        "what the initdb of Postgres is told for every version, or only for engine@ref#VARIANT: "
        f"{'; '.join(f'{name}: {option.described}' for name, option in OPTIONS.items())}; can be repeated"
    )
    add("--initdb", action="append", default=[], metavar="[VARIANT:]OPTION=VALUE", help=initdb)
    add("--patch", action="append", default=[], metavar="VARIANT=FILE", help=patch)
    add_declared(parser)


def add_declared(parser: argparse.ArgumentParser) -> None:
    """Add the options with the memory and the disk of each server."""
    amount = (
        "memory of each server, such as 1G or 512M, page cache included, in a control group of its own; "
        "data, buffers and log are sized by it instead of the machine's memory"
    )
    parser.add_argument("--memory", type=memory, metavar="SIZE", help=amount)
    speed = (
        "the most that the disk does for each server once data are loaded, such as 2000iops, 100MB/s or "
        "2000iops,100MB/s, of reads and of writes each, in a control group of its own"
    )
    parser.add_argument("--disk", type=disk, metavar="SPEED", help=speed)


def add_build_choices(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how versions are compiled differently from their recipe."""
    build = (
        f"compile every version, or only engine@ref#VARIANT, with another {', '.join(KEYS)}, such as "
        "CFLAGS=-O3 or CC=clang; can be repeated"
    )
    parser.add_argument("--build", action="append", default=[], metavar="[VARIANT:]KEY=VALUE", help=build)

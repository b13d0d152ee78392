"""How Postgres is compiled: one table, a row per range of versions that differ."""

import re
from collections.abc import Callable

from build.recipes.recipe import Recipe, RecipeError, Stage, VersionRange, range_of
from build.version import Engine

VERSION_FILE = "configure"
"""The file of a source tree that says which release it is."""

CONTRIB = ("pg_buffercache", "pg_prewarm", "pg_stat_statements", "pgstattuple")
"""The contrib modules that measuring and resetting need."""

PROGRAMS: tuple[str, ...] = (
    "createdb",
    "initdb",
    "pg_config",
    "pg_ctl",
    "pg_dump",
    "pg_isready",
    "pgbench",
    "postgres",
    "psql",
    "vacuumdb",
)

# "postgres" in the path keeps the makefiles from appending /postgresql to share and lib. Every program finds
# its files relative to itself, so that nothing need exist at this path.
PREFIX = "/usr/local/tidemark/postgres"

# Frame pointers let perf walk stacks; -g keeps symbols and lines. Neither costs what would move a verdict.
CFLAGS = "-O2 -fno-omit-frame-pointer -g"

# The makefiles' own hook for the run path, used in place of the absolute libdir. make turns $$ into $, and
# the makefiles put single quotes around it, so the linker gets $ORIGIN/../lib for programs and modules alike.
_RPATH = "rpathdir=$$ORIGIN/../lib"


TABLE = (
    # TOAST learns lz4 in 14, wal_compression in 15.
    VersionRange((12,), (), 996),
    VersionRange((14,), ("--with-lz4",), 1079),
    # ICU is on by default from 16; said here so that a machine without it fails instead of differing.
    VersionRange((16,), ("--with-lz4", "--with-icu"), 1132),
    # io_method=io_uring exists from 18, and only where the library does.
    VersionRange((18,), ("--with-lz4", "--with-icu"), 1161, (("liburing", "--with-liburing"),)),
)


def recipe(release: str, has_library: Callable[[str], bool]) -> Recipe:
    """The recipe of a release (`18.6`, `19devel`) on a host with these libraries.

    Raises RecipeError when the release is older than the table.
    """
    row = range_of(Engine.POSTGRES, release, TABLE)
    optional = [flag for library, flag in row.optional if has_library(library)]
    return Recipe(
        engine=Engine.POSTGRES,
        release=release,
        stages=_stages((*row.flags, *optional)),
        # src/common puts the link flags into a double-quoted string for pg_config: there the shell expands
        # $ORIGIN, so it has to expand to itself.
        environment={"ORIGIN": "$ORIGIN"},
        prefix=PREFIX,
        installs=(
            *(f"bin/{program}" for program in PROGRAMS),
            *(f"lib/{module}.so" for module in CONTRIB),
        ),
        counted=r"\s-c -o\s",
        commands=row.commands,
        scratch_bytes=1_000_000_000,
    )


def release_of(text: str) -> str:
    """The release that a source tree's `VERSION_FILE` names: `18.6`, `19devel`, `18rc1`."""
    found = re.search(r"^PACKAGE_VERSION='([0-9][0-9A-Za-z.]*)'", text, re.MULTILINE)
    if found is None:
        raise RecipeError("the source does not say which Postgres it is", where=VERSION_FILE)
    return found[1]


def _stages(flags: tuple[str, ...]) -> tuple[Stage, ...]:
    configure = ("./configure", f"--prefix={PREFIX}", "CC={compiler}", f"CFLAGS={CFLAGS}", *flags)
    # Not the top folder's `all`: that would make the documentation. config/ holds what pgxs needs.
    folders = ("src", "config", *(f"contrib/{module}" for module in CONTRIB))
    make = ("make", "-j{jobs}", _RPATH)
    compiles = [Stage(f"compile {folder}", (*make, "-C", folder, "all")) for folder in folders]
    # One process: the install targets of src/backend and src/include make the same folders.
    installs = [
        Stage(f"install {folder}", ("make", _RPATH, "-C", folder, "install", "DESTDIR={staging}"))
        for folder in folders
    ]
    return (Stage("configure", configure), *compiles, *installs)

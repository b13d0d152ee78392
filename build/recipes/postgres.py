"""Recipes for Postgres: a table with one row per range of versions that are configured alike."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from build.recipes.recipe import (
    CONFIGURE,
    BuildChoices,
    Recipe,
    RecipeError,
    ServerLink,
    Stage,
    VersionRange,
    range_of,
)
from build.version import Engine

VERSION_FILE = "configure"
"""The file in a source tree that names its release."""

CONTRIB = ("pg_buffercache", "pg_prewarm", "pg_stat_statements", "pgstattuple")
"""The contrib modules that measurements and resets use."""

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

# Because the path contains "postgres", the makefiles do not append /postgresql to share and lib. Programs
# look for files relative to their own path, so that nothing has to exist at this one.
PREFIX = "/usr/local/tidemark/postgres"

# perf needs frame pointers to unwind stacks, and -g for symbols and lines. Neither changes a verdict.
CFLAGS = "-O2 -fno-omit-frame-pointer -g"

SLIM_FOLDERS = (
    "src/backend",
    "src/timezone",
    # initdb creates what these two provide in every database.
    "src/backend/snowball",
    "src/pl/plpgsql/src",
    "src/interfaces/libpq",
)
"""The parts of the source that a server needs to be initialized and to run."""

GENERATED_HEADERS = "generated-headers"
"""The target of src/backend that makes what files of all folders include."""

LIBRARIES = ("src/port", "src/common")
"""What the server and its programs are linked with."""

CATALOG = "src/include/catalog"
"""Has postgres.bki and installs it since March 2024; before that src/backend/catalog did."""

_FOLDERS = {"pg_restore": "pg_dump"}
"""Programs whose source is in the folder of another one."""

SLIM_PROGRAMS = ("initdb", "postgres")

DATA = ("share/postgres.bki", "share/system_views.sql", "share/postgresql.conf.sample")
"""Some of the files that initdb reads."""

SLIM_COMMANDS = 250
"""The approximate number by which the compiler runs of a slim build are fewer than those of a whole one."""

# The makefiles' variable for the run path, which replaces the absolute libdir. make turns $$ into $, and the
# makefiles quote the value, so that the linker gets $ORIGIN/../lib for programs and modules.
_RPATH = "rpathdir=$$ORIGIN/../lib"

LINK: ServerLink | None = ServerLink(
    "src/backend/postgres", ("make", _RPATH, "-C", "src/backend", "postgres")
)


# Another spelling of --with-ssl=openssl, which the releases before 14 do not know.
TLS_OPTIONS: tuple[str, ...] = ("--with-openssl",)

# A release's number does not tell: commits of 17devel are of either kind. The install target of src/include,
# which includes this one, would install all headers.
_CATALOG_STAGE = Stage(
    f"install {CATALOG}",
    (
        "sh",
        "-c",
        'if grep -qs ^install: "$1/Makefile"; then make "$2" -C "$1" install "$3"; fi',
        "install",
        CATALOG,
        _RPATH,
        "DESTDIR={staging}",
    ),
)


TABLE = (
    # lz4 is available for TOAST from 14, for wal_compression from 15.
    VersionRange((12,), (), 996),
    VersionRange((14,), ("--with-lz4",), 1079),
    # ICU is the default from 16. The explicit flag makes configure fail on a machine without ICU.
    VersionRange((16,), ("--with-lz4", "--with-icu"), 1132),
    # io_method=io_uring is available from 18 if liburing is installed.
    VersionRange((18,), ("--with-lz4", "--with-icu"), 1161, (("liburing", "--with-liburing"),)),
)


def recipe(release: str, has_library: Callable[[str], bool]) -> Recipe:
    """Return the recipe of a release (`18.6`, `19devel`); `has_library` says which libraries the host has.

    Raises RecipeError if the release is older than the first row of the table.
    """
    row = range_of(Engine.POSTGRES, release, TABLE)
    # Not `all` of the top folder, which would build the documentation. PGXS needs files in config/.
    folders = ("src", "config", *(f"contrib/{module}" for module in CONTRIB))
    return Recipe(
        engine=Engine.POSTGRES,
        release=release,
        stages=_stages((f"CFLAGS={CFLAGS}", *_flags(row, has_library)), folders),
        flags=CFLAGS,
        # src/common puts the link flags for pg_config into a double-quoted string, in which the shell expands
        # $ORIGIN. It therefore has to expand to itself.
        environment={"ORIGIN": "$ORIGIN"},
        prefix=PREFIX,
        installs=(
            *(f"bin/{program}" for program in PROGRAMS),
            *(f"lib/{module}.so" for module in CONTRIB),
            *DATA,
        ),
        counted=r"\s-c -o\s",
        commands=row.commands,
        scratch_bytes=1_000_000_000,
    )


def slim_recipe(release: str, has_library: Callable[[str], bool], programs: Sequence[str]) -> Recipe:
    """Return the recipe of a server that can be initialized and measured, with these `programs` besides.

    It has the code of a whole build, to the last instruction, and no other clients, modules or headers. It is
    configured with the same words and flags, so that ccache has one object for both. configure takes over the
    answers of an earlier run. Raises RecipeError as `recipe` does.
    """
    row = range_of(Engine.POSTGRES, release, TABLE)
    names = tuple(dict.fromkeys((*SLIM_PROGRAMS, *programs)))
    folders = {name: f"src/bin/{_FOLDERS.get(name, name)}" for name in names if name != "postgres"}
    clients = list(dict.fromkeys(folders.values()))
    flags = (f"CFLAGS={CFLAGS}", *_flags(row, has_library))
    whole = recipe(release, has_library)
    configure, *others = _stages(flags, (*SLIM_FOLDERS, *clients))
    # With several jobs, makefiles of single folders do not wait for these as those of the top folder do.
    headers = Stage("generate headers", ("make", "-j{jobs}", "-C", "src/backend", GENERATED_HEADERS))
    before = (headers, *(_compile(folder) for folder in LIBRARIES))
    return replace(
        whole,
        stages=(configure, *before, *others, _CATALOG_STAGE),
        installs=(*(f"bin/{name}" for name in names), "lib/plpgsql.so", "lib/dict_snowball.so", *DATA),
        commands=whole.commands - SLIM_COMMANDS,
        slim_programs=names,
        takes_answers=True,
    )


def release_of(text: str) -> str:
    """Return the release (`18.6`, `19devel`, `18rc1`) that `text`, the contents of VERSION_FILE, names.

    Raises RecipeError if it names none.
    """
    match = re.search(r"^PACKAGE_VERSION='([0-9][0-9A-Za-z.]*)'", text, re.MULTILINE)
    if match is None:
        raise RecipeError(
            "the source names no Postgres release: PACKAGE_VERSION is missing", where=VERSION_FILE
        )
    return match[1]


def configure_words(choices: BuildChoices, flags: str) -> tuple[str, ...]:
    """Return the words that configure takes for the choices of a variant; later ones replace earlier ones.

    `flags` are the recipe's own compiler flags, after which those of the variant come.
    """
    compiled = (f"CFLAGS={flags} {choices.flags}",) if choices.flags else ()
    linked = (f"LDFLAGS={choices.linker_flags}",) if choices.linker_flags else ()
    return (*compiled, *linked, *choices.options)


def _flags(row: VersionRange, has_library: Callable[[str], bool]) -> tuple[str, ...]:
    return (*row.flags, *(flag for library, flag in row.optional if has_library(library)))


def _stages(flags: Sequence[str], folders: Sequence[str]) -> tuple[Stage, ...]:
    configure = ("./configure", f"--prefix={PREFIX}", "CC={compiler}", *flags)
    compiles = [_compile(folder) for folder in folders]
    # Without -j, because the install targets of src/backend and src/include create the same folders.
    installs = [
        Stage(f"install {folder}", ("make", _RPATH, "-C", folder, "install", "DESTDIR={staging}"))
        for folder in folders
    ]
    return (Stage(CONFIGURE, configure), *compiles, *installs)


def _compile(folder: str) -> Stage:
    return Stage(f"compile {folder}", ("make", "-j{jobs}", _RPATH, "-C", folder, "all"))

"""Recipes for MariaDB: a table with one row per range of versions that are configured alike."""

from collections.abc import Callable

from build.recipes.recipe import (
    CONFIGURE,
    Recipe,
    ServerLink,
    Stage,
    VersionRange,
    range_of,
    release_in,
    words_of_cmake,
)
from build.version import Engine

VERSION_FILE = "VERSION"
"""The file in a source tree that names its release."""

PROGRAMS: tuple[str, ...] = ("mariadbd", "mariadb", "my_print_defaults")
"""The server, the client program, and what the script that creates a data directory needs."""

INSTALL_DB = "scripts/mariadb-install-db"
"""The script that creates a data directory, relative to the prefix."""

TARGETS = (*PROGRAMS, "GenError")
"""GenError makes the message file that the server needs."""

PREFIX = "/usr/local/tidemark/mariadb"

_BUILD = "{source}/tidemark-build"

LINK: ServerLink | None = ServerLink(f"{_BUILD}/sql/mariadbd", ("ninja", "-C", _BUILD, "mariadbd"))

TLS_OPTIONS: tuple[str, ...] = ()

# As for MySQL: the symbol table suffices for perf to name functions.
CFLAGS = "-O2 -g0 -fno-omit-frame-pointer -DNDEBUG"

# Engines and plugins that no suite uses. Those that would be modules of their own are not among the targets
# anyway, but configuring them takes time and looks for their libraries.
_WITHOUT_PLUGINS = (
    *("ARCHIVE", "BLACKHOLE", "COLUMNSTORE", "CONNECT", "EXAMPLE", "FEDERATED", "FEDERATEDX", "MROONGA"),
    *("OQGRAPH", "ROCKSDB", "S3", "SPHINX", "SPIDER", "FEEDBACK"),
)

_COMMON = (
    *("-G", "Ninja", "-S", "{source}", "-B", _BUILD),
    *("-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_CXX_COMPILER=g++", f"-DCMAKE_INSTALL_PREFIX={PREFIX}"),
    *("-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={CFLAGS}"),
    f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={CFLAGS}",
    # Otherwise PCRE2 and fmt would be downloaded during the compile, and nothing would pin them.
    *("-DWITH_SSL=system", "-DWITH_ZLIB=system", "-DWITH_PCRE=system", "-DWITH_LIBFMT=system"),
    *(f"-DWITH_{part}=OFF" for part in ("WSREP", "UNIT_TESTS", "EMBEDDED_SERVER")),
    *("-DWITH_SYSTEMD=no", "-DWITH_NUMA=ON", "-DUPDATE_SUBMODULES=OFF"),
    # The same asynchronous I/O in every release, and the one of MySQL: with liburing on the host, 10.11 would
    # use io_uring alone, and 11.8 decide at the start of the server.
    *("-DWITH_LIBAIO=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_URING=ON"),
    *(f"-DPLUGIN_{plugin}=NO" for plugin in _WITHOUT_PLUGINS),
)

# CMake's own rules want every program and plugin compiled.
_INSTALL = """set -e
into="{staging}$1"; built="{source}/tidemark-build"
mkdir -p "$into/bin" "$into/scripts" "$into/lib/plugin" "$into/share"
cp "$built/sql/mariadbd" "$built/client/mariadb" "$built/extra/my_print_defaults" "$into/bin/"
cp "$built/scripts/mariadb-install-db" "$into/scripts/"
cp "{source}"/scripts/*.sql "$into/share/"
cp "$built"/scripts/*.sql "$into/share/"
cp -R "{source}/sql/share/charsets" "$into/share/"
cp -R "$built/sql/share/english" "$into/share/"
cp "{source}/COPYING" "$into/"
"""

# CMake ignores a flag that a version does not know.
TABLE = (VersionRange((10, 11), (), 940),)


def recipe(release: str, has_library: Callable[[str], bool]) -> Recipe:
    """Return the recipe of a release (`11.8.6`).

    Raises RecipeError if the release is older than the first row of the table.
    """
    del has_library  # Every library is required: a build depends on no optional one.
    row = range_of(Engine.MARIADB, release, TABLE)
    return Recipe(
        engine=Engine.MARIADB,
        release=release,
        stages=(
            Stage(CONFIGURE, ("cmake", *_COMMON, *row.flags)),
            Stage("compile", ("ninja", "-C", _BUILD, "-j", "{jobs}", *TARGETS)),
            Stage("install", ("sh", "-c", _INSTALL, "install", PREFIX)),
        ),
        flags=CFLAGS,
        environment={},
        prefix=PREFIX,
        installs=(
            *(f"bin/{program}" for program in PROGRAMS),
            INSTALL_DB,
            "share/english/errmsg.sys",
            "share/fill_help_tables.sql",
        ),
        counted=r"^\[\d+/(?P<total>\d{1,6})\]",
        commands=row.commands,
        scratch_bytes=4_000_000_000,
    )


slim_recipe = None
"""The server is nearly all of a build, and compiling it without the clients has not been tried."""

configure_words = words_of_cmake


def release_of(text: str) -> str:
    """Return the release (`11.8.6`) that `text`, the contents of VERSION_FILE, names.

    Raises RecipeError if it names none.
    """
    return release_in(text, "MariaDB", VERSION_FILE)

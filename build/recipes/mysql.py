"""Recipes for MySQL: a table with one row per range of versions that are configured alike."""

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

VERSION_FILE = "MYSQL_VERSION"
"""The file in a source tree that names its release; before 8.0.28 the file is called VERSION."""

PROGRAMS: tuple[str, ...] = ("mysqld", "mysql", "mysqladmin", "mysqldump")
TARGETS = (*PROGRAMS, "mysqlclient", "GenError")
"""The server, the client programs, the client library, and the message file that the server needs."""

PREFIX = "/usr/local/tidemark/mysql"

LINK: ServerLink | None = None
"""Linking the server once more has not been tried."""

TLS_OPTIONS: tuple[str, ...] = ()

# The symbol table suffices for perf to name functions. Debug information would double an hour of compiling.
CFLAGS = "-O2 -g0 -fno-omit-frame-pointer -DNDEBUG"

_WITHOUT = ("UNIT_TESTS", "ROUTER", "MYSQLX", "NDB", "GROUP_REPLICATION", "LTO")
# Unless it has an option of its own, the NDB client is linked into the server: 300 of 2,700 targets.
_WITHOUT_NDB_CLIENT = "-DWITH_NDBCLUSTER_STORAGE_ENGINE=OFF"
_WITHOUT_LOGIN = ("AUTHENTICATION_LDAP", "AUTHENTICATION_KERBEROS", "AUTHENTICATION_WEBAUTHN")

_COMMON = (
    *("-G", "Ninja", "-S", "{source}", "-B", "{source}/tidemark-build"),
    *("-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_CXX_COMPILER=g++", f"-DCMAKE_INSTALL_PREFIX={PREFIX}"),
    *("-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={CFLAGS}"),
    f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={CFLAGS}",
    *("-DWITH_SSL=system", "-DWITH_CURL=none"),
    *(f"-DWITH_{part}=OFF" for part in (*_WITHOUT, *_WITHOUT_LOGIN)),
    # Programs find their libraries by a relative path, wherever the install tree is.
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
)
# Programs look for libraries in ../library_output_directory, as in the build tree in which they were linked.
_INSTALL = """set -e
into="{staging}$1"; built="{source}/tidemark-build"; shift
mkdir -p "$into/bin" "$into/lib/private" "$into/lib/plugin" "$into/share"
for program; do cp "$built/runtime_output_directory/$program" "$into/bin/"; done
ln -s lib/private "$into/library_output_directory"
find "$built/library_output_directory" -maxdepth 1 -name '*.so*' -exec cp -P {} "$into/lib/private/" ';'
find "$built/archive_output_directory" -maxdepth 1 -name 'libmysqlclient.a' -exec cp {} "$into/lib/" ';'
cp -R "{source}/share/charsets" "$into/share/"
cp "{source}"/share/*.txt "{source}"/share/*.sql "$into/share/" 2>/dev/null || true
cp -R "$built/share/english" "$into/share/"
cp "{source}/LICENSE" "$into/"
"""


# CMake ignores a flag that a version does not know.
TABLE = (
    # The tarball that includes Boost (mysql-boost-*) has it in boost/. 5.7 cannot be compiled with OpenSSL 3,
    # only with OpenSSL 1.1.
    VersionRange(
        (5, 7), ("-DWITH_BOOST={source}/boost", "-DWITH_RAPID=OFF", "-DWITH_EMBEDDED_SERVER=OFF"), 1600
    ),
    VersionRange((8, 0), ("-DWITH_BOOST={source}/boost", "-DWITH_NDBCLUSTER=OFF", _WITHOUT_NDB_CLIENT), 2400),
    # From 8.3 on, Boost is part of the source.
    VersionRange((8, 3), (_WITHOUT_NDB_CLIENT,), 2300),
    VersionRange((9, 0), (_WITHOUT_NDB_CLIENT,), 2400),
)


def recipe(release: str, has_library: Callable[[str], bool]) -> Recipe:
    """Return the recipe of a release (`9.7.2`).

    Raises RecipeError if the release is older than the first row of the table.
    """
    del has_library  # Every library except OpenSSL is part of the source.
    row = range_of(Engine.MYSQL, release, TABLE)
    build = "{source}/tidemark-build"
    return Recipe(
        engine=Engine.MYSQL,
        release=release,
        stages=(
            Stage(CONFIGURE, ("cmake", *_COMMON, *row.flags)),
            Stage("compile", ("ninja", "-C", build, "-j", "{jobs}", *TARGETS)),
            Stage("install", ("sh", "-c", _INSTALL, "install", PREFIX, *PROGRAMS)),
        ),
        flags=CFLAGS,
        environment={},
        prefix=PREFIX,
        installs=(
            *(f"bin/{program}" for program in PROGRAMS),
            "share/english/errmsg.sys",
            "lib/libmysqlclient.a",
        ),
        counted=r"^\[\d+/(?P<total>\d{1,6})\]",
        commands=row.commands,
        scratch_bytes=8_000_000_000,
    )


slim_recipe = None
"""The server is nearly all of a build, and compiling it without the clients has not been tried."""

configure_words = words_of_cmake


def release_of(text: str) -> str:
    """Return the release (`9.7.2`) that `text`, the contents of VERSION_FILE, names.

    Raises RecipeError if it names none.
    """
    return release_in(text, "MySQL", VERSION_FILE)

"""How MySQL is compiled: one table, a row per range of versions that differ."""

import re
from collections.abc import Callable

from build.recipes.recipe import Recipe, RecipeError, Stage, VersionRange, range_of
from build.version import Engine

VERSION_FILE = "MYSQL_VERSION"
"""The file of a source tree that says which release it is; before 8.0.28 it is called VERSION."""

PROGRAMS: tuple[str, ...] = ("mysqld", "mysql", "mysqladmin", "mysqldump")
TARGETS = (*PROGRAMS, "mysqlclient", "GenError")
"""The server, the client programs, the client library, and the messages the server reads at its start."""

PREFIX = "/usr/local/tidemark/mysql"

# The symbol table names functions for perf. Debug information would double the time of an hour's compile.
CFLAGS = "-O2 -g0 -fno-omit-frame-pointer -DNDEBUG"

_WITHOUT = ("UNIT_TESTS", "ROUTER", "MYSQLX", "NDB", "GROUP_REPLICATION", "LTO")
# The client of NDB is linked into the server unless it is refused by its own name: 300 of 2,700 targets.
_WITHOUT_NDB_CLIENT = "-DWITH_NDBCLUSTER_STORAGE_ENGINE=OFF"
_WITHOUT_LOGIN = ("AUTHENTICATION_LDAP", "AUTHENTICATION_KERBEROS", "AUTHENTICATION_WEBAUTHN")

_COMMON = (
    *("-G", "Ninja", "-S", "{source}", "-B", "{source}/tidemark-build"),
    *("-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_CXX_COMPILER=g++", f"-DCMAKE_INSTALL_PREFIX={PREFIX}"),
    *("-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={CFLAGS}"),
    f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={CFLAGS}",
    *("-DWITH_SSL=system", "-DWITH_CURL=none"),
    *(f"-DWITH_{part}=OFF" for part in (*_WITHOUT, *_WITHOUT_LOGIN)),
    # Programs find the libraries beside them, wherever the tree lies.
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
)
# Programs look for libraries in ../library_output_directory, as in the tree they were linked in.
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


# A flag that a version does not know is ignored by cmake.
TABLE = (
    # The tarball with boost (mysql-boost-*) holds it in boost/. OpenSSL 3 is too new for 5.7: it needs a
    # machine with OpenSSL 1.1.
    VersionRange(
        (5, 7), ("-DWITH_BOOST={source}/boost", "-DWITH_RAPID=OFF", "-DWITH_EMBEDDED_SERVER=OFF"), 1600
    ),
    VersionRange((8, 0), ("-DWITH_BOOST={source}/boost", "-DWITH_NDBCLUSTER=OFF", _WITHOUT_NDB_CLIENT), 2400),
    # Boost comes with the source from 8.3 on.
    VersionRange((8, 3), (_WITHOUT_NDB_CLIENT,), 2300),
    VersionRange((9, 0), (_WITHOUT_NDB_CLIENT,), 2400),
)


def recipe(release: str, has_library: Callable[[str], bool]) -> Recipe:
    """The recipe of a release (`9.7.2`).

    Raises RecipeError when the release is older than the table.
    """
    del has_library  # every library beside OpenSSL comes with the source
    row = range_of(Engine.MYSQL, release, TABLE)
    build = "{source}/tidemark-build"
    return Recipe(
        engine=Engine.MYSQL,
        release=release,
        stages=(
            Stage("configure", ("cmake", *_COMMON, *row.flags)),
            Stage("compile", ("ninja", "-C", build, "-j", "{jobs}", *TARGETS)),
            Stage("install", ("sh", "-c", _INSTALL, "install", PREFIX, *PROGRAMS)),
        ),
        environment={},
        prefix=PREFIX,
        installs=(
            *(f"bin/{program}" for program in PROGRAMS),
            "share/english/errmsg.sys",
            "lib/libmysqlclient.a",
        ),
        counted=r"^\[\d+/\d+\]",
        commands=row.commands,
        scratch_bytes=8_000_000_000,
    )


def release_of(text: str) -> str:
    """The release that a source tree's `VERSION_FILE` names: `9.7.2`."""
    numbers = []
    for part in ("MAJOR", "MINOR", "PATCH"):
        found = re.search(rf"^MYSQL_VERSION_{part}=(\d+)\s*$", text, re.MULTILINE)
        if found is None:
            raise RecipeError("the source does not say which MySQL it is", where=VERSION_FILE)
        numbers.append(found[1])
    return ".".join(numbers)

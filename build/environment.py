"""The environment variables of the programs that compile, that are measured, and that measure.

An allow-list (docs/decisions/0057-allowed-variables.md): whatever else the caller has set, such as PGOPTIONS,
LD_PRELOAD or a password, would change results without being recorded, or could be read by the commit that is
measured. Git and downloads keep the caller's variables: they need proxies and credentials.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

MEASURED = ("PATH", "TIDEMARK_BURN_NS")
"""What servers, load generators, companions and profilers get of the caller's variables.

The second is read only by builds with the planted patch of the benchmarks.
"""

COMPILING = ("PATH", "CCACHE_DIR", "CCACHE_MAXSIZE")
"""What a compile gets of them: nothing that could change the binaries without changing the build key."""

NO_HOME = "/nonexistent"
"""The home of all these programs, so that nobody's dotfiles are read: ~/.my.cnf, ~/.perfconfig."""

NO_GIT_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""With these git reads neither a person's settings nor those of the machine, which change line ends in a
source tree, and what patches apply to it."""

_FIXED_WHEN_MEASURED = {"HOME": NO_HOME, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
_FIXED_WHEN_COMPILING = {"HOME": NO_HOME, "LC_ALL": "C", "TZ": "UTC", **NO_GIT_SETTINGS}

_READ_BY_TIDEMARK = re.compile(r"TIDEMARK_\w+|CC")
"""Variables that are not passed on because Tidemark itself does what they say."""

_NOTABLE = re.compile(
    r"PG\w+|MYSQL_\w+|MARIADB_\w+|LIBMYSQL\w+|LUA_\w+|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|CCACHE_\w+|[A-Z]*FLAGS"
    r"|CXX|CPATH|LIBRARY_PATH|[A-Z_]+_INCLUDE_PATH|GCC_\w+|COMPILER_PATH|CMAKE_\w+|PKG_CONFIG_\w+|PERL5\w+"
)
"""Variables that these programs would obey: whoever sets one is told that it has no effect."""

CREDENTIALS = re.compile(r"\w+_TOKEN|TIDEMARK_NOTIFY_\w+")
"""Variables with what the report needs to tell people: no process that measures or compiles ever has them."""

_OF_WHOLE_PROCESS = re.compile(rf"PGSERVICE|PGTZ|PGDATESTYLE|PGGEQO|{CREDENTIALS.pattern}")

_set_aside: dict[str, str] = {}


def measured(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a program that is measured, or that measures, with `more` of its own."""
    return {**_of_caller(MEASURED), **_FIXED_WHEN_MEASURED, **(more or {})}


def compiling(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a compile, with `more` of its own."""
    return {**_of_caller(COMPILING), **_FIXED_WHEN_COMPILING, **(more or {})}


def left_out(allowed: Collection[str]) -> list[str]:
    """Return the names of the caller's variables, in order, that are not among the `allowed` ones."""
    names = {*os.environ, *_set_aside}
    return sorted(name for name in names - {*allowed} if not _READ_BY_TIDEMARK.fullmatch(name))


def without_effect(names: Collection[str]) -> list[str]:
    """Return those of the `names` that were left out which the programs would otherwise obey."""
    return [name for name in names if _NOTABLE.fullmatch(name)]


@contextmanager
def kept_from_process() -> Iterator[None]:
    """Keep variables out of this process, and of what it starts, that no argument can override.

    libpq applies them to every connection, also to measured servers; `caller_value` returns what they were.
    Tokens and URLs of routes are among them: neither git nor a program that it starts needs one.
    """
    names = [name for name in os.environ if _OF_WHOLE_PROCESS.fullmatch(name)]
    _set_aside.update({name: os.environ.pop(name) for name in names})
    try:
        yield
    finally:
        os.environ.update({name: _set_aside.pop(name) for name in names})


def of_caller() -> dict[str, str]:
    """Return all variables as the caller has set them."""
    return {**os.environ, **_set_aside}


def caller_value(name: str) -> str | None:
    """Return the value of a variable as the caller has set it; None if it is not set."""
    return _set_aside.get(name) or os.environ.get(name)


def _of_caller(names: Collection[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}

"""What initdb is told about a new data directory beside what every one gets, as a variant chooses.

Sizes of segments, checksums and collation are decided when a data directory is made, and never after that, so
that they are no settings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from build.engines import ENGINES
from build.errors import TidemarkError, did_you_mean
from build.version import Engine

CHECKSUMS = "checksums"
SEGMENT = "wal-segsize"

SEGMENTS_OF_LIMIT = 2
"""The segments that min_wal_size and max_wal_size hold at least (check_wal_size in xlog.c)."""


class InitdbError(TidemarkError):
    """An option of initdb or its value does not exist here, or an engine has no initdb."""


@dataclass(frozen=True)
class InitdbOption:
    """The values that an option can have."""

    pattern: re.Pattern[str]
    described: str
    """The values in words."""


_LOCALE = InitdbOption(re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,79}"), "the name of a locale")

OPTIONS: Mapping[str, InitdbOption] = {
    SEGMENT: InitdbOption(
        re.compile("1|2|4|8|16|32|64|128|256|512|1024"), "megabytes, a power of 2 from 1 to 1024"
    ),
    CHECKSUMS: InitdbOption(re.compile("on|off"), "on or off"),
    "locale": _LOCALE,
    "locale-provider": InitdbOption(re.compile("libc|icu|builtin"), "libc, icu or builtin"),
    "icu-locale": _LOCALE,
    "builtin-locale": _LOCALE,
}
"""Every option that can be chosen: as initdb calls it, but for checksums, which are on by default."""

EVERY: Mapping[str, str] = {CHECKSUMS: "on", "locale": "C"}
"""What every data directory gets that does not choose otherwise."""


def require_option(name: str, value: str) -> None:
    """Raise InitdbError unless there is an option `name` that can have this value."""
    if name not in OPTIONS:
        meant = did_you_mean(name[:40], OPTIONS)
        raise InitdbError(
            f"there is no option '{name[:40]}'",
            where="initdb",
            hint=f"{meant} the options are: {', '.join(OPTIONS)}".strip(),
        )
    if not OPTIONS[name].pattern.fullmatch(value):
        raise InitdbError(
            f"{name} cannot be '{value[:40]}'", where="initdb", hint=f"write {OPTIONS[name].described}"
        )


def require_initdb(chosen: Mapping[str, str], engine: Engine, wal_limit_bytes: int) -> None:
    """Raise InitdbError unless servers of an engine can have these options, with so much WAL at most."""
    if chosen and engine is not Engine.POSTGRES:
        raise InitdbError(
            f"{ENGINES[engine].title} has no initdb",
            where="initdb",
            hint="define a variant of Postgres with it",
        )
    least = SEGMENTS_OF_LIMIT * int(chosen.get(SEGMENT, "0")) * 1024**2
    if least > wal_limit_bytes:
        raise InitdbError(
            f"the WAL of a server here is {wal_limit_bytes // 1024**2} MB, which holds no "
            f"{SEGMENTS_OF_LIMIT} segments of {chosen[SEGMENT]} MB",
            where=f"initdb {SEGMENT}={chosen[SEGMENT]}",
            hint="choose smaller segments, or a larger profile",
        )

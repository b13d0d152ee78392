"""Servers that the user has installed: an install prefix as a build, identified by its content."""

import contextlib
import hashlib
import json
import mmap
import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build import accounts, environment, host
from build.engines import ENGINES, EngineRegistry
from build.errors import TidemarkError
from build.files import json_value, make_folder, write_atomically
from build.finished_build import Build
from build.home import ROOT, Home, user_name
from build.version import INSTALL_DIGITS, Engine, Version, parse_revision

FOLDERS = ("bin", "sbin", "libexec", "lib", "lib64", "share")
"""The folders of a prefix with programs, libraries, and what servers read; headers have one of their own."""

_NEVER_READ = (".a", ".la", ".o", ".pc", ".pyc")
_MANUALS = frozenset({"doc", "man", "info"})

INSTALL = "install"
"""The kind of source of a build that says itself what it is."""

MAX_FILES = 20_000
"""The most files of an installation: MySQL with everything has some thousands, /usr far more."""


SECONDS = 60.0
"""The time in which a program has to say its version; a server under a sanitizer takes seconds."""

_RUNS_HERE = (
    "its programs must run on this machine: compile them here, or on one that is like it and no newer"
)

_COMPILER = re.compile(rb"(?:GCC: \([^)\x00]{1,80}\) [0-9.]+|[A-Za-z ]{0,40}clang version [0-9.]+)")


class PrefixError(TidemarkError):
    """A folder is no install prefix that can be measured."""


def digest_of(prefix: Path, engine: Engine) -> str:
    """Return the hex SHA-256 of the installed files by name and content. Raises PrefixError."""
    whole = hashlib.sha256(f"install of {engine}\n".encode())
    try:
        for path in sorted(files_of(prefix)):
            with path.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
            name = os.fsencode(path.relative_to(prefix)).hex()
            whole.update(f"{name} {content}\n".encode())
    except OSError as error:
        raise _unreadable(prefix, error) from error
    return whole.hexdigest()


def stamp_of(prefix: Path) -> str:
    """Return a digest of sizes, times and inodes: while it is the same, no file was written or replaced.

    It takes milliseconds, where reading all files takes up to seconds. Raises PrefixError.
    """
    whole = hashlib.sha256()
    try:
        for path in sorted(files_of(prefix)):
            entry = path.stat()
            whole.update(
                f"{path} {entry.st_size} {entry.st_mtime_ns} {entry.st_ino}\n".encode("utf-8", "replace")
            )
    except OSError as error:
        raise _unreadable(prefix, error) from error
    return whole.hexdigest()


def require_not_open_to_all(prefix: Path) -> None:
    """Raise PrefixError if everybody may replace or write to what servers run and read of an install."""
    way = [prefix, *prefix.parents, *prefix.resolve().parents]
    folders = [Path(where) for name in FOLDERS for where, _, _ in os.walk(prefix / name)]
    for path in (*way, *folders, *files_of(prefix)):
        mode = path.stat().st_mode
        # In a folder such as /tmp, the sticky bit keeps others from replacing what they do not own.
        is_shared = path in way[1:] and mode & stat.S_ISVTX
        if mode & stat.S_IWOTH and not is_shared:
            raise PrefixError(
                f"the install prefix {prefix} is not used: everybody may write to {path}",
                where=str(path),
                hint=f"install it again if it may have been changed; chmod -R o-w {shlex.quote(str(path))}",
            )


def files_of(prefix: Path) -> Iterator[Path]:
    """Yield the installed files, links to files included, in no order. Raises PrefixError and OSError."""
    count = 0
    for folder in FOLDERS:
        for where, folders, names in os.walk(prefix / folder, onerror=_fail):
            folders[:] = [name for name in folders if name not in _MANUALS]
            for name in names:
                path = Path(where, name)
                if name.endswith(_NEVER_READ) or not path.is_file():
                    continue
                count += 1
                if count > MAX_FILES:
                    raise PrefixError(
                        f"{prefix} has more than {MAX_FILES} files, and is no prefix of one server alone",
                        hint="install the server into a folder of its own, with --prefix or DESTDIR",
                    )
                yield path


def _fail(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _unreadable(prefix: Path, error: OSError) -> PrefixError:
    return PrefixError(
        f"the install prefix {prefix} cannot be read: {error.strerror}",
        where=str(error.filename),
        hint="its programs and libraries must be readable for everybody: chmod -R o+rX",
    )


_PG_CONFIG = {"CONFIGURE": "configure", "CC": "cc", "CFLAGS": "cflags", "LDFLAGS": "ldflags"}


def _pg_config(prefix: Path) -> Mapping[str, str]:
    try:
        lines = said_with(prefix / "bin" / "pg_config").splitlines()
    except PrefixError:
        return {}
    values = {name: value for name, equals, value in (line.partition(" = ") for line in lines) if equals}
    return {key: values[name].strip() for name, key in _PG_CONFIG.items() if values.get(name, "").strip()}


def _info_bin(prefix: Path) -> Mapping[str, str]:
    # What `make install` of MySQL and MariaDB leaves in the documentation.
    for name in ("docs/INFO_BIN", "share/doc/INFO_BIN"):
        with contextlib.suppress(OSError):
            text = (prefix / name).read_text(errors="replace")
            return {"info_bin": text[:8000]}
    return {}


def said_with(*command: str | Path) -> str:
    """Return what an installed program prints, started as servers are: by the user that runs them.

    Raises PrefixError if it fails or takes too long, AccountError if that user has no access to it.
    """
    account = accounts.server_account()
    try:
        done = subprocess.run(
            [*accounts.become(account), *command],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
            env=environment.measured(),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrefixError(f"{command[0]} cannot be started: {error}", hint=_RUNS_HERE) from error
    if done.returncode != 0:
        accounts.require_access(account, Path(command[0]).parent)
        raise PrefixError(f"{command[0]} cannot be started: {done.stderr.strip()[:300]}", hint=_RUNS_HERE)
    return done.stdout


@dataclass(frozen=True)
class InstalledKind:
    """How the programs of one engine are recognised."""

    programs: tuple[str, ...]
    """The programs in `bin/` without which no server can be initialized and started, the server first."""

    number: re.Pattern[str]
    """Matches what the server says with --version; its group is the number."""

    options: Callable[[Path], Mapping[str, str]]
    """Returns how a prefix was configured and compiled; empty where nothing can be read."""


INSTALLED = EngineRegistry(
    "kind of install",
    __name__,
    {
        Engine.POSTGRES: InstalledKind(
            ("postgres", "initdb"), re.compile(r"\(PostgreSQL\) ([0-9][0-9A-Za-z.]*)"), _pg_config
        ),
        Engine.MYSQL: InstalledKind(
            ("mysqld",), re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+)(?!\S*MariaDB)(?![0-9.])"), _info_bin
        ),
        Engine.MARIADB: InstalledKind(
            ("mariadbd",), re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+)\S*MariaDB"), _info_bin
        ),
    },
)


def engine_in(prefix: Path) -> Engine | None:
    """Return the engine whose server a prefix has; None without one. That of MariaDB may have two names."""
    return next((engine for engine in reversed(Engine) if not _missing(prefix, engine)), None)


def _missing(prefix: Path, engine: Engine) -> list[str]:
    return [name for name in INSTALLED[engine].programs if not (prefix / "bin" / name).is_file()]


def _require_programs(prefix: Path, engine: Engine) -> None:
    if not prefix.is_dir():
        raise PrefixError(f"there is no folder {prefix}", hint="name the folder that has bin/ in it")
    for name in _missing(prefix, engine):
        raise PrefixError(
            f"{prefix} is no install prefix of {ENGINES[engine].title}: it has no bin/{name}",
            hint=f"name the folder that has bin/{name} in it, after `make install` or `cmake --install`",
        )


def _said_by(prefix: Path, engine: Engine) -> tuple[str, str]:
    """Return the number of the installed server, and all that it says with --version. Raises PrefixError."""
    server = prefix / "bin" / INSTALLED[engine].programs[0]
    said = said_with(server, "--version")
    number = INSTALLED[engine].number.search(said)
    if number is None:
        raise PrefixError(
            f"{server} says that it is '{said.strip()[:120]}', not which {ENGINES[engine].title} it is",
            hint=f"name it by its own engine: {', '.join(Engine)}",
        )
    return number[1].rstrip("."), said.strip().replace(f"{server.parent}/", "")


def _compiler_of(server: Path) -> str:
    """Return the compiler that left its name in a program: `GCC: (Debian 12.2.0-14) 12.2.0`; else ''."""
    with (
        contextlib.suppress(OSError, ValueError),
        server.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        found = _COMPILER.search(content)
        return found[0].decode("ascii", "replace").strip() if found else ""
    return ""


def read_install(prefix: Path, named: Version) -> Build:
    """Return the build that is installed in a folder; its version has the name of `named` and the digest.

    Raises PrefixError if it is no install prefix of that engine whose server runs here.
    """
    from build.manifest import manifest_of  # needs a package, and command lines are parsed without any

    _require_programs(prefix, named.engine)
    require_not_open_to_all(prefix)
    stamp = stamp_of(prefix)
    described = described_install(prefix, named.engine)
    if stamp_of(prefix) != stamp:
        raise PrefixError(
            f"{prefix} changes while it is read", hint="wait until it is installed, and start again"
        )
    key, release = described["key"], described["release"]
    version = replace(named, ref=f"{named.install_name}={key[:INSTALL_DIGITS]}")
    source = {"kind": INSTALL, "location": str(prefix), "digest": f"sha256:{key}"}
    manifest = manifest_of({**described, "version": str(version.plain), "source": source})
    return Build(version, release, key, prefix, manifest, stamp)


def described_install(prefix: Path, engine: Engine) -> dict[str, Any]:
    """Return what a manifest records of an install, without version and source; its server is asked.

    Raises PrefixError if the server does not run here, or is of another engine.
    """
    release, said = _said_by(prefix, engine)
    server = prefix / "bin" / INSTALLED[engine].programs[0]
    return {
        "format": 1,
        "key": digest_of(prefix, engine),
        "engine": str(engine),
        "release": release,
        "recipe": {"says": said, **INSTALLED[engine].options(prefix)},
        "patches": [],
        "compiler": {"command": "", "version": _compiler_of(server), "target": ""},
        "host": {
            "os": host.os_name(),
            "architecture": host.architecture(),
            "glibc": host.glibc_version(),
        },
        "built_at": datetime.fromtimestamp(server.stat().st_mtime, UTC).isoformat(timespec="seconds"),
    }


def recorded_install(version: Version, home: Home) -> Build:
    """Return the install that a version names by path, or by the digest of an install that was read before.

    Its path is kept, so that the digest names it from now on. Raises PrefixError.
    """
    if "/" in version.installed:
        build = read_install(Path(version.installed), version)
        record = make_folder(home.installs) / f"{version.engine}-{build.key[:INSTALL_DIGITS]}.json"
        write_atomically(record, json.dumps({"prefix": str(build.prefix)}) + "\n")
        return build
    prefix = prefix_of(version, home)
    build = read_install(prefix, version)
    if build.version.plain != version.plain:
        raise PrefixError(
            f"{prefix} is not {version} any more: its programs have the digest {build.version.installed}",
            hint=f"name it by its path to measure what is there now: "
            f"{version.engine}@{version.install_name}={prefix}",
        )
    return build


def owned_by_others(build: Build) -> str:
    """Return who may change an install besides root and this user, as a sentence; '' if nobody may."""
    trusted = {0, os.geteuid(), ROOT.stat().st_uid}
    folders = (build.prefix, build.prefix / "bin", build.program(INSTALLED[build.version.engine].programs[0]))
    owners = {path.stat().st_uid for path in folders} - trusted
    names = ", ".join(sorted(map(user_name, owners)))
    return f"{build.prefix} belongs to {names}, who may change it while it is measured" if names else ""


def prefix_of(version: Version, home: Home) -> Path:
    """Return the path of an install that `recorded_install` has read before. Raises PrefixError."""
    try:
        record = home.installs / f"{version.engine}-{version.installed}.json"
        return Path(json_value(record.read_text(encoding="utf-8"))["prefix"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PrefixError(
            f"no install prefix with the digest {version.installed} was read on this machine",
            hint=f"name it by its path: {version.engine}@{version.install_name}=/PATH",
        ) from error


def recorded_version(text: str) -> Version:
    """Return the version that `text` names, and for the path of an install prefix what the history has.

    Raises VersionError and PrefixError.
    """
    version = parse_revision(text)
    if "/" not in version.installed:
        return version
    return read_install(Path(version.installed), version).version


def require_unchanged(build: Build) -> None:
    """Raise PrefixError if what is installed in the prefix of a build is not what it was; others pass."""
    if not build.stamp or stamp_of(build.prefix) == build.stamp:
        return
    found = digest_of(build.prefix, build.version.engine)
    if found != build.key:
        raise PrefixError(
            f"{build.prefix} has changed: it was {build.version}, now it is {found[:INSTALL_DIGITS]}",
            hint="install each build into a folder of its own, and measure again",
        )

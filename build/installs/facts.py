"""What installed programs say of themselves: their number, how they were compiled, for which machine."""

import contextlib
import mmap
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from build.engines import ENGINES, EngineRegistry
from build.installs.content import PrefixError
from build.programs import accounts, environment
from build.version import Engine

SECONDS = 60.0
"""The time in which a program has to say its version; a server under a sanitizer takes seconds."""


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
        raise PrefixError(f"{command[0]} cannot be started: {error}") from error
    if done.returncode != 0:
        accounts.require_access(account, Path(command[0]).parent)
        raise PrefixError(f"{command[0]} cannot be started: {done.stderr.strip()[:300]}")
    return done.stdout


@dataclass(frozen=True)
class InstalledKind:
    """How the programs of one engine are recognised."""

    programs: tuple[str, ...]
    """The programs in `bin/` without which no server can be initialized and started, the server first."""

    number: re.Pattern[str]
    """Matches what the server says with --version; its group is the number."""

    build_tree: tuple[str, ...]
    """Where the server lies in a build tree that was not installed."""

    options: Callable[[Path], Mapping[str, str]]
    """Returns how a prefix was configured and compiled, as far as it is known."""


KINDS = EngineRegistry(
    "kind of install",
    __name__,
    {
        Engine.POSTGRES: InstalledKind(
            ("postgres", "initdb"),
            re.compile(r"\(PostgreSQL\) ([0-9][0-9A-Za-z.]*)"),
            ("src/backend/postgres",),
            _pg_config,
        ),
        Engine.MYSQL: InstalledKind(
            ("mysqld",),
            re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+)(?!\S*MariaDB)(?![0-9.])"),
            ("runtime_output_directory/mysqld", "sql/mysqld"),
            _info_bin,
        ),
        Engine.MARIADB: InstalledKind(
            ("mariadbd",), re.compile(r"Ver ([0-9]+(?:\.[0-9]+)+)\S*MariaDB"), ("sql/mariadbd",), _info_bin
        ),
    },
)

_MACHINES = {3: "i386", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "s390x", 40: "ARM", 62: "x86_64"} | {
    183: "aarch64", 243: "RISC-V", 258: "LoongArch"
}  # fmt: skip
"""Architectures by their number in the header of an ELF file."""

_COMPILER = re.compile(rb"(?:GCC: \([^)\x00]{1,80}\) [0-9.]+|[A-Za-z ]{0,40}clang version [0-9.]+)")


def require_programs(prefix: Path, engine: Engine) -> None:
    """Raise PrefixError unless a prefix has the server programs of an engine, for this machine."""
    kind, title = KINDS[engine], ENGINES[engine].title
    if not prefix.is_dir():
        raise PrefixError(f"there is no folder {prefix}", hint="name the folder that has bin/ in it")
    missing = [name for name in kind.programs if not (prefix / "bin" / name).is_file()]
    if missing:
        raise PrefixError(
            f"{prefix} is no install prefix of {title}: it has no bin/{missing[0]}",
            hint=_remedy(prefix, kind),
        )
    for name in kind.programs:
        _require_machine(prefix / "bin" / name)


def _remedy(prefix: Path, kind: InstalledKind) -> str:
    server = kind.programs[0]
    if (prefix / server).is_file():
        return f"name the folder above it: {prefix.parent}"
    if any((prefix / name).is_file() for name in kind.build_tree):
        return "it is a build tree: install it into a folder with `make install` or `cmake --install`"
    if (prefix / "sbin" / server).is_file():
        return f"it has sbin/{server}: install it in the layout of upstream, with all programs in bin/"
    return f"name the folder that has bin/{server} in it"


def _require_machine(program: Path) -> None:
    found, own = _elf_machine(program), _elf_machine(Path("/proc/self/exe"))
    if found is None:
        raise PrefixError(
            f"{program} is no program, but a script or something else",
            hint="a wrapper cannot be measured: install the programs themselves",
        )
    if own is not None and found != own:
        raise PrefixError(
            f"{program} is for another architecture: {_shown(found)}; this machine's is {_shown(own)}",
            hint="compile it on this machine, or measure it on one of its own architecture",
        )


def _elf_machine(program: Path) -> tuple[int, int, int] | None:
    """Return class, byte order and machine of an ELF file; None for anything else. Raises PrefixError."""
    try:
        with program.open("rb") as opened:
            header = opened.read(20)
    except OSError as error:
        raise PrefixError(f"{program} cannot be read: {error.strerror}", hint="chmod -R o+rX") from error
    if len(header) < 20 or header[:4] != b"\x7fELF" or header[4] not in (1, 2) or header[5] not in (1, 2):
        return None
    first, second = header[18:20] if header[5] == 2 else (header[19], header[18])
    return header[4], header[5], 256 * first + second


def _shown(elf: tuple[int, int, int]) -> str:
    bits, order, machine = elf
    name = _MACHINES.get(machine, f"ELF machine {machine}")
    return f"{name}, {32 * bits} bits, {'little' if order == 1 else 'big'} endian"


def said_by(prefix: Path, engine: Engine) -> tuple[str, str]:
    """Return the number of the installed server, and all that it says with --version. Raises PrefixError."""
    server = prefix / "bin" / KINDS[engine].programs[0]
    said = said_with(server, "--version")
    number = KINDS[engine].number.search(said)
    if number is None:
        raise PrefixError(
            f"{server} says that it is '{said.strip()[:120]}', not which {ENGINES[engine].title} it is",
            hint=f"name it by its own engine: {', '.join(Engine)}",
        )
    return number[1].rstrip("."), said.strip().replace(f"{server.parent}/", "")


def compile_options(prefix: Path, engine: Engine) -> Mapping[str, str]:
    """Return what is known of how an install was configured and compiled; empty where nothing can be read."""
    return KINDS[engine].options(prefix)


def compiler_of(server: Path) -> str:
    """Return the compiler that left its name in a program: `GCC: (Debian 12.2.0-14) 12.2.0`; else ''."""
    with (
        contextlib.suppress(OSError, ValueError),
        server.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        found = _COMPILER.search(content)
        return found[0].decode("ascii", "replace").strip() if found else ""
    return ""

"""What the machine that compiles brings along: compiler, libraries, C library, cores."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from build.errors import TidemarkError


class HostError(TidemarkError):
    """This machine cannot compile."""


@dataclass(frozen=True)
class Compiler:
    """The C compiler."""

    command: str
    """As it is called: `gcc`, or what `$CC` says."""

    version: str
    """The line in which it names itself: `gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)`."""

    target: str
    """What it compiles for: `x86_64-linux-gnu`."""


@cache
def compiler() -> Compiler:
    """Ask the compiler who it is. Raises HostError when there is none."""
    command = os.environ.get("CC") or "gcc"
    if shutil.which(command) is None:
        raise HostError(
            f"the compiler '{command}' is missing",
            hint="install it (Debian: apt-get install gcc libc6-dev make), or import a build made elsewhere",
        )
    # -v tells version and target in one go, where --version and -dumpmachine would be two processes.
    told = subprocess.run([command, "-v"], capture_output=True, text=True, env=_plain(), check=False).stderr
    lines = [line.strip() for line in told.splitlines()]
    target = next((line.removeprefix("Target: ") for line in lines if line.startswith("Target: ")), "")
    version = next((line for line in lines if " version " in line), "")
    if not target or not version:
        raise HostError(f"'{command} -v' does not tell version and target", where=told[-500:])
    return Compiler(command, version, target)


@cache
def has_library(name: str) -> bool:
    """Whether pkg-config knows the library, so that configure scripts find it."""
    try:
        return subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0
    except FileNotFoundError:
        return False


def ccache_program() -> str | None:
    """The path of ccache; None when it is not installed or `TIDEMARK_NO_CCACHE` is set."""
    return None if os.environ.get("TIDEMARK_NO_CCACHE") else shutil.which("ccache")


def cores() -> int:
    """How many processes this one may run at once."""
    return len(os.sched_getaffinity(0))


def architecture() -> str:
    """The machine's architecture as in `x86_64`."""
    return os.uname().machine


def glibc_version() -> str:
    """The C library's version, as in `2.36`; `0` when it is not the GNU one."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0").removeprefix("glibc ")
    except ValueError:
        return "0"


def os_name() -> str:
    """The distribution as it names itself: `Debian GNU/Linux 12 (bookworm)`."""
    import platform

    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def compile_environment() -> dict[str, str]:
    """The environment compiles start from: what cannot change their result.

    A stray CFLAGS, LDFLAGS or MAKEFLAGS would change the binaries and leave the key as it is.
    """
    kept = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME")
    chosen = {name: value for name, value in os.environ.items() if name in kept or name.startswith("CCACHE_")}
    return {**chosen, "LC_ALL": "C", "TZ": "UTC"}


def _plain() -> Mapping[str, str]:
    return {**os.environ, "LC_ALL": "C"}

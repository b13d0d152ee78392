"""The machine that compiles: its compiler, libraries, C library and cores, and whether programs work."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from build import environment
from build.compile_commands import end_group
from build.control_groups import cpu_quota
from build.errors import TidemarkError

SECONDS = 30.0
"""Time limit of a program that is asked for its version."""

_SAMPLES, _SAMPLE_SECONDS = 10, 0.01


class HostError(TidemarkError):
    """This machine lacks something that compiling needs."""


@dataclass(frozen=True)
class Compiler:
    """The C compiler."""

    command: str
    """The command: `$CC`, or `gcc` if that is not set."""

    version: str
    """The version line of its output: `gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)`."""

    target: str
    """The platform that it compiles for: `x86_64-linux-gnu`."""


@cache
def compiler(chosen: str = "") -> Compiler:
    """Return the C compiler with its version and target; `chosen` is its command, empty for `$CC` or gcc.

    Raises HostError if there is none.
    """
    command = chosen or os.environ.get("CC") or "gcc"
    if shutil.which(command) is None:
        raise HostError(
            f"the compiler '{command}' is missing",
            hint=f"install it (Debian: apt-get install {chosen or 'gcc'} libc6-dev make), or import a build",
        )
    # -v prints both version and target, for which --version and -dumpmachine would need two processes.
    output = subprocess.run(
        [command, "-v"], capture_output=True, text=True, env=environment.compiling(), check=False
    ).stderr
    lines = [line.strip() for line in output.splitlines()]
    target = next((line.removeprefix("Target: ") for line in lines if line.startswith("Target: ")), "")
    version = next((line for line in lines if " version " in line), "")
    if not target or not version:
        raise HostError(f"'{command} -v' prints no version or no target", where=output[-500:])
    return Compiler(command, version, target)


@cache
def has_library(name: str) -> bool:
    """Return whether pkg-config knows the library, so that configure scripts can find it."""
    try:
        # As configure will ask: with the caller's PKG_CONFIG_PATH it would find others.
        asked = ["pkg-config", "--exists", name]
        return subprocess.run(asked, env=environment.compiling(), check=False).returncode == 0
    except FileNotFoundError:
        return False


def ccache_program() -> str | None:
    """Return the path of ccache; None if it is not installed or `$TIDEMARK_NO_CCACHE` is set."""
    found = None if os.environ.get("TIDEMARK_NO_CCACHE") else shutil.which("ccache")
    return found if found is not None and why_not(found) is None else None


def usable_cores(quota: float | None = None) -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use, in order.

    A CPU quota, by default that of its control groups, leaves as many of the last ones as it has whole cores,
    and one at least.
    """
    usable = tuple(sorted(os.sched_getaffinity(0)))
    quota = cpu_quota() if quota is None else quota
    return usable if quota is None else usable[-max(1, int(quota)) :]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(usable_cores())


def runnable(proc: Path = Path("/proc")) -> float:
    """Return how many processes beside this one have or want a core now: the mean of a tenth of a second."""
    samples = []
    for _ in range(_SAMPLES):
        try:
            found = re.search(r"^procs_running ([0-9]{1,9})$", (proc / "stat").read_text(), re.MULTILINE)
        except OSError:
            return 0.0
        samples.append(max(0, int(found[1]) - 1) if found else 0)
        time.sleep(_SAMPLE_SECONDS)
    return sum(samples) / len(samples)


def slowdown(others: float, own: float, on: int) -> float:
    """Return how many times as long work takes for which `own` processes want a core, on so many cores.

    `others` want one as well, and all get the same share.
    """
    return max(1.0, (others + own) / on) / max(1.0, own / on)


def architecture() -> str:
    """Return the machine's architecture, such as `x86_64`."""
    return os.uname().machine


def glibc_version() -> str:
    """Return the version of the GNU C library, such as `2.36`; `0` if the C library is another one."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0").removeprefix("glibc ")
    except ValueError:
        return "0"


def os_name() -> str:
    """Return the name of the distribution, such as `Debian GNU/Linux 12 (bookworm)`."""
    import platform

    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def why_not(program: str, option: str = "--version", env: Mapping[str, str] | None = None) -> str | None:
    """Return why a program cannot even tell its version, in one line; None if it can.

    Shims, such as rustup's cargo without a toolchain or nvm's node, stand on the path and work no more. `env`
    are its variables; None for those of this process.
    """
    try:
        process = subprocess.Popen(
            [program, option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",  # a folder may choose a toolchain
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return error.strerror or str(error)
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it did not answer within {SECONDS:g} s"
    finally:
        end_group(process)
    if process.returncode == 0:
        return None
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0][:200] if lines else f"exit status {process.returncode}"

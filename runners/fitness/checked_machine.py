"""The machine that is checked, with the home of Tidemark; tests replace its parts."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from runners.fitness.kernel import Kernel
from suites.accounting.disturbance import Disturbance, DisturbanceWatch

SAMPLE_SECONDS = 1.0
PROGRAM_SECONDS = 10


def run_program(command: Sequence[str]) -> str:
    """Return the output of a program. Raises OSError when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"{command[0]} failed: {error}") from error
    return done.stdout


@dataclass(frozen=True)
class CheckedMachine:
    """The machine and the home that the checks read."""

    home: Path
    kernel: Kernel = field(default_factory=Kernel)
    which: Callable[[str], str | None] = shutil.which
    run_program: Callable[[Sequence[str]], str] = run_program
    now: Callable[[], datetime] = datetime.now
    """Local time, which cron tables use."""

    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    sample_seconds: float = SAMPLE_SECONDS

    @property
    def has_systemd(self) -> bool:
        """Whether systemd is the init of this machine: sd_booted(3)."""
        return self.kernel.path("/run/systemd/system").is_dir()

    @cached_property
    def sample(self) -> Disturbance:
        """The activity of other processes while this one keeps a core busy; sampled once for all checks.

        The core is kept busy because steal is only accounted for CPU time that is requested.
        """
        watch = DisturbanceWatch(lambda: [os.getpid()], self.kernel.path("/proc"), self.kernel.path("/sys"))
        watch.begin()
        deadline = time.monotonic() + self.sample_seconds
        while time.monotonic() < deadline:
            pass
        return watch.end()

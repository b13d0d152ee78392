"""Where checks look: the machine and Tidemark's home, or what a test puts in their place."""

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


def said_by(command: Sequence[str]) -> str:
    """What a program prints. Raises OSError when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        raise OSError(f"{command[0]} gave no answer: {error}") from error
    return done.stdout


@dataclass(frozen=True)
class Place:
    """A machine and a home."""

    home: Path
    kernel: Kernel = field(default_factory=Kernel)
    which: Callable[[str], str | None] = shutil.which
    said_by: Callable[[Sequence[str]], str] = said_by
    now: Callable[[], datetime] = datetime.now
    """Local time: cron and people think in it."""

    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    sample_seconds: float = SAMPLE_SECONDS

    @property
    def has_systemd(self) -> bool:
        """Whether systemd has started this machine: sd_booted(3)."""
        return self.kernel.path("/run/systemd/system").is_dir()

    @cached_property
    def sample(self) -> Disturbance:
        """What others do while this process keeps one core busy; taken once for all checks.

        It works because steal shows only in CPU time that is wanted: an idle machine has none.
        """
        watch = DisturbanceWatch(lambda: [os.getpid()], self.kernel.path("/proc"), self.kernel.path("/sys"))
        watch.begin()
        deadline = time.monotonic() + self.sample_seconds
        while time.monotonic() < deadline:
            pass
        return watch.end()

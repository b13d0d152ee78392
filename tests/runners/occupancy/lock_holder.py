"""Another process that holds the lock of the machine until it is told to end, or until a file says so."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.home import ROOT

_HOLDER = """
import sys, time
from pathlib import Path
from build.home import Home
from runners.measuring.machine_lock import measuring_alone
home, until, text = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with measuring_alone(Home(home)):
    print("held", flush=True)
    for _ in range(600):
        if text and until.is_file() and text in until.read_text():
            break
        time.sleep(0.05)
"""


@contextmanager
def holder(home: Path, until: Path = Path("/dev/null"), text: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Hold the lock in a process, until the file `until` holds `text`, or the context ends."""
    command = [sys.executable, "-c", _HOLDER, str(home), str(until), text]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()

"""The report's credentials: what measures or compiles is a process that never had them.

The commit under test can run as the same user as Tidemark, and Linux lets a process read the memory and the
first environment of others of its user: a variable that is removed later is still in /proc/PID/environ.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from build.environment import CREDENTIALS, of_caller
from build.home import ROOT
from runners.exit_codes import TROUBLE
from suites.processes import tool

_PR_SET_DUMPABLE = 4
"""Of prctl(2)."""

_held: list[str] = []
"""The names of the credentials with which this program was started, if its command may use them."""


def hide_process() -> None:
    """Keep memory, environment and open files of this process from others of its user (ptrace(2)).

    Root may read them all the same. Programs that are started are not affected: execve(2) undoes it for them.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)


def begin_without(words: Sequence[str]) -> None:
    """Begin this program anew without credentials, if there are any and its command tells nobody.

    `nightly` that also reports measures in another process (`measured_apart`).
    """
    given = [name for name in os.environ if CREDENTIALS.fullmatch(name)]
    if (
        words[:1] == ["service"]
        or _checks_plan(words)
        or (words[:1] == ["nightly"] and not any(map(_only_measures, words)))
    ):
        _held.extend(given)
    elif given:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], _without_credentials())


def are_held() -> bool:
    """Return whether this program was started with credentials."""
    return bool(_held)


def measured_apart(words: Sequence[str]) -> int:
    """Measure with the words of `nightly` in a process that never had credentials; return its exit code.

    It ends in order when this process is interrupted or dies.
    """
    python = [sys.executable, "-P", "-X", "utf8", "-m", "runners"]
    command = [tool("setpriv"), "--pdeathsig=INT", "--", *python, *words, "--measure"]
    process = subprocess.Popen(command, env=_without_credentials() | {"PYTHONPATH": str(ROOT)})
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)  # a second one, of a terminal, changes nothing
        process.wait()
        raise
    return code if code >= 0 else TROUBLE


def _checks_plan(words: Sequence[str]) -> bool:
    return words[:1] == ["check"] and any(word.startswith("--p") for word in words)  # it sends a test alert


def _only_measures(word: str) -> bool:
    return len(word) > 2 and "--measure".startswith(word)  # argparse takes abbreviations


def _without_credentials() -> dict[str, str]:
    return {name: value for name, value in of_caller().items() if not CREDENTIALS.fullmatch(name)}

"""Ctrl-C twice, at the moments that a session does not see: after the clean-up, and as Python ends."""

import signal
import subprocess
import sys

import pytest

from build.home import ROOT

PROGRAM = """
import atexit, signal, sys, time
{before}
from runners.interrupts import interrupt_once

def say(text):
    print(text, flush=True)

def at_the_end():
    say("ending")
    time.sleep({seconds})

interrupt_once()
atexit.register(at_the_end)
try:
    say("working")
    time.sleep(20)
    say("never interrupted")
except KeyboardInterrupt as pressed:
    say(f"caught {{pressed}}")
sys.exit(130)
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_press_changes_nothing(first: signal.Signals, second: signal.Signals) -> None:
    # Who runs the tests may ignore hangups already, as nohup does.
    before = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    with started(PROGRAM.format(before=before, seconds=0.3)) as program:
        assert line(program) == "working"
        program.send_signal(first)
        assert line(program) == f"caught {first.name}"
        program.send_signal(second)
        assert line(program) == "ending"
        program.send_signal(second)
        rest, errors = program.communicate(timeout=10)
    assert (program.returncode, rest, errors) == (130, "", "")


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with started(PROGRAM.format(before=before, seconds=0)) as program:
        assert line(program) == "working"
        program.send_signal(signal.SIGHUP)
        program.send_signal(signal.SIGINT)
        rest, errors = program.communicate(timeout=10)
    assert (program.returncode, rest, errors) == (130, "caught SIGINT\nending\n", "")


def started(text: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def line(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().rstrip()

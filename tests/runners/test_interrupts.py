"""Ctrl-C: how it is answered; and twice, after the clean-up, and as Python ends."""

import contextlib
import os
import pty
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
    by = "" if first is signal.SIGINT else f" by {first.name}"
    assert (program.returncode, rest, errors) == (130, "", f"tidemark: interrupted{by}\n")


WORKING = """
import sys, time
from runners.console import progress
from runners.interrupts import cleaned_up_by, interrupt_once

interrupt_once()
try:
    with progress() as shown, shown.task("outer"), shown.task("at first") as task:
        task.rename("round 1: \\x1b[2Jinsert")
        with {clean_up}:
            print("working", flush=True)
            time.sleep(20)
except KeyboardInterrupt:
    time.sleep({seconds})
"""


@pytest.mark.parametrize(
    ("clean_up", "number", "answer"),
    [
        (
            "cleaned_up_by('stopping the servers')",
            signal.SIGINT,
            'tidemark: interrupted at "round 1: �[2Jinsert": stopping the servers\n',
        ),
        ("progress()", signal.SIGTERM, 'tidemark: interrupted by SIGTERM at "round 1: �[2Jinsert"\n'),
    ],
)
def test_an_interruption_is_answered_at_once(clean_up: str, number: signal.Signals, answer: str) -> None:
    with started(WORKING.format(clean_up=clean_up, seconds=0.5)) as program:
        assert line(program) == "working"
        program.send_signal(number)
        assert program.stderr is not None
        said = [program.stderr.readline() for _ in range(4)]
        assert said[3] == answer
        assert program.poll() is None, "it is told when everything is over"
        assert program.communicate(timeout=10) == ("", "")


def test_on_a_terminal_the_answer_stays_above_the_bars() -> None:
    ours, theirs = pty.openpty()
    script = WORKING.format(clean_up="cleaned_up_by('stopping the servers')", seconds=0.1)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as program:
        os.close(theirs)
        assert line(program) == "working"
        program.send_signal(signal.SIGINT)
        program.wait(timeout=10)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
            while read := os.read(ours, 4096):
                shown += read
    os.close(ours)
    assert b"tidemark: interrupted at" in shown
    assert b"stopping the servers" in shown.replace(b"\r\n", b" ")


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with started(PROGRAM.format(before=before, seconds=0)) as program:
        assert line(program) == "working"
        program.send_signal(signal.SIGHUP)
        program.send_signal(signal.SIGINT)
        rest, errors = program.communicate(timeout=10)
    assert (program.returncode, rest) == (130, "caught SIGINT\nending\n")
    assert errors == "tidemark: interrupted\n"


FINALIZED = """
import os, signal, time
from runners.interrupts import interrupt_once
interrupt_once()
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
try:
    Finalized()
    time.sleep(20)
    print("went on")
except KeyboardInterrupt as error:
    print("ended by", error)
"""


def test_a_signal_that_comes_in_a_finalizer_is_not_lost() -> None:
    with started(FINALIZED) as program:
        rest, errors = program.communicate(timeout=30)
    assert (rest, errors) == ("ended by SIGTERM\n", "tidemark: interrupted by SIGTERM\n")


def started(text: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def line(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().rstrip()

"""The first Ctrl-C ends a command in an orderly way; later ones must not interrupt its clean-up.

It is answered at once with what is interrupted and what is ended first, which can take half a minute. Who is
interrupted notes what was stored (`BaseException.add_note`), and the command line prints these notes.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.001
"""After how long an interruption is raised again that Python could not pass on."""

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_tasks: list[str] = []
"""The labels of the tasks that are shown to run, the innermost last."""

_clean_ups: list[str] = []
"""What has to be done before the program can end, the innermost last."""

_tellers: list[Callable[[str], None]] = []


def interrupt_once() -> None:
    """Turn the first SIGINT, SIGTERM or SIGHUP into KeyboardInterrupt, and ignore those that follow.

    It holds for the life of the process, and is called before anything else: a second signal may arrive while
    the history is closed or the interpreter ends, and would leave a traceback there. A SIGHUP that is already
    ignored stays ignored, as `nohup` requests.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)
        _tell(_answer(signal.Signals(number)))
        raise KeyboardInterrupt(signal.Signals(number).name)

    sys.unraisablehook = _raise_again
    for stopping in STOPPING:
        if stopping is not signal.SIGHUP or signal.getsignal(stopping) is not signal.SIG_IGN:
            signal.signal(stopping, handle)


@contextmanager
def task_shown(label: str) -> Iterator[Callable[[str], None]]:
    """Within the context an interruption names this task, which the yielded function renames."""
    place = len(_tasks)
    _tasks.append(label)

    def rename(new: str) -> None:
        _tasks[place] = new

    try:
        yield rename
    finally:
        del _tasks[place:]


@contextmanager
def cleaned_up_by(what: str) -> Iterator[None]:
    """Within the context an interruption says at once `what` is done before the program ends."""
    _clean_ups.append(what)
    try:
        yield
    finally:
        _clean_ups.pop()


@contextmanager
def told_by(tell: Callable[[str], None]) -> Iterator[None]:
    """Within the context `tell` shows the answer to an interruption, for what draws on the terminal."""
    _tellers.append(tell)
    try:
        yield
    finally:
        _tellers.pop()


def _raise_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Raise an interruption a moment later where Python only reports it: in a finalizer, or while it imports.

    There the signal would be lost, although it was answered, and later ones are ignored.
    """
    interruption = unraisable.exc_value
    if not isinstance(interruption, KeyboardInterrupt) or sys.is_finalizing():
        sys.__unraisablehook__(unraisable)
        return

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise interruption

    signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)


def _answer(number: signal.Signals) -> str:
    by = "" if number is signal.SIGINT else f" by {number.name}"
    where = f' at "{_tasks[-1]}"' if _tasks else ""
    first = f": {_clean_ups[-1]}" if _clean_ups else ""
    return f"tidemark: interrupted{by}{where}{first}"


def _tell(answer: str) -> None:
    if _tellers:
        _tellers[-1](answer)
        return
    # Not by print: the signal may have come while it was writing.
    with contextlib.suppress(OSError):
        start = "\n" if os.isatty(2) else ""  # behind the terminal's ^C
        os.write(2, f"{start}{answer}\n".encode(errors="backslashreplace"))

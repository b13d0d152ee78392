"""The first Ctrl-C ends a command in order; those that follow must not cut its clean-up short."""

import signal
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_once() -> None:
    """Turn the first SIGINT, SIGTERM or SIGHUP into KeyboardInterrupt, and ignore those that follow.

    For the whole life of the process, so a program calls it before anything else: a second press can come
    while the history is closed or the interpreter ends, and would leave a traceback there. A SIGHUP that is
    ignored already stays so: `nohup` asked for that.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for each in STOPPING:
        if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, handle)

"""The first Ctrl-C ends a command in an orderly way; later ones must not interrupt its clean-up."""

import signal
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_once() -> None:
    """Turn the first SIGINT, SIGTERM or SIGHUP into KeyboardInterrupt, and ignore those that follow.

    It holds for the life of the process, and is called before anything else: a second signal may arrive while
    the history is closed or the interpreter ends, and would leave a traceback there. A SIGHUP that is already
    ignored stays ignored, as `nohup` requests.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for stopping in STOPPING:
        if stopping is not signal.SIGHUP or signal.getsignal(stopping) is not signal.SIG_IGN:
            signal.signal(stopping, handle)

"""Waiting for the lock of the machine, up to a limit, and saying for what."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from build.home import Home
from build.lock import LockError
from build.progress import Progress
from runners.measuring.machine_lock import BusyError, current_holder, measuring_alone

WAIT_MINUTES = 60.0
"""How long nights and reports wait for the machine, at most."""

POLL_SECONDS = 5.0


@contextmanager
def machine_awaited(
    home: Home,
    seconds: float,
    progress: Progress,
    still_wanted: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[float]:
    """Hold the lock of this machine, and yield the seconds that were waited for it, at most `seconds`.

    `progress` shows who holds the lock. `still_wanted` is called before every attempt, and may raise to end
    the wait. Raises BusyError when the lock is still held after the limit, and LockError.
    """
    began = clock()
    with ExitStack() as held, ExitStack() as shown:
        task, shown_label = None, ""
        while True:
            still_wanted()
            try:
                held.enter_context(measuring_alone(home))
                break
            except BusyError as error:
                waited = clock() - began
                if waited >= seconds:
                    raise BusyError(error.holder, error.path, waited if seconds else 0.0) from error
                label = f"waiting for the machine: held by {error.holder}"
                if task is None:
                    task = shown.enter_context(progress.task(label, seconds))
                elif label != shown_label:
                    task.rename(label)
                shown_label = label
                task.update(waited)
                sleep(min(POLL_SECONDS, seconds - waited))
        shown.close()
        yield clock() - began


@contextmanager
def quiet_machine(home: Home, progress: Progress) -> Iterator[None]:
    """Wait until nothing measures, and keep measurements from beginning, for what loads the machine.

    Who may not open the lock, as a reader of a history may not, goes on without it. Raises BusyError after
    WAIT_MINUTES.
    """
    with ExitStack() as held:
        try:
            held.enter_context(machine_awaited(home, 60 * WAIT_MINUTES, progress))
        except (LockError, OSError) as error:
            progress.note(f"whether something measures on this machine is not known: {error}")
        yield


def beside(home: Home) -> str | None:
    """Return a sentence about the measurement beside which a command runs; None when nothing measures."""
    try:
        holder = current_holder(home)
    except (LockError, OSError):
        return None
    if holder is None:
        return None
    return f"the machine is held by {holder}: rounds that this disturbs are measured again, or marked"

"""Whether the machine is busy, told before anything is measured: once, and with what can be done."""

from build.home import Home
from build.progress import Progress
from runners.fitness.checked_machine import CheckedMachine
from runners.measuring.machine_lock import current_holder
from suites.accounting.disturbance import Disturbance, DisturbanceLimits

SAMPLE_SECONDS = 0.5
"""How long others are watched: the answer comes within a second."""


def note_if_busy(home: Home, progress: Progress, instead: str) -> None:
    """Note that other processes or guests use this machine; `instead` is what can be done beside waiting.

    Nothing is said while Tidemark itself measures here: what comes next waits for that, or says so.
    """
    if current_holder(home) is not None:
        return
    try:
        sample = CheckedMachine(home.path, sample_seconds=SAMPLE_SECONDS).sample
    except (OSError, ValueError):
        return  # what cannot be watched here is said for the rounds that it concerns
    told = busy(sample, instead)
    if told:
        progress.note(told)


def busy(sample: Disturbance, instead: str) -> str:
    """Return the sentence on a busy machine; empty if it is not."""
    reasons = sample.reasons(DisturbanceLimits())
    if not reasons:
        return ""
    return (
        f"this machine is busy: {'; '.join(reasons)}. Rounds that this disturbs are measured again, at most "
        f"twice, and then marked. Wait until ./tidemark check finds no load; or {instead}"
    )

"""All checks, in the order in which they are shown."""

from collections.abc import Iterator

from runners.fitness import memory, neighbours, processor, profiling, storage, timers
from runners.fitness.finding import Check, Finding, note
from runners.fitness.place import Place

CHECKS = (
    Check(
        "governor",
        "A governor that saves power changes the clock in the middle of a step.",
        processor.governor,
    ),
    Check(
        "turbo",
        "Turbo clocks depend on temperature and on how many cores work: the first runs are the fastest.",
        processor.turbo,
    ),
    Check(
        "SMT",
        "Two threads of one core slow each other down, and which two share one changes from run to run.",
        processor.smt,
    ),
    Check(
        "temperature",
        "A processor that is warm before it works is slowed down while it does, and not every time as much.",
        processor.temperature,
    ),
    Check(
        "clock source",
        "A clock that takes a system call makes every query slower, and hides other differences.",
        processor.clock,
    ),
    Check(
        "huge pages",
        "Transparent huge pages are made and broken up at any time, which stalls whoever waits for memory.",
        memory.huge_pages,
    ),
    Check(
        "swap",
        "A server whose cache is swapped out reads it back from disk: other figures for the same version.",
        memory.swap,
    ),
    Check(
        "memory",
        "The short profile of write-heavy takes half of the memory for a server's cache.",
        memory.available,
    ),
    Check(
        "steal",
        "What a host gives to its other guests is missing here, and never the same amount twice.",
        neighbours.steal,
    ),
    Check(
        "load",
        "Other programs take processors, caches and disks away from the measured server.",
        neighbours.load,
    ),
    Check(
        "databases",
        "Another database server holds memory, and its checkpoints and vacuums come when they like.",
        neighbours.databases,
    ),
    Check(
        "timers",
        "Updates, file system checks and backups that begin in a session slow some of its runs down.",
        timers.timers,
    ),
    Check(
        "free disk",
        "A session that runs out of disk fails, and a nearly full file system is a slow one.",
        storage.free_disk,
    ),
    Check(
        "file system",
        "Layered, copying, remote and memory file systems flush and allocate differently from a disk's own.",
        storage.file_system,
    ),
    Check(
        "flush latency",
        "Checkpoints and commits wait for fsync; a disk that stalls at times decides the result.",
        storage.flush_latency,
    ),
    Check(
        "perf",
        "Without perf and its permissions there are no CPU profiles of a regression.",
        profiling.profiler,
    ),
    Check(
        "NMI watchdog",
        "It interrupts every core and keeps one of the few hardware counters for itself.",
        profiling.nmi_watchdog,
    ),
)


def examine(place: Place) -> Iterator[Finding]:
    """What each check found; one that cannot be made is a note, and does not stop the others."""
    for check in CHECKS:
        try:
            found = check.look(place)
        except (OSError, ValueError) as error:
            found = note(f"cannot be known: {error}")
        yield Finding(check, found)

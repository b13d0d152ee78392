"""All checks, in the order in which they are run and shown."""

from collections.abc import Iterator

from runners.fitness import agent_release, memory, neighbours, processor, profiling, storage, timers
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import Check, CheckFinding, note

CHECKS = (
    Check(
        "governor",
        "A power-saving governor changes the clock frequency in the middle of a step.",
        processor.governor,
    ),
    Check(
        "turbo",
        "Turbo frequencies depend on temperature and on busy cores: the first runs are the fastest.",
        processor.turbo,
    ),
    Check(
        "SMT",
        "Two threads of one core slow each other down, and which ones share a core changes from run to run.",
        processor.smt,
    ),
    Check(
        "temperature",
        "A processor that is warm before the load is throttled under load, by a different amount every time.",
        processor.temperature,
    ),
    Check(
        "clock source",
        "A clock source that needs a system call makes every query slower and hides other differences.",
        processor.clock,
    ),
    Check(
        "huge pages",
        "Transparent huge pages are assembled and split at any time, which stalls memory allocations.",
        memory.huge_pages,
    ),
    Check(
        "swap",
        "A server whose cache is swapped out reads it back from disk, which changes its results.",
        memory.swap,
    ),
    Check(
        "proactive reclaim",
        "DAMON evicts what a server has cached while memory is free: reads of it then wait for the disk.",
        memory.proactive_reclaim,
    ),
    Check(
        "memory",
        "The short profile of write-heavy uses half of the memory for the cache of a server.",
        memory.available,
    ),
    Check(
        "steal",
        "CPU time that the host gives to other guests is missing here, by a different amount every time.",
        neighbours.steal,
    ),
    Check(
        "load",
        "Other programs compete with the measured server for processors, caches and disks.",
        neighbours.load,
    ),
    Check(
        "databases",
        "Another database server holds memory, and its checkpoints and vacuums run at any time.",
        neighbours.databases,
    ),
    Check(
        "timers",
        "Updates, file system checks and backups that start during a session slow down some of its runs.",
        timers.timers,
    ),
    Check(
        "free disk",
        "A session that runs out of disk space fails, and a nearly full file system is slow.",
        storage.free_disk,
    ),
    Check(
        "file system",
        "Overlay, copy-on-write, network and memory file systems flush and allocate differently than ext4.",
        storage.file_system,
    ),
    Check(
        "flush latency",
        "Checkpoints and commits wait for fsync; a disk that stalls now and then dominates the results.",
        storage.flush_latency,
    ),
    Check(
        "perf",
        "Without perf and its permissions there are no CPU profiles of a regression.",
        profiling.profiler,
    ),
    Check(
        "NMI watchdog",
        "It interrupts every core and occupies one of the few hardware counters.",
        profiling.nmi_watchdog,
    ),
    Check(
        "GitHub runner",
        "A runner that lacks a release for 30 days gets no jobs, and nights begin by the timer alone.",
        agent_release.agent,
    ),
)


def examine(machine: CheckedMachine) -> Iterator[CheckFinding]:
    """Yield the finding of every check; one that cannot be run yields a note and stops no other."""
    for check in CHECKS:
        try:
            reading = check.look(machine)
        except (OSError, ValueError) as error:
            reading = note(f"cannot be determined: {error}")
        yield CheckFinding(check, reading)

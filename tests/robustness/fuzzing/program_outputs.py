"""What other programs and the kernel print: sysbench, pgbench, perf, /proc, systemd and cron."""

import gzip
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from build.control_groups import cpu_quota, memory_limit
from build.home import ROOT
from runners.fitness.cron import jobs
from runners.fitness.timers import next_timers
from suites.accounting.proc import (
    MAX_KIB,
    ProcessMemoryError,
    machine_ticks,
    process_memory,
    process_ticks,
)
from suites.accounting.throttling import ThrottleCounters, Throttling
from suites.additions.binlog_stream import ROTATE, after
from suites.counting.callgrind import CallgrindError, parsed
from suites.counting.fixed_work import log_syncs
from suites.generators.connections import OpeningTranscript
from suites.generators.load import Load, LoadError
from suites.generators.pgbench.transcript import PgbenchTranscript, logged_transactions
from suites.generators.transcript import SysbenchTranscript
from suites.innodb.log_volume import event_types
from suites.postgres.log_volume import record_types, volume
from suites.profiling.folding import fold, parsed_samples
from suites.profiling.perf import PerfError
from suites.profiling.stacks import StepProfile
from tests.robustness.fuzzing.campaign import FuzzTarget, Number, Parse

CAPTURES = ROOT / "tests/golden/suites"

TICKS = 2.0**64
"""More than the kernel can count."""

SAMPLED_LINES = 200


def _captures(*names: str) -> Sequence[bytes]:
    return [(CAPTURES / name).read_bytes() for name in names]


# --- load generators


def _sysbench(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        transcript = SysbenchTranscript()
        for line in data.decode(errors="replace").split("\n"):
            transcript.read(line)
        return _of_load(transcript.load())

    return parse


def _opening(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        transcript = OpeningTranscript()
        for line in data.decode(errors="replace").split("\n"):
            transcript.read(line)
        yield Number("seconds", transcript.seconds, 1e7)
        yield from (Number("prepared statements", count, 1e15) for count in transcript.prepared)

    return parse


def _pgbench(folder: Path) -> Parse:
    log = folder / "log.1"

    def parse(data: bytes) -> Iterable[Number]:
        report, _, logged = data.partition(b"\f")
        log.write_bytes(logged)
        transcript = PgbenchTranscript()
        for line in report.decode(errors="replace").split("\n"):
            transcript.read(line)
        return _of_load(transcript.load(5.0, logged_transactions(folder)))

    return parse


def _of_load(load: Load) -> Iterator[Number]:
    yield Number("transactions", load.transactions, 1e13, 1)
    yield Number("queries", load.queries, 1e14)
    yield Number("seconds", load.seconds, 1e7)
    yield Number("errors", load.errors)
    yield Number("watched queries", load.watched_queries, 1e14)
    yield Number("watched seconds", load.watched_seconds, 1e7)
    yield from (Number("queries/s of a second", rate, 1e10) for rate in load.per_second)
    yield from (Number(f"latency {name}", latency, 1e10) for name, latency in load.latency_ms.items())
    yield from (Number("latency in the histogram", latency, 1e10) for latency in load.histogram)
    yield from (Number("in the histogram", count, 1e13) for count in load.histogram.values())
    yield Number("transactions that were due", load.due or 0, 1e13)
    yield Number("late seconds", load.late_seconds, 1e7)
    for kind in load.kinds.values():
        yield from (Number("of a kind", count, 1e13) for count in (kind.committed, kind.refused))
        yield from (Number(f"{name} of a kind", latency, 1e10) for name, latency in kind.latency_ms.items())
        yield from (Number("slowest of a second", latency, 1e10) for latency in kind.longest_ms)
    for beside in load.background.values():
        yield from (Number("in the background", count, 1e13) for count in (beside.due, beside.done))
        yield Number("late seconds in the background", beside.late_seconds, 1e7)
        yield Number("apart", beside.most_apart, 1e13)


def _pgbench_captures() -> Sequence[bytes]:
    logged = b"0 1 2893 0 1795427285 160000\n1 2 failed 0 1795427285 160001\n0 3 120 0 1795427285 161000\n"
    texts = _captures("pgbench-13.txt", "pgbench-18.txt", "pgbench-failures.txt")
    return [text + b"\f" + logged for text in texts]


def _sysbench_captures() -> Sequence[bytes]:
    """Real reports, their histograms thinned out: a long histogram only takes time."""
    thinned = []
    names = ("update-index", "slices", "kinds", "background")
    for text in _captures(*(f"sysbench-{name}.txt" for name in names)):
        lines = text.split(b"\n")
        thinned.append(
            b"\n".join(line for place, line in enumerate(lines) if b"|" not in line or place % 12 == 0)
        )
    return thinned


# --- profiles


def _perf_script(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        text, _, stats = data.partition(b"\f")
        samples = parsed_samples(text, stats)
        stacks = fold(samples, range(30_490, 30_530), {30_520: "client backend"}, [(0.0, 1e6)])
        yield from (Number(f"samples of {stack[:40]}", count) for stack, count in stacks.items())
        quality = StepProfile("cpu-clock", 997, 1000, 1, stacks).quality
        yield Number("samples", quality.samples, 1e18)
        for share in (quality.shallow, quality.unknown, quality.lost):
            yield Number("share", share, 1 + 1e-9)
        yield Number("lost", samples.lost)
        yield from (Number("process", process, 2**31) for pair in samples.parents.items() for process in pair)

    return parse


def _perf_captures() -> Sequence[bytes]:
    text = gzip.decompress((CAPTURES / "perf-script.txt.gz").read_bytes())
    samples = text.split(b"\n\n")[:12]
    born = b"postgres 7/7 12.5: PERF_RECORD_FORK(20:20):(7:7)\n"
    stats = b"\fAggregated stats:\n           TOTAL events:       5215\n            LOST events:          3\n"
    return [born + b"\n\n".join(samples[:6]) + b"\n\n" + stats, b"\n\n".join(samples) + b"\n\n" + stats]


# --- the kernel, systemd and cron


def _machine(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        ticks = machine_ticks(data.decode(errors="replace"))
        return [Number("busy", ticks.busy, 8 * TICKS), Number("stolen", ticks.stolen, TICKS)]

    return parse


def _process(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        ticks = process_ticks(data.decode(errors="replace"))
        yield Number("pid", ticks.pid, 2**31)
        yield Number("parent", ticks.parent, 2**31)
        yield from (Number("ticks", count, 2 * TICKS) for count in (ticks.own, ticks.waited, ticks.started))

    return parse


def _memory(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        rollup, _, status = data.decode(errors="replace").partition("\f")
        memory = process_memory(rollup, status)
        sizes = (memory.rss, memory.pss, memory.shared, memory.page_tables)
        yield from (Number("KiB", size, MAX_KIB) for size in sizes)
        yield Number("own KiB", memory.own, 2 * MAX_KIB)

    return parse


def _callgrind(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        profile = parsed(data.decode(errors="replace"))
        yield Number("instructions", profile.instructions, 1e18)
        yield from (Number("own", count, 1e18) for count in profile.stacks.values())
        yield from (Number("calls", count, 1e18) for count in profile.calls.values())

    return parse


def _strace(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        lines = data.decode(errors="replace").splitlines()
        return [Number("syncs", log_syncs(lines, lambda path: "pg_wal" in path), len(lines))]

    return parse


def _waldump(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        found = volume(list(record_types(data.decode(errors="replace"))))
        yield Number("commits", found.commits, 1e20)
        yield from (Number(metric, amount, 1e20) for metric, amount in found.amounts.items())

    return parse


def _binary_log_file(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        return [Number("type", kind, 255) for kind in event_types(data, 4)]

    return parse


def binary_log_files() -> Sequence[bytes]:
    """Return a file of the binary log with one transaction."""
    events = (
        _EVENT.pack(1_700_000_000, kind, 1, length, 0, 0).ljust(length, b"x") for kind, length in _EVENTS
    )
    return [b"\xfebin" + b"".join(events)]


_EVENT = struct.Struct("<IBIIIH")
_EVENTS = ((15, 122), (33, 75), (2, 70), (19, 58), (31, 420), (16, 27))
"""Type and length of the events with which a file begins: format, then a transaction."""


def _throttling(folder: Path) -> Parse:
    stat = folder / "sys/fs/cgroup/box/cpu.stat"
    count = folder / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    group, mounts = folder / "proc/self/cgroup", folder / "proc/self/mountinfo"
    limit, quota = stat.with_name("memory.max"), stat.with_name("cpu.max")
    files = (stat, count, group, mounts, limit, quota)
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)

    def parse(data: bytes) -> Iterable[Number]:
        parts = (*data.split(b"\f"), *(b"" for _ in files))[: len(files)]
        for path, text in zip(files, parts, strict=True):
            path.write_bytes(text)
        read = sum(ThrottleCounters(folder / "proc", folder / "sys").read().values(), Throttling())
        yield Number("heat", read.heat, TICKS)
        yield Number("quota", read.quota, 4 * TICKS)
        yield Number("quota seconds", read.quota_seconds, TICKS)
        yield Number("memory limit", memory_limit(folder / "proc", folder) or 0, 2**64)
        yield Number("cores", cpu_quota(folder / "proc", folder) or 0, 2**64)

    return parse


def _timers(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        times = next_timers(data.decode(errors="replace"))
        return [Number("year", at.year, datetime.max.year, datetime.min.year) for at in times.values()]

    return parse


def _cron(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        return [
            Number("minute", minute, 59)
            for job in jobs(data.decode(errors="replace"), names_user=True)
            for minute in job.minutes
        ]

    return parse


# --- the binary log


def _packet(kind: int, end: int, content: bytes) -> bytes:
    event = struct.pack("<IBIIIH", 1795427285, kind, 1, 19 + len(content), end, 0) + content
    return (len(event) + 1).to_bytes(3, "little") + b"\1\0" + event


def _log_captures() -> Sequence[bytes]:
    name = struct.pack("<Q", 4) + b"binlog.000002" + bytes(4)
    return [_packet(30, 412, b"a row") + _packet(ROTATE, 0, name) + _packet(33, 126, b"gtid" * 6)]


def _binary_log(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        rest, (_, position) = after(data, ("binlog.000001", 4))
        yield Number("position", position, TICKS)
        yield Number("bytes left", len(rest), len(data))

    return parse


_PROCESS = b"4321 (post) gres: x) S 12 1 1 0 -1 4194624 1 1 1 1 250 30 7 8 20 0 1 0 987654 55 66\n"
_ROLLUP = b"""55d0c1a00000-7ffc5cb5f000 ---p 00000000 00:00 0                          [rollup]
Rss:               12824 kB
Pss:                2471 kB
Pss_Dirty:          1336 kB
Pss_Anon:           1160 kB
Pss_File:            121 kB
Pss_Shmem:          1190 kB
Swap:                  0 kB
\fName:\tpostgres\nVmRSS:\t   12824 kB\nRssAnon:\t    1160 kB\nVmPTE:\t     120 kB\nThreads:\t1\n"""
_OPENING = b"""Threads started!

tidemark: connected 1 from 41531.712141 to 41531.760660
tidemark: connected 0 from 41531.712150 to 41531.764071
tidemark: holding 1 with 90 prepared statements
tidemark: holding 0 with 90 prepared statements
"""
_STAT = b"cpu  100 2 30 4000 50 6 7 8 9 10\ncpu0 100 2 30 4000 50 6 7 8 9 10\nintr 1 2 3\n"
_THROTTLING = (
    b"usage_usec 1\nnr_throttled 3\nthrottled_usec 4000\n\f12\n\f0::/box\n"
    b"\f30 25 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n\f1073741824\n\f150000 100000\n"
)
_CRON = b"SHELL=/bin/sh\n17 * * * * root cd / && run-parts /etc/cron.hourly\n*/5 1-4 1,15 jan mon root true\n"
_TIMERS = json.dumps([{"next": 1795427285000000, "unit": "apt.timer"}, {"next": None, "unit": "x"}]).encode()

TARGETS = (
    FuzzTarget("sysbench", _sysbench_captures, _sysbench, (LoadError,)),
    FuzzTarget("opened connections", lambda: [_OPENING], _opening, (LoadError,)),
    FuzzTarget("pgbench", _pgbench_captures, _pgbench, (LoadError,)),
    FuzzTarget("perf script", _perf_captures, _perf_script, (PerfError,)),
    FuzzTarget(
        "callgrind", lambda: _captures("callgrind-3.txt", "callgrind-4.txt"), _callgrind, (CallgrindError,)
    ),
    FuzzTarget("strace", lambda: _captures("strace.txt"), _strace, ()),
    FuzzTarget("pg_waldump", lambda: _captures("waldump-18.txt"), _waldump, ()),
    FuzzTarget("file of the binary log", binary_log_files, _binary_log_file, (ValueError,)),
    FuzzTarget("binary log", _log_captures, _binary_log, (ValueError,)),
    FuzzTarget("proc stat", lambda: [_STAT], _machine, (ValueError,)),
    FuzzTarget("proc pid stat", lambda: [_PROCESS], _process, (ValueError,)),
    FuzzTarget("process memory", lambda: [_ROLLUP], _memory, (ProcessMemoryError,)),
    FuzzTarget("control groups", lambda: [_THROTTLING], _throttling, ()),
    FuzzTarget("timers", lambda: [_TIMERS], _timers, (ValueError,)),
    FuzzTarget("cron", lambda: [_CRON], _cron, ()),
)

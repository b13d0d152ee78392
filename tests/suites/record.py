"""Records what sysbench and pgbench really print, as fixtures in tests/golden/suites/.

    .venv/bin/python -m tests.suites.record

Needs postgres 18.6 and 13.23 in the build cache. Afterwards rewrite what is expected of the captures
(`TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/suites`) and read the difference.
"""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from build.finished_build import Build
from build.home import ROOT, locate
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from suites.definition import load_suite
from suites.generators.load import Share, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.sysbench import Sysbench
from suites.postgres.server import PostgresServer
from suites.processes import tree_of
from suites.profiling.folding import read
from suites.profiling.perf import FREQUENCY, find_perf, record
from suites.sizing import Hardware, sizes
from suites.slices import Schedule
from tests.suites.servers import running, small

GOLDEN = ROOT / "tests/golden/suites"
FAILING_SQL = """BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT abalance FROM pgbench_accounts WHERE aid = 1;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1;
COMMIT;
"""


@contextmanager
def server(version: str) -> Iterator[tuple[PostgresServer, Build]]:
    build = provide(BuildRequest(parse_version(version)), locate(), Silent())
    with tempfile.TemporaryDirectory(prefix="tmt-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with running(build, folder, small(rows=100_000, threads=2)) as started:
            yield started, build


def capture(
    name: str,
    argv: list[str],
    meanwhile: Callable[[], None] = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Keep what `argv` prints, while `meanwhile` happens."""
    whole = {**os.environ, **(environment or {})}
    with (GOLDEN / name).open("wb") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=subprocess.STDOUT, env=whole)
        meanwhile()
        print(f"{name}: exit status {process.wait()}", file=sys.stderr)


def record_sysbench() -> None:
    with server("postgres@18.6") as (started, _):
        generator = Sysbench(load_suite("write-heavy"), small(rows=10_000, threads=2))
        generator.load(started.address)
        (step,) = generator.suite.select(("update-index",))

        def kill() -> None:
            time.sleep(1.5)
            os.kill(started.pid, signal.SIGKILL)

        argv = [*generator.arguments(started.address, step, WorkLimit(3, None)), "--linger_ms=250", "run"]
        environment = generator.environment
        capture("sysbench-update-index.txt", argv, environment=environment)
        no_table = [*argv[:-1], "--tables=2", "run"]
        capture("sysbench-no-table.txt", no_table, environment=environment)
        capture("sysbench-server-killed.txt", argv, kill, environment)


def record_slices() -> None:
    """The first of two servers that take turns: it warms up, works for two slices, and waits between them."""
    with server("postgres@18.6") as (started, _):
        generator = Sysbench(load_suite("write-heavy"), small(rows=10_000, threads=2))
        generator.load(started.address)
        (step,) = generator.suite.select(("write-only",))
        share = Share(Schedule(1.2, (0, 1, 0, 1, 1, 0), warming=2), round=1)
        argv = generator.arguments_of_turns(started.address, step, share, 0, time.monotonic() + 0.6)
        capture("sysbench-slices.txt", argv, environment=generator.environment)


def record_kinds() -> None:
    """Payments that arrive at a rate: two kinds of transactions, with their histograms."""
    suite = load_suite("payments")
    step = suite.select(("payments",))[0].at(2).model_copy(update={"rate": 150.0})
    room = sizes(suite, suite.profile("smoke"), Hardware(1, 1), [step])
    with server("postgres@18.6") as (started, _):
        generator = Sysbench(suite, room)
        generator.load(started.address)
        share = Share(Schedule(1.0, (0, 0, 0), warming=1), round=1)
        argv = generator.arguments_of_turns(started.address, step, share, 0, time.monotonic() + 0.6)
        capture("sysbench-kinds.txt", argv, environment=generator.environment)


def record_background() -> None:
    """Range queries of one client, with inserts and deletes at a rate beside it."""
    suite = load_suite("insert-benchmark")
    (step,) = suite.select(("qr1000",))
    profile = suite.profile("smoke").model_copy(update={"scale": (1, 1)})
    with server("postgres@18.6") as (started, _):
        generator = Sysbench(suite, sizes(suite, profile, Hardware(1, 1), [step]))
        generator.load(started.address)
        share = Share(Schedule(1.5, (0, 0, 0), warming=1), round=1)
        argv = generator.arguments_of_turns(started.address, step, share, 0, time.monotonic() + 0.6)
        capture("sysbench-background.txt", argv, environment=generator.environment)


def record_pgbench(version: str, major: int) -> None:
    with server(version) as (started, build):
        generator = Pgbench(load_suite("pgbench"), small(rows=100_000, threads=2), build)
        generator.load(started.address)
        (step,) = generator.suite.select(("tpcb-like",))
        capture(f"pgbench-{major}.txt", generator.arguments(started.address, step, WorkLimit(3, None)))
        if major >= 15:
            record_failures(generator, started)


def record_failures(generator: Pgbench, started: PostgresServer) -> None:
    """Serialization failures: pgbench 15 and later count them and go on."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name, "failing.sql")
        script.write_text(FAILING_SQL)
        argv = generator.arguments(started.address, generator.suite.steps[0], WorkLimit(1, 60))[:-1]
        log = ["--log", f"--log-prefix={name}/log", "--latency-limit=1000"]
        capture("pgbench-failures.txt", [*argv, *log, f"--file={script}"])
        lines = [line for file in sorted(Path(name).glob("log.*")) for line in file.open()]
        (GOLDEN / "pgbench-failures.log").write_text("".join(lines))


def record_perf() -> None:
    """A fifth of a second of update-index: what perf says of each sample, and which thread was which."""
    with server("postgres@18.6") as (started, build), tempfile.TemporaryDirectory() as name:
        generator = Sysbench(load_suite("write-heavy"), small(rows=10_000))
        generator.load(started.address)
        (step,) = generator.suite.select(("update-index",))
        perf = find_perf()
        argv = [*generator.arguments(started.address, step, WorkLimit(3, None)), "run"]
        environment = {**os.environ, **generator.environment}
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment)
        time.sleep(1)
        recording = record(perf, [started.pid], Path(name, "perf.data"), FREQUENCY, None)
        roles = started.roles()
        time.sleep(0.4)
        pids = tree_of(started.pid)
        samples = read(recording.finish(), perf.program)
        process.wait()
    # Nobody's business: what else runs on the machine, and where a build lies.
    mine = re.compile(rb"^(?:sysbench|postgres) +(\d+)/", re.MULTILINE)
    blocks = [block for block in samples.text.split(b"\n\n") if mine.match(block)]
    text = b"".join(block + b"\n\n" for block in blocks).replace(str(build.prefix).encode(), b"/opt/postgres")
    (GOLDEN / "perf-script.txt.gz").write_bytes(gzip.compress(text, mtime=0))
    threads = {str(pid): roles.get(pid, "other") for pid in pids}
    (GOLDEN / "perf-roles.json").write_text(json.dumps(threads, indent=1) + "\n")


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    record_sysbench()
    record_slices()
    record_kinds()
    record_background()
    record_perf()
    for major, wanted in ((18, "postgres@18.6"), (13, "postgres@13.23")):
        record_pgbench(wanted, major)

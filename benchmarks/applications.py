"""The suites of whole applications: the cost of their script, planted faults, the open loop, durability.

Servers are new, with the data of the smoke profiles. Run it on a machine that does nothing else.
`$TIDEMARK_BENCH_PARTS` selects script, waiting, mix, faults and kills.
"""

import itertools
import os
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from benchmarks.real_builds.killed_servers import STEPS, KilledServer, WitnessedSuite
from benchmarks.real_builds.loaded_server import ENGINES, loaded_server
from benchmarks.real_builds.planted_faults import unseen
from benchmarks.real_builds.received_mix import mix_figures
from benchmarks.real_builds.stub_suite import SUITE_FILES
from build.home import Home, locate
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.accounting.costs import Meter
from suites.definition import Suite, load_suite
from suites.generators.load import Load, Share, WorkLimit, committed_in
from suites.generators.registry import make_generator
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import sizes, this_machine
from suites.slices import Schedule

PARTS = ("script", "waiting", "mix", "faults", "kills")

STATEMENTS_A_SECOND = 10_000
"""The statements to which the cost of the script is scaled."""

MAX_COST = 0.15
"""The most of a core that the script may need for them."""

MIN_RATIO = 0.97
"""The least throughput of a transaction that is counted under a kind over that of a plain event."""

PAIRS = 60
PAIRED_SECONDS = 1.0
"""Many short pairs: neighbours change the throughput of single runs by a tenth and more."""

CLOSED_SECONDS, OPEN_SECONDS = 4.0, 60.0

MAX_OFF = 0.2
"""How far mean waiting may be off what queueing theory says."""

LOADS = (0.5, 0.95)
"""Rates of the open loop, as shares of the closed-loop throughput."""

MIX_SECONDS = 60
KILLS, SEED = 20, 7600


def main() -> int:
    """Measure the chosen parts, all in about 20 minutes; return 0 if all targets are met, else 1."""
    chosen = chosen_parts("applications", PARTS)
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    with measuring_alone(home), data_folder(home, f"b{os.getpid()}") as folder:
        (folder / "stub").mkdir()
        for name, text in SUITE_FILES.items():
            (folder / "stub" / name).write_text(text, encoding="utf-8")
        stub = load_suite(f"{folder / 'stub'}")
        figures: list[Figure] = []
        if {"script", "waiting"} & {*chosen}:
            with loaded_server(stub, ENGINES[0], home, folder / "1") as server:
                figures += _costs(stub, server) if "script" in chosen else []
                figures += _waiting(stub, server) if "waiting" in chosen else []
        figures += _mix(home, folder) if "mix" in chosen else []
        for number, name in itertools.product(range(len(ENGINES)), ("payments", "shop")):
            figures += [_faults(home, folder, name, number)] if "faults" in chosen else []
        for number, name in itertools.product(range(len(ENGINES)), STEPS):
            figures += [_kills(home, folder, name, number)] if "kills" in chosen else []
    return report(figures)


def _work(
    suite: Suite, server: Server, name: str, seconds: float, rate: float | None = None
) -> tuple[Load, Meter]:
    """Run one step with one client, and return its load and what measured its costs."""
    step = suite.select((name,))[0].at(1).model_copy(update={"rate": rate})
    room = sizes(suite, suite.profile("smoke"), this_machine(), [step])
    share = Share(Schedule(seconds / 2, (0, 0, 0), warming=1, gap_share=0.0), 1)
    meter = Meter(server.pid, shared=False)
    generator = make_generator(suite, room, [server.build])
    (load,) = generator.alternate([server.address], step, share, [meter])
    return load, meter


def _costs(stub: Suite, server: Server) -> list[Figure]:
    """Return the CPU time of the script by statement, and the throughput ratio to a plain event."""
    rates: dict[str, list[float]] = {"plain": [], "kinds": []}
    costs: list[float] = []
    for pair in range(PAIRS):
        for name in ("plain", "kinds") if pair % 2 else ("kinds", "plain"):
            load, meter = _work(stub, server, name, PAIRED_SECONDS)
            rates[name].append(load.queries / load.seconds)
            if name == "kinds":
                costs.append(dict(meter.per_query(load.watched_queries))["client_cpu_us_per_op"])
    ratios = [kinds / plain for kinds, plain in zip(rates["kinds"], rates["plain"], strict=True)]
    core = statistics.median(costs) * STATEMENTS_A_SECOND / 1e6
    low, _, high = statistics.quantiles(ratios, n=4)
    spread = f"half of {PAIRS} pairs from {low:.3f} to {high:.3f}"
    return [
        Figure("script, of a core for 10,000 statements/s", core, "cores", at_most=MAX_COST),
        Figure(
            "throughput, kinds over plain events",
            statistics.median(ratios),
            "",
            at_least=MIN_RATIO,
            note=spread,
        ),
    ]


def _waiting(stub: Suite, server: Server) -> list[Figure]:
    """Return mean waiting at each load over that of an M/D/1 queue: u s / (2 (1 - u)) for a service time s.

    L. Kleinrock, Queueing Systems, volume 1, 1975, section 5.7.
    """
    closed, _ = _work(stub, server, "wait", CLOSED_SECONDS)
    service = closed.seconds / closed.transactions
    figures = []
    for share in LOADS:
        load, _ = _work(stub, server, "wait", OPEN_SECONDS, share / service)
        used = (load.due or 0) * service / load.seconds
        waiting = load.latency_ms["mean"] / 1000 - service
        theory = used * service / (2 * (1 - used)) if used < 1 else float("inf")
        note = (
            f"waited {1000 * waiting:.2f} ms, theory {1000 * theory:.2f} ms at {used:.3f} of the throughput"
        )
        name = f"mean waiting at {share:g} of the throughput / theory"
        figures.append(
            Figure(name, waiting / theory, "", at_least=1 - MAX_OFF, at_most=1 + MAX_OFF, note=note)
        )
    return figures


def _mix(home: Home, folder: Path) -> Iterator[Figure]:
    """Yield the shares of what Postgres received in MIX_SECONDS of tpcc."""
    suite = load_suite("tpcc")
    (step,) = suite.select(("mix",), "smoke")
    room = sizes(suite, suite.profile("smoke"), this_machine(), [step])
    with loaded_server(suite, ENGINES[0], home, folder / "mix") as server:
        generator = make_generator(suite, room, [server.build])
        load = generator.run(server.address, step, WorkLimit(MIX_SECONDS, None), Meter(server.pid))
        yield from mix_figures(server, load)


def _faults(home: Home, folder: Path, name: str, number: int) -> Figure:
    suite = load_suite(name)
    step = {"payments": "payments-keep", "shop": "select-user-by-id"}[name]
    room = sizes(suite, suite.profile("smoke"), this_machine(), suite.steps)
    with loaded_server(suite, ENGINES[number], home, folder / f"{name}{number}") as server:
        load, _ = _work(suite, server, step, 1)
        committed = Counter(committed_in(load))
        planted, missed = unseen(server.address, suite, committed, room.data.rows_by_table)
    title = f"{name} on {ENGINES[number].engine}: faults that no check saw"
    return Figure(title, len(missed), "", at_most=0, note="; ".join(missed) or f"{planted} planted")


def _kills(home: Home, folder: Path, name: str, number: int) -> Figure:
    """Return the transactions that are not there, or are there by halves, after KILLS kills."""
    witnessed = WitnessedSuite(load_suite(name), folder / f"seen-{name}{number}")
    suite = witnessed.suite
    room = sizes(suite, suite.profile("smoke"), this_machine(), suite.steps)
    with loaded_server(
        suite, ENGINES[number], home, folder / f"kills-{name}{number}", Durability.FULL
    ) as server:
        total, wrong = KilledServer(server, witnessed, room, "smoke").kill_often(KILLS, SEED + number)
    title = f"{name} on {ENGINES[number].engine}: wrong after {KILLS} kills"
    return Figure(
        title, len(wrong), "", at_most=0, note="; ".join(wrong) or f"{total} transactions seen committed"
    )

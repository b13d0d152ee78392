"""One interrupted session by hand, with one step for each outcome of a comparison."""

from collections.abc import Mapping

from history.store.records import SessionStatus
from history.store.writer import Store
from tests.history.handmade import run_record, session_start

BASE, CONTENDER = "postgres@17.11", "postgres@18.6"


def values_of(qps: float, cost: float, cv: float) -> dict[str, float]:
    """A run whose costs per query are `cost` times those of the base; everything it reads is cached."""
    return {
        "qps": qps,
        "server_cpu_us_per_op": 80 * cost,
        "client_cpu_us_per_op": 25.0,
        "server_cs_per_op": 2.5 * cost,
        "server_read_kb_per_op": 0.0,
        "server_written_kb_per_op": 6.4 * cost,
        "wal_bytes_per_op": 410 * cost,
        "latency_p99_ms": 3.2 * cost,
        "qps_cv": cv,
        "qps_p1_over_median": 0.8,
        "transactions": 1000.0,
    }


# step -> QPS of base, of contender, and the contender's costs; 0 is a failed run.
OUTCOMES: Mapping[str, tuple[list[float], list[float], float]] = {
    "update-inlist": ([4210, 4190, 4200], [4205, 4195, 4200], 1.0),
    "update-index": ([21000, 21100, 20950], [25200, 25340, 25120], 0.85),
    "update-nonindex": ([24000, 24100, 23900], [20400, 20460, 20330], 1.18),
    "update-one": ([6100, 7400, 5600], [7000, 5500, 7200], 1.01),
    "update-zipf": ([22000, 22050, 21980], [22100, 0, 22040], 1.0),
    "read-write-range100": ([900, 905, 902], [0, 0, 0], 1.0),
    "delete": ([18000, 18030, 17980], [26500, 26540, 26470], 1.0),
    "insert": ([31000, 31050, 30900], [], 1.0),
}


def _record_step(store: Store, session: int, step_position: int, step: str) -> None:
    *both, cost = OUTCOMES[step]
    for version, costs, rates in zip((BASE, CONTENDER), (1.0, cost), both, strict=True):
        for repetition, qps in enumerate(rates, start=1):
            varies_more = step == "update-index" and version == CONTENDER
            record = run_record(
                values_of(qps, costs, 0.31 if varies_more else 0.12),
                version=version,
                step=step,
                step_position=step_position,
                repetition=repetition,
                position=step_position * 10 + repetition,
                failure=None if qps else "the server stopped: could not write to file 'pg_wal'",
            )
            store.record_run(session, record)


def record_outcomes(store: Store) -> None:
    """Record the session."""
    session = store.start_session(session_start("20260301-0200-db1"))
    for step_position, step in enumerate(OUTCOMES, start=1):
        _record_step(store, session, step_position, step)
    store.finish_session(session, SessionStatus.INTERRUPTED)

"""A session whose runs have CPU profiles, made by hand: the contender burns more in each query."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from history.open import open_store
from history.store.records import SessionStatus
from suites.measurement import Measurement
from suites.profiling.stacks import StepProfile
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
STEP = "update-index"

OLD = {
    "client backend;main;PostgresMain;exec_execute_message;heap_update": 400,
    "client backend;main;PostgresMain;exec_execute_message;XLogInsert": 300,
    "client backend;main;PostgresMain;secure_read;[unknown]": 10,
    "checkpointer;main;CheckpointerMain;BufferSync": 90,
    "walwriter;main;WalWriterMain;XLogBackgroundFlush": 50,
}
NEW = {
    **OLD,
    "client backend;main;PostgresMain;exec_execute_message;heap_update;tidemark_burn": 250,
    "client backend;main;PostgresMain;exec_execute_message;XLogInsert": 270,
}


def profile(stacks: Mapping[str, int], number: int = 0) -> StepProfile:
    """Of 10,000 queries; each round has a few samples more of everything."""
    return StepProfile(
        "cpu-clock", 1000.0, 10_000.0, 1, {stack: count + number for stack, count in stacks.items()}
    )


def record_profiled(path: Path, *, base: str = BASE, profiles: bool = True) -> None:
    """Three rounds of one step: 30 % slower, and the profiles say where."""
    with open_store(path, clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        for place, (version, qps, stacks) in enumerate(((base, 1000.0, OLD), (CONTENDER, 700.0, NEW))):
            for number in (1, 2, 3):
                values = {"qps": qps + number, "server_cpu_us_per_op": 85.0 / qps * 1000}
                record = run_record(
                    values, version=version, step=STEP, repetition=number, position=3 * place + number
                )
                taken = profile(stacks, number * (1 + place)) if profiles else None
                store.record_run(session, replace(record, measurement=Measurement(values, (), (), taken)))
        store.finish_session(session, SessionStatus.FINISHED)

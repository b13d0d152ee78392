"""Records runs until it is done or killed, and says the id of each that is durable.

python -m tests.history.writer PATH UID COUNT
"""

import sys
from pathlib import Path

from history.open import open_store
from history.store.records import SessionStatus
from tests.history.handmade import run_record, session_start

METRICS_EACH = {"qps": 1000.0, "tps": 100.0, "latency_p99_ms": 5.0}
SAMPLES_EACH = 50


def write(path: Path, uid: str, count: int) -> None:
    with open_store(path) as store:
        session = store.start_session(session_start(uid, repetitions=count))
        for repetition in range(1, count + 1):
            seconds = (1000.0,) * SAMPLES_EACH
            record = run_record(METRICS_EACH, repetition=repetition, per_second=seconds)
            print(store.record_run(session, record), flush=True)
        store.finish_session(session, SessionStatus.FINISHED)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))

"""A box of a made-up fleet: records rounds of sessions as fast as it can, and logs each.

python -m benchmarks.scale.writer URL HOME BOX SECONDS LOG [eager]

The log has a line `+ UID STEP ROUND QPS` before a round is recorded, and one with `=` once it is. With
`eager`, a history that is away is tried again after a fraction of a second. At its end it prints when it
began and when all was in the history, and the seconds that each round took, one a line.
"""

import secrets
import sys
import time
from pathlib import Path

from benchmarks.scale.sessions import STEPS, round_of, session_start
from build.home import Home
from history.spool import spooled_store
from history.spool.opening import open_recorded
from history.store.records import SessionStatus

ROUNDS = 8
"""Rounds of a step in a session."""

EAGER_SECONDS, EAGER_PATIENCE = 0.3, 2.0


def main(url: str, home: str, box: str, seconds: float, log: Path) -> list[float]:
    """Record until the time is over; return how long each round took."""
    taken: list[float] = []
    until = time.monotonic() + seconds
    with open_recorded(url, Home(Path(home))) as store, log.open("a", encoding="utf-8") as written:
        while time.monotonic() < until:
            uid = f"{box}-{secrets.token_hex(4)}"
            session = store.start_session(session_start(box, uid, ROUNDS))
            for number in range(ROUNDS * len(STEPS)):
                step, repetition, qps = number % len(STEPS), 1 + number // len(STEPS), 1000.0 + number
                records = round_of(step, repetition, qps, 1 + 2 * number)
                said = f"{uid} {STEPS[step]} {repetition} {qps}\n"
                written.write(f"+ {said}")
                written.flush()
                began = time.perf_counter()
                store.record_runs(session, records)
                taken.append(time.perf_counter() - began)
                written.write(f"= {said}")
                written.flush()
            store.finish_session(session, SessionStatus.FINISHED)
    return taken


if __name__ == "__main__":
    if "eager" in sys.argv[6:]:
        spooled_store.RETRY_SECONDS = spooled_store.LONGEST_RETRY_SECONDS = EAGER_SECONDS
        spooled_store.SEND_SECONDS, spooled_store.PATIENCE_SECONDS = 0.1, EAGER_PATIENCE
    started = time.time()
    found = main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), Path(sys.argv[5]))
    print("\n".join(map(str, [started, time.time(), *found])))

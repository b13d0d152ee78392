"""Sessions with companions on real servers: what fails is one step, and a killed Tidemark leaves nothing."""

import psutil
import pytest

from build.finished_build import Build
from build.home import Home
from runners.measuring.cleanup import sweep
from tests.runners.measuring.test_faults import (
    below,
    finish,
    in_the_middle_of_a_step,
    nothing_left,
    rows,
    start_session,
    statuses,
    wait_for,
)

pytestmark = pytest.mark.server

FAILED_ONCE = {"update-index": "failed", "insert": "finished"}


@pytest.mark.parametrize(
    ("name", "program"), [("pgbouncer", "pgbouncer"), ("logical-consumer", "pg_recvlogical")]
)
def test_a_companion_killed_in_a_step_fails_that_step_only(
    home: Home, postgres_18: Build, name: str, program: str
) -> None:
    with start_session(home, "--with", f"companion={name}") as session:
        in_the_middle_of_a_step(session)
        below(session, program)[0].kill()
        code, said = finish(session)
    assert code == 2, said
    assert f"companion {name}" in said
    assert "killed by SIGKILL" in said
    assert statuses(home) == FAILED_ONCE
    metrics = {row[0] for row in rows(home, "SELECT DISTINCT metric FROM measurements")}
    assert {"companion_cpu_us_per_op", "companion_lag_bytes"} <= metrics
    nothing_left(home)


def test_tidemark_killed_leaves_no_companion_and_no_slot(home: Home, postgres_18: Build) -> None:
    with start_session(home, "--with", "companion=physical-consumer") as session:
        in_the_middle_of_a_step(session)
        (consumer,) = below(session, "pg_receivewal")
        session.kill()
        session.communicate()
    wait_for(lambda: not consumer.is_running() or consumer.status() == psutil.STATUS_ZOMBIE)
    assert list(home.data.glob("*/*/data/pg_replslot/tidemark_physical"))
    # What the next session begins with.
    assert len(sweep(home)) == 1
    nothing_left(home)

"""What versions leave behind after the one reset of a step in long mode."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.open import open_store
from history.store.records import SessionStatus
from suites.metrics import QPS, TRANSACTIONS
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
RESET = {"index_bytes": 50e6, "table_bytes": 90e6, "reset_seconds": 3.0, "reset_wal_bytes": 2e6}
MORE = {**RESET, "index_bytes": 62e6, "reset_seconds": 6.0}


@pytest.mark.parametrize(
    ("mode", "faster", "after", "told"),
    [
        (
            "long",
            1.0,
            MORE,
            "leaves more behind, in its one reset: reset seconds +100.0 %, index bytes +24.0 %",
        ),
        (
            "long",
            1.1,
            MORE,
            "leaves more behind, in its one reset: reset seconds +100.0 %, index bytes +24.0 %; the step is "
            "faster",
        ),
        ("long", 1.3, {**MORE, "reset_seconds": 3.6}, ""),  # no more of it per transaction
        (
            "long",
            1.0,
            {**RESET, "table_bytes": 70e6},
            "leaves less behind, in its one reset: table bytes -22.2 %",
        ),
        ("long", 1.0, {**RESET, "table_bytes": 95e6, "reset_seconds": 4.0}, ""),
        ("rounds", 1.0, MORE, ""),
    ],
)
def test_what_one_reset_shows_is_told(
    tmp_path: Path, mode: str, faster: float, after: Mapping[str, float], told: str
) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(repetitions=3), options={"mode": mode}))
        for number in (1, 2, 3):
            for version, factor, reset in ((BASE, 1.0, RESET), (CONTENDER, faster, after)):
                done = factor * (1000.0 + number)
                values = {QPS: done, TRANSACTIONS: 20 * done, **(reset if number == 3 else {})}
                store.record_run(session, run_record(values, version=version, repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(CONTENDER)])
    (step,) = compared.contenders[0].steps
    assert [finding.text for finding in step.findings] == ([told] if told else [])
    assert exit_code(compared) == 0

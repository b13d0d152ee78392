"""Steps that the declared disk bounds, as compare.py tells them."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.open import open_store
from history.store.records import SessionStatus
from suites.accounting.activity import DISK_LIMIT, Activity
from suites.metrics import QPS
from tests.history.comparison.findings.test_onset import BASE, CONTENDER
from tests.history.handmade import NIGHT, run_record, session_start

NEVER, MOSTLY, SOMETIMES = (
    (),
    (Activity(DISK_LIMIT, 1, 8), Activity(DISK_LIMIT, 10, 20)),
    (Activity(DISK_LIMIT, 3, 6),),
)


@pytest.mark.parametrize(
    ("disk", "base", "contender", "told"),
    [
        (
            "500iops",
            MOSTLY,
            MOSTLY,
            "update: at the limit of the declared disk, 500iops, in 95 % of the seconds, base 95 %: the "
            "ratio is that of what they ask of the disk, and does not show their CPU",
        ),
        (
            "500iops",
            SOMETIMES,
            MOSTLY,
            "update: at the limit of the declared disk, 500iops, in 95 % of the seconds, base 20 %: the disk "
            f"bounds {CONTENDER} only",
        ),
        (
            "500iops",
            MOSTLY,
            NEVER,
            "update: at the limit of the declared disk, 500iops, in 0 % of the seconds, base 95 %: the disk "
            f"bounds {BASE} only",
        ),
        ("500iops", SOMETIMES, NEVER, ""),
        ("", MOSTLY, MOSTLY, ""),
    ],
)
def test_a_step_at_the_limit_of_its_disk_is_told(
    tmp_path: Path, disk: str, base: tuple[Activity, ...], contender: tuple[Activity, ...], told: str
) -> None:
    options = {"mode": "rounds", **({"disk": disk} if disk else {})}
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(repetitions=3), options=options))
        for number in (1, 2, 3):
            for version, activities in ((BASE, base), (CONTENDER, contender)):
                run = run_record(
                    {QPS: 1000.0 + number},
                    version=version,
                    step="update",
                    repetition=number,
                    per_second=(1000.0,) * 20,
                    activities=activities,
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(CONTENDER)])
    (step,) = compared.contenders[0].steps
    assert [finding.line for finding in step.findings] == ([told] if told else [])
    assert exit_code(compared) == 0

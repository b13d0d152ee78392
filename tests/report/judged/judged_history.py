"""A history whose sessions are judged by other metrics than throughput, made by hand: a suite for each.

On the last nights the step `worse` has 15 % more of what less is better of, `better` a tenth less, and
`failing` fails on the contender in the last one. In one more suite a session that counts instructions comes
after one that is timed, as with `--exact-only` by hand.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from history.changes.confirmation import ConfirmationRequest, Confirms
from history.changes.detector import judge
from history.comparison.exact import MAX_PASSES
from history.comparison.pairs import noise_of
from history.open import open_store
from history.store.records import EXACT, ONLY, PRIMARY_METRIC, RunRecord, SessionStatus
from history.store.writer import Store
from suites.metrics import CONNECTION_KIB, INSTRUCTIONS
from tests.history.handmade import NIGHT, run_record, session_start
from tests.report.rich import commit

BASE, BRANCH = "postgres@17.11", "postgres@master"
LATENCY, MEMORY, SECONDS = "latency_p99_ms", CONNECTION_KIB, "statement_seconds"
METRICS = (LATENCY, MEMORY, SECONDS, INSTRUCTIONS)
FACTORS = {"worse": 1.15, "better": 0.9, "same": 1.0}
NIGHTS, SINCE = 40, 33
"""The nights of each suite, and the first one in which the branch differs."""

MIXED = "mixed"
SLOWER, MORE = 0.93, 1.07
"""In the mixed suite: what is left of the throughput, and the instructions."""

CONFIRMED_BY = 0.05
"""The threshold of the plan when the change of memory was confirmed, as a fraction."""

Values = Callable[[str, str], float]
"""Gives the value of a step by version, with noise."""


def suite_of(metric: str) -> str:
    """Return the suite whose sessions a metric judges."""
    return f"by-{metric.replace('_', '-')}"


class JudgedHistory:
    """Writes the history."""

    def __init__(self, path: Path) -> None:
        self.random = random.Random(11)
        self.passes = random.Random(7)
        self.moment = NIGHT
        self.store: Store = open_store(path, clock=lambda: self.moment)

    def write(self) -> None:
        """Write all nights and one confirmation, and judge them."""
        for metric in (LATENCY, MEMORY, SECONDS):
            self._calibrate(metric)
        for number in range(1, NIGHTS + 1):
            for place, metric in enumerate(METRICS):
                self.moment = NIGHT + timedelta(days=number, minutes=10 * place)
                self.night(metric, number)
            if number == SINCE:
                self._confirm(number)
        for number, metric in ((NIGHTS - 1, "qps"), (NIGHTS, INSTRUCTIONS)):
            self.moment = NIGHT + timedelta(days=number, hours=2)
            factor = SLOWER if metric == "qps" else MORE
            values = self._values(metric, {"insert": factor})
            self.session(f"mixed-{number}", MIXED, metric, ("insert",), values)
        judge(self.store.database, clock=lambda: self.moment)
        self.store.close()

    def night(self, metric: str, number: int) -> None:
        """Record one night of the suite of a metric."""
        factors = FACTORS if number >= SINCE else dict.fromkeys(FACTORS, 1.0)
        failing = "failing" if number == NIGHTS else ""
        steps = (*FACTORS, "failing")
        uid = f"{metric}-{number:02}"
        versions = (BASE, commit(number))
        values = self._values(metric, factors)
        self.session(uid, suite_of(metric), metric, steps, values, failing, versions)

    def session(
        self,
        uid: str,
        suite: str,
        metric: str,
        steps: tuple[str, ...],
        values: Values,
        failing: str = "",
        versions: tuple[str, str] = (BASE, commit(NIGHTS)),
        rounds: int = 3,
        options: Mapping[str, object] | None = None,
    ) -> int:
        """Record a session that is judged by a metric."""
        start = session_start(uid, rounds, suite)
        given = {**_options(metric, versions), **(options or {})}
        session = self.store.start_session(replace(start, options=given))
        records: list[RunRecord] = []
        for position, step in enumerate(steps, start=1):
            for number in range(1, (MAX_PASSES if metric == INSTRUCTIONS else rounds) + 1):
                for version in versions:
                    is_broken = step == failing and version != versions[0]
                    record = run_record(
                        {metric: values(step, version)},
                        version=version,
                        step=step,
                        step_position=position,
                        repetition=number,
                        position=len(records) + 1,
                        failure="the server stopped: out of memory" if is_broken else None,
                    )
                    records.append(replace(record, started_at=self.moment, ended_at=self.moment))
        self.store.record_runs(session, records)
        self.store.finish_session(session, SessionStatus.FINISHED)
        return session

    def _values(self, metric: str, factors: Mapping[str, float], old: str = BASE) -> Values:
        draws, noise = (self.passes, 0.0002) if metric == INSTRUCTIONS else (self.random, 0.002)

        def value(step: str, version: str) -> float:
            factor = 1.0 if version == old else factors.get(step, 1.0)
            return 8000.0 * factor * draws.lognormvariate(0, noise)

        return value

    def _calibrate(self, metric: str) -> None:
        twin = f"{BASE}#twin"
        values, versions = self._values(metric, {}), (BASE, twin)
        steps = tuple(FACTORS)
        uid = f"calibration-{metric}"
        session = self.session(uid, suite_of(metric), metric, steps, values, versions=versions, rounds=10)
        self.store.record_noise(session, noise_of(self.store.runs(session), BASE, twin))

    def _confirm(self, number: int) -> None:
        self.moment += timedelta(hours=1)
        uids = (f"{MEMORY}-{number - 1:02}", f"{MEMORY}-{number:02}")
        confirms = Confirms(ConfirmationRequest.NEW, BRANCH, *uids, ("worse",), CONFIRMED_BY)
        old, new = commit(number - 1), commit(number)
        self.session(
            "confirming",
            suite_of(MEMORY),
            MEMORY,
            ("worse",),
            self._values(MEMORY, FACTORS, old),
            versions=(old, new),
            rounds=6,
            options={"confirms": confirms.option()},
        )


def _options(metric: str, versions: tuple[str, ...]) -> dict[str, object]:
    branches = {version: BRANCH for version in versions if version.startswith("postgres@git:")}
    options: dict[str, object] = {"versions": list(versions), "branches": branches, "threads": 8}
    if metric == INSTRUCTIONS:
        return {**options, EXACT: {"tool": "valgrind-3.19.0", "passes": 2, "when": ONLY}}
    return options if metric == "qps" else {**options, PRIMARY_METRIC: metric}

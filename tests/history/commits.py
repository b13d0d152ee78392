"""Nights of a branch that moves by a commit each, and sessions that confirm what looked changed, by hand."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from history.changes.confirmation import ConfirmationRequest, Confirms
from history.changes.detector import DetectionReport, judge
from history.store.records import Machine, SessionStatus
from history.store.writer import Store
from tests.history.handmade import MACHINE, record_steps, session_start
from tests.history.watched import night

BASE, BRANCH = "postgres@17.11", "postgres@master"
STEPS = ("insert", "delete", "update-one", "update-index")
ROUNDS = 3
ROUND_NOISE, NIGHT_NOISE = 0.01, 0.004
GROUPS = {"update-one": "updates", "update-index": "updates"}


def commit(number: int) -> str:
    return f"postgres@git:{number:012x}"


class Commits:
    """Writes nights; in night n the branch is at commit n. Factors are by step, of the contender's speed."""

    def __init__(self, store: Store, seed: int = 5) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.count = 0
        self.machine: Machine = MACHINE
        self.steps = STEPS
        self.mode = "rounds"
        self.versions = [""]
        """What each night measured beside the base, by its number."""

    def clock(self) -> datetime:
        return night(self.count)

    def more(self, count: int, factors: Mapping[str, float] | None = None, version: str = "") -> None:
        """So many nights at these speeds."""
        for _ in range(count):
            self.count += 1
            new = version or commit(self.count)
            self.versions.append(new)
            self._session(f"night-{self.count}", (BASE, new), factors or {}, {"branches": {new: BRANCH}})

    def confirm(
        self,
        factors: Mapping[str, float] | None = None,
        *,
        old: int = 0,
        steps: Sequence[str] = ("insert",),
        question: ConfirmationRequest = ConfirmationRequest.NEW,
        change: str = "",
        rounds: int = 8,
        status: SessionStatus = SessionStatus.FINISHED,
        uid: str = "",
    ) -> int:
        """ScreenedNight's commit against an earlier night's, by default last night's."""
        old = old or self.count - 1
        confirms = Confirms(
            question, BRANCH, f"night-{old}", f"night-{self.count}", tuple(steps), 0.02, change
        )
        options = {
            "confirms": confirms.option(),
            "rounds": {"least": 3, "cap": 20, "until_decided": True},
        }
        uid = uid or f"night-{self.count}-{question}"
        both = (self.versions[old], self.versions[self.count])
        return self._session(uid, both, factors or {}, options, steps, rounds, ROUND_NOISE / 2, status)

    def judge(self) -> DetectionReport:
        return judge(self.store.database, clock=self.clock)

    def _session(
        self,
        uid: str,
        versions: tuple[str, str],
        factors: Mapping[str, float],
        options: dict[str, Any],
        steps: Sequence[str] = (),
        rounds: int = ROUNDS,
        noise: float = ROUND_NOISE,
        status: SessionStatus = SessionStatus.FINISHED,
    ) -> int:
        base, new = versions
        rates = {}
        for step in steps or self.steps:
            tonight = factors.get(step, 1.0) * self.random.lognormvariate(0, NIGHT_NOISE if not steps else 0)
            bases = [1000 * self.random.lognormvariate(0, 0.05) for _ in range(rounds)]
            news = [rate * tonight * self.random.lognormvariate(0, noise) for rate in bases]
            rates[step] = {base: bases, new: news}
        start = replace(
            session_start(uid),
            machine=self.machine,
            options={"mode": self.mode, "versions": list(versions), "groups": GROUPS, **options},
        )
        return record_steps(self.store, start, rates, status)

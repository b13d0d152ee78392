"""Nights of boxes that form a pool: each series on one of them, and what is said when it moves."""

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from build.home import Home
from build.progress import Silent
from build.version import parse_version
from history.errors import HistoryError
from history.open import open_store
from history.store.records import Machine
from history.store.writer import Store
from report.writing.site import SiteOptions, write_site
from runners.bisect.run import builds as bisect_builds
from runners.cli import main
from runners.measuring import session as session_module
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.backfill_plan import Backfill
from runners.nightly.night import measure, measure_past
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan, PlanError
from runners.nightly.pools.share import find_demands
from runners.nightly.report import report
from runners.nightly.summary import summary
from runners.nightly.work import request_of
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start
from tests.runners.nightly.pretended import BRANCH, Lab

pytestmark = pytest.mark.deep("months of simulated nights")

BASE = "postgres@17.11"
SERVER = "postgresql+psycopg://tests@nowhere/none"
"""What the plan says; the history of the tests is a file."""

SUITES = ("write-heavy", "pgbench", "oltp-sweep", "payments", "tpch", "connections")


class PooledBoxes:
    """Boxes with one history, whose sessions are not real."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.day = folder, 0
        self.releases = ["18.1", "18.2", "16.1"]
        self.asked: defaultdict[str, list[Request]] = defaultdict(list)
        self._box = ""

    @property
    def history(self) -> Path:
        return self.folder / "history.db"

    def plan(self, **changes: Any) -> Plan:
        boxes = {name: {"label": f"label-{name}", "pool": "fast"} for name in "abcd"}
        alone = {"solo": {"label": "solo"}}
        tasks = [{"suite": suite, "profile": "smoke"} for suite in SUITES]
        tracked = {"base": BASE, "releases": self.releases}
        whole = {"boxes": boxes | alone, "engines": {"postgres": tracked}, "tasks": tasks, "history": SERVER}
        return Plan.model_validate(whole | changes)

    def clock(self) -> datetime:
        return NIGHT + timedelta(days=self.day)

    def night(self, box: str, **changes: Any) -> NightResult:
        self._box = box
        with open_store(self.history, clock=self.clock) as store:
            return measure(self.plan(**changes), box, f"host-{box}", Home(self.folder / box), store, Silent())

    def run_session(self, request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        self.asked[self._box].append(request)
        versions = [str(version) for version in request.versions]
        start = replace(
            session_start(f"{self._box}-{self.day}-{len(self.asked[self._box])}"),
            machine=replace(MACHINE, hostname=f"host-{self._box}", fingerprint=self._box),
            suite=request.suite.name,
            profile=request.profile_name,
            options={
                "mode": request.profile.mode,
                "seconds": request.profile.seconds,
                "settings": {},
                "versions": versions,
                "branches": dict(request.branches),
            },
        )
        record_steps(store, start, {"insert": {version: [1.0] for version in versions}})
        return SessionOutcome(uid=start.uid)


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PooledBoxes:
    boxes = PooledBoxes(tmp_path)
    monkeypatch.setattr(night_module, "run_session", boxes.run_session)
    return boxes


def measured(boxes: PooledBoxes) -> dict[str, set[tuple[str, str]]]:
    """Suite and release of every session, by box."""
    return {
        box: {(request.suite.name, str(version)) for request in asked for version in request.versions[1:]}
        for box, asked in boxes.asked.items()
    }


def test_every_release_is_measured_once_in_the_pool_and_once_beside_it(boxes: PooledBoxes) -> None:
    for box in ("a", "b", "c", "d", "solo", "a", "d"):
        boxes.night(box)
    all_of_them = {(suite, f"postgres@{release}") for suite in SUITES for release in boxes.releases}
    found = measured(boxes)
    assert found.pop("solo") == all_of_them
    assert set.union(*found.values()) == all_of_them
    assert sum(map(len, found.values())) == len(all_of_them)
    assert sum(map(bool, found.values())) >= 3


def test_a_series_moves_when_its_box_is_gone_and_says_so(
    boxes: PooledBoxes, capsys: pytest.CaptureFixture[str]
) -> None:
    for box in "abcd":
        boxes.night(box)
    lost = measured(boxes)["a"]
    for boxes.day in range(1, 4):
        assert [boxes.night(box).outcome for box in "bcd"] == ["nothing is new"] * 3
    boxes.day = 4
    nights = [boxes.night(box) for box in "bcd"]
    assert {pair for box in "bcd" for pair in measured(boxes)[box]} >= lost
    told = summary(nights[0], None, [], boxes.clock())
    assert "Pool fast: a series that is handed on begins anew on its new box." in told
    assert "a had no night for 3 nights, and hands it on to" in told

    assert main(["history", "show", "--history", str(boxes.history), "--machine", "host-a"]) == 0
    shown = capsys.readouterr().out
    assert nights[0].pool is not None
    assert shown.count("a had no night for 3 nights") == len(nights[0].pool.handed_over) > 0


def test_a_night_without_the_history_measures_what_was_placed_last(
    boxes: PooledBoxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes.night("a")
    before = {suite for suite, _ in measured(boxes)["a"]}
    assert 0 < len(before) < len(SUITES)

    def away(*_: object) -> None:
        raise HistoryError("the server does not answer")

    monkeypatch.setattr(night_module, "begin_in_pool", away)
    boxes.asked.clear()
    boxes.releases.append("18.3")
    known, unknown = boxes.night("a"), boxes.night("b")
    # The placement is of a line of versions: what follows 18.2 is measured by whoever measured that.
    assert {release for _, release in measured(boxes)["a"]} == {"postgres@18.3"}
    assert {suite for suite, _ in measured(boxes)["a"]} <= before
    assert "what was placed last is measured: the server does not answer" in known.problems[0]
    assert "b" not in boxes.asked
    assert "nothing of the pool is measured" in unknown.problems[0]


def test_the_report_says_what_moved(boxes: PooledBoxes, tmp_path: Path) -> None:
    for box in "abcd":
        boxes.night(box)
    for boxes.day in range(1, 5):
        boxes.night("b")
    for name, options in (
        ("own", SiteOptions(tmp_path / "own")),
        ("public", SiteOptions(tmp_path / "public", True)),
    ):
        with open_store(boxes.history, clock=boxes.clock) as store:
            write_site(store, options, Silent())
        pages = [path.read_text() for path in (tmp_path / name / "machines").rglob("*.html")]
        pages = [page for page in pages if "Fingerprints over time" in page]
        assert len(pages) == 4
        assert all("Series handed on" in page and "had no night for 3 nights" in page for page in pages)
        assert any("host-b" in page for page in pages) == (name == "own")


def test_a_task_of_one_box_is_not_shared(boxes: PooledBoxes) -> None:
    tasks = [{"suite": suite, "profile": "smoke", "boxes": ["b", "solo"]} for suite in SUITES]
    for box in ("a", "b", "c", "solo"):
        boxes.night(box, tasks=tasks)
    found = measured(boxes)
    assert found.keys() == {"b", "solo"}
    assert found["b"] == found["solo"]


def test_the_history_knows_how_long_a_task_takes(boxes: PooledBoxes) -> None:
    """A session of a base and two releases took 90 minutes: one release beside the base takes 60."""
    tasks = [{"suite": "write-heavy", "profile": "smoke"}]
    boxes.releases = ["18.1", "16.1"]
    plan = boxes.plan(tasks=tasks)
    with open_store(boxes.history, clock=boxes.clock) as store:
        with store.database.reading() as connection:
            planned = find_demands(plan, "ab", connection, boxes.clock())
        ticks = iter((NIGHT, NIGHT + timedelta(minutes=90)))
        with open_store(boxes.history, clock=ticks.__next__) as slow:
            versions = tuple(map(parse_version, (BASE, "postgres@18.1", "postgres@16.1")))
            boxes.run_session(request_of(plan.tasks[0], versions), Home(boxes.folder), slow, None)
        with store.database.reading() as connection:
            known = find_demands(plan, "ab", connection, boxes.clock() + timedelta(days=1))
    assert {demand.minutes for demand in known.values()} == {60}
    assert all(0 < demand.minutes < 60 for demand in planned.values())
    assert {demand.boxes for demand in known.values()} == {frozenset("ab")}


class Twins(Lab):
    """Two boxes of a pool whose servers are equally fast: the second one of a series confirms."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self.box = "x"
        monkeypatch.setattr(session_module, "describe", lambda _: self._machine())

    def _machine(self) -> Machine:
        return replace(MACHINE, hostname=f"host-{self.box}", fingerprint=self.box)

    def both(self) -> Plan:
        named = {name: {"label": name, "pool": "fast", "budget_minutes": 100.0} for name in "xy"}
        return self.plan(boxes=named, history=SERVER, pools={"fast": {"confirm": "other"}})

    def on(self, box: str) -> NightResult:
        self.box = box
        with open_store(self.home.history, clock=self.clock) as store:
            return measure(self.both(), box, f"host-{box}", self.home, store, Silent())


def test_the_second_box_of_a_pool_replicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twins = Twins(tmp_path, monkeypatch)
    for twins.day in (1, 2):
        twins.commit()
        outcomes = {box: twins.on(box).outcome for box in "xy"}
    assert sorted(outcomes.values()) == ["1 of 1 version measured", "nothing is new"]
    (own,) = (box for box, outcome in outcomes.items() if outcome != "nothing is new")
    (other,) = set("xy") - {own}
    twins.day = 3
    old, new = list(twins.speeds)[-1], twins.commit({"insert": 0.92})
    assert twins.on(own).outcome == "1 of 1 version measured"
    night = twins.on(other)
    assert night.outcome == "1 suspicion looked into"
    suspicion = f"{BRANCH} of {own}: has it changed in insert: {old} against {new}"
    assert str(night.examined[0].suspicion) == suspicion
    assert [twins.on(box).outcome for box in (own, other)] == ["nothing is new"] * 2
    with open_store(twins.home.history) as store:
        found = report(twins.both(), twins.home, store)
        write_site(store, SiteOptions(tmp_path / "site"), Silent())
    (change,) = found.new
    assert {member.key.environment.box for member in change.change.members} == {f"host-{own}"}
    assert f"replicated on host-{other}: " in summary(night, found, [], NIGHT)
    pages = [path.read_text() for path in (tmp_path / "site" / "changes").rglob("*.html")]
    assert any("2 boxes have it: it is not one machine&#39;s doing." in page for page in pages)


def test_a_box_confirms_by_itself_until_another_one_had_a_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = Twins(tmp_path, monkeypatch)
    outcomes = []
    for twins.day in range(3):
        twins.commit({"insert": 0.92} if twins.day == 2 else {})
        outcomes.append(twins.on("y").outcome)  # to which the hash gives the series
    assert outcomes == [*["1 of 1 version measured"] * 2, "1 of 1 version measured, 1 suspicion looked into"]


def test_past_commits_are_measured_on_the_box_of_their_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path, monkeypatch)
    monkeypatch.setattr(bisect_builds, "provide", lab.provide)
    monkeypatch.setattr(bisect_builds, "require_clean", lambda build: None)
    lab.commit(at=NIGHT - timedelta(days=20))
    lab.commit(at=NIGHT)
    both = {name: {"label": name, "hostname": name, "pool": "fast"} for name in "xy"}
    asked = Backfill(branch=BRANCH, since="2026-02-01")

    def fill(box: str) -> NightResult:
        with open_store(lab.home.history, clock=lab.clock) as store:
            return measure_past(
                lab.plan(boxes=both, history=SERVER), box, MACHINE.hostname, lab.home, store, Silent(), asked
            )

    outcomes = {}
    for box in "xy":
        try:
            outcomes[box] = fill(box).outcome
        except PlanError as error:
            outcomes[box] = str(error)
    assert sum("past commit" in outcome for outcome in outcomes.values()) == 1, outcomes
    (owner,) = (box for box, outcome in outcomes.items() if "past commit" in outcome)
    assert any(f"{BRANCH} is measured on {owner} of its pool" in outcome for outcome in outcomes.values())

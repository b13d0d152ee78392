"""Records a small history by the code of one commit: `record.py` runs this file in a checkout of it.

What a schema introduced is recorded by a function of its own, which names modules and functions as they were
called from then on. An entry of RECORDERS is added with every migration that has tables or columns to fill.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

BASE, BRANCH = "postgres@17.11", "postgres@REL_18_STABLE"
STEPS = ("update-index", "insert")
NIGHTS, WITHOUT_INSERT, DETAILED = 4, 2, 3
"""The number of finished nights, the one whose inserts failed, and the one with all that a run can have."""

STACKS = {"client backend;main;heap_update": 40, "client backend;main;XLogInsert": 30, "walwriter;main": 5}


def loaded(*places: str) -> Any:
    """Return the first of some modules, or `module:name`, that is there. Raises LookupError without any."""
    for place in places:
        module, _, name = place.partition(":")
        with suppress(ImportError, AttributeError):
            found = import_module(module)
            return getattr(found, name) if name else found
    raise LookupError(f"this checkout has none of {places}")


handmade: Any = import_module("tests.history.handmade")
records: Any = loaded("history.store.records", "history.records")
SCHEMA = sum(1 for path in Path.cwd().glob("history/**/migrations/*.sql"))
"""The number of this checkout's schema."""


def commit(night: int) -> str:
    """Return the version in which the branch is in a night."""
    return f"postgres@git:c0ffee12345{night}"


class Recording:
    """A history that is written, and its clock."""

    def __init__(self, path: Path) -> None:
        open_store = loaded("history.open:open_store", "history.store:open_store")
        self.day = 0
        self.store = open_store(path, clock=lambda: self.now)

    @property
    def now(self) -> Any:
        """The time of the night."""
        return handmade.NIGHT + timedelta(days=self.day)

    def writing(self) -> Any:
        """A transaction."""
        return self.store.database.writing()

    def session(
        self,
        uid: str,
        status: str | None,
        options: Mapping[str, Any] | None = None,
        old: str = BASE,
        rounds: int = 2,
    ) -> int:
        """Record a session, whose second version is slower; without a status it goes on."""
        new = commit(min(self.day, NIGHTS))
        versions = {"versions": [old, new], "branches": {} if options else {new: BRANCH}}
        given = versions | {"threads": 8, "mode": "rounds", "seconds": 20} | dict(options or {})
        start = replace(handmade.session_start(uid, repetitions=rounds), options=given)
        session = int(self.store.start_session(start))
        position = 0
        for place, step in enumerate(STEPS, start=1):
            for repetition in range(1, rounds + 1):
                for version, level in ((old, 1000.0), (new, 930.0)):
                    position += 1
                    qps = level + self.day + repetition / 8
                    run = self._run(version, step, place, repetition, position, qps)
                    self.store.record_run(session, run)
        if status:
            self.store.finish_session(session, records.SessionStatus(status))
        return session

    def _run(self, version: str, step: str, place: int, repetition: int, position: int, qps: float) -> Any:
        failed = self.day == WITHOUT_INSERT and step == "insert" and version != BASE
        run = handmade.run_record(
            {"qps": qps, "server_cpu_us_per_op": 1e5 / qps},
            version=version,
            step=step,
            step_position=place,
            repetition=repetition,
            position=position,
            failure="the server did not start" if failed else None,
            per_second=(qps - 1, qps + 1) if self.day == 1 else (),
        )
        if failed or self.day != DETAILED:
            return run
        return replace(run, measurement=replace(run.measurement, **self._details(qps)))

    def _details(self, qps: float) -> dict[str, Any]:
        """What a run of one night has beside its values, as far as the schema has room for it."""
        details: dict[str, Any] = {"warnings": ("the reset was not finished",)}
        if SCHEMA >= 3:
            profile = loaded("suites.profiling.stacks:StepProfile")
            details["profile"] = profile("cpu-clock", 1000.0, 5000.0, 1, STACKS)
        if SCHEMA >= 9:
            event = loaded("suites.profiling.stacks:COUNTED_EVENT")
            details["counted"] = profile(event, 1.0, 500.0, 0, STACKS, {"heap_update": 500})
        if SCHEMA >= 10:
            details["kinds"] = {"payment": {"qps": qps / 2}, "look-up": {"qps": qps / 2}}
        if SCHEMA >= 15:
            profile, event = map(
                loaded, ("suites.profiling.stacks:StepProfile", "suites.profiling.stacks:CLIENT_STATES")
            )
            waits = {"waiting;LWLock:WALInsert": 12, "working;CPU": 300}
            details["waits"] = profile(event, 10.0, 5000.0, 0, waits)
        if SCHEMA >= 16:
            activity = loaded("suites.accounting.activity:Activity")
            details["activities"] = (activity("checkpoint", 1, 2), activity("stall", 2, 2))
        return details


def nights(recording: Recording) -> None:
    """Nights that ended in every way, and a session that still runs."""
    for day, status in enumerate((*["finished"] * NIGHTS, "interrupted", "failed"), start=1):
        recording.day = day
        recording.session(f"night-{day}", status, rounds=2 if status == "finished" else 1)
    recording.day += 1
    recording.session("under-way", None, rounds=1)


def rounds(recording: Recording) -> None:
    """A round that was dropped, and the noise of the machine."""
    session = recording.session("calibration", None, rounds=1)
    dropped = records.DroppedRound("insert", 1, "steal: 12 % of the CPU", {BASE: 800.5})
    recording.store.record_dropped(session, dropped)
    recording.store.finish_session(session, records.SessionStatus("finished"))
    recording.store.record_noise(session, [records.StepNoise("insert", "qps", 0.01, 9.0, 10)])


def changes(recording: Recording) -> None:
    """Two changes, each in a series of its own, one of which a person acknowledged."""
    schema: Any = loaded("history.store.schema", "history.schema")
    acknowledge = loaded(
        "history.changes.acknowledgements:acknowledge",
        "history.changes.repository:acknowledge",
        "history.changes:acknowledge",
    )
    to_text = loaded("history.timestamps:to_text", "history.times:to_text")
    with recording.writing() as connection:
        chosen = connection.execute(
            schema.series.select()
            .where(schema.series.c.branch == BRANCH, schema.series.c.metric == "qps")
            .order_by(schema.series.c.step)
        ).all()
        before, after = (
            connection.execute(schema.sessions.select().where(schema.sessions.c.uid == uid)).first().id
            for uid in ("night-1", "night-2")
        )
        for fingerprint, series in zip(("c0ffee01", "c0ffee02"), chosen, strict=False):
            row = {
                "fingerprint": fingerprint,
                "branch": BRANCH,
                "suite": "write-heavy",
                "direction": "regression",
                "status": "open",
                "found_at": to_text(recording.now),
                "updated_at": to_text(recording.now),
            }
            change_id = connection.execute(
                schema.changes.insert().values(row).returning(schema.changes.c.id)
            ).scalar_one()
            member = {
                "change_id": change_id,
                "series_id": series.id,
                "last_before_id": before,
                "first_after_id": after,
                "raised_id": after,
                "level_before": 1.0,
                "level_after": 0.93,
                "ratio_low": 0.92,
                "ratio_high": 0.94,
                "confidence": 0.99,
            }
            connection.execute(schema.change_series.insert().values(member))
        acknowledge(connection, "c0ffee02", "the price of a fix", recording.now)


def alerts(recording: Recording) -> None:
    """An issue that is open, one that could not be sent, one that a person muted, and one in a summary."""
    module: Any = loaded("history.store.alert_outbox", "history.alerts")

    def named(*names: str) -> Any:
        return next(getattr(module, name) for name in names if hasattr(module, name))

    issue, kind, state = named("DesiredIssue", "Wanted"), named("AlertKind", "Kind"), module.IssueState.OPEN
    desired = [
        issue(f"alert{number}", kind("change"), f"insert is {number} % slower", "by much", state)
        for number in range(1, 5)
    ]
    with recording.writing() as connection:
        named("set_desired", "want")(connection, desired, recording.now)
        sent, failed, muted, within = module.load(connection)
        opened = getattr(module, "mark_opened", None)
        if opened is None:
            named("mark_sent", "sent")(connection, sent, 7)
        else:
            module.mark_asked(connection, sent, state)
            opened(connection, sent, 7, "owner/name")
        named("mark_failed", "failed")(connection, failed, "the tracker was away", recording.now)
        named("mute", "silence")(connection, muted, "closed by a person")
        named("move_to_summary", "tell_within")(connection, within, "alert1")


def bisects(recording: Recording) -> None:
    """A search among the commits of the nights, with one round."""
    module: Any = loaded("history.store.bisects", "history.bisects")
    place: Any = loaded("runners.bisect.domain.question", "runners.bisect.question")
    point = loaded("runners.bisect.domain.question:BisectPoint", "runners.bisect.question:Point")
    span = loaded("runners.bisect.domain.question:CandidateRange", "runners.bisect.question:Span")
    commits = [commit(night) for night in range(1, NIGHTS + 1)]
    question = place.Question(
        engine=loaded("build.version:Engine")("postgres"),
        good=commits[0],
        bad=commits[-1],
        suite="write-heavy",
        profile="short",
        step=STEPS[0],
        metric="qps",
        direction="worse",
        confidence=0.95,
        git="https://example.org/postgres.git",
    )
    asked, among = question.to_json(question.rules()), span(tuple(map(point, commits))).to_json()
    recording.session("searching", "finished", {"bisect": "b1"}, commits[0], rounds=1)
    kinds, at = module.EventKind, recording.now
    with recording.writing() as connection:
        search = module.begin(connection, "b1", handmade.MACHINE, asked, among, "c0ffee01", at)
        events: Any = (
            (kinds.SESSION, {}, "searching"),
            (kinds.EXCLUDED, {"position": 2, "reason": "cc: error"}, None),
        )
        for kind, detail, session in events:
            module.append(connection, search, kind, detail, at, session)


def confirmations(recording: Recording) -> None:
    """A session that measured the commits of two nights against each other."""
    confirms = loaded("history.changes.confirmation:Confirms", "history.confirmations:Confirms")
    request = loaded("history.changes.confirmation:ConfirmationRequest", "history.confirmations:Question")
    asked = confirms(request("new"), BRANCH, "night-3", "night-4", (STEPS[0],), 0.02)
    recording.session("confirming", "finished", {"confirms": asked.option()}, commit(3), rounds=5)


def acknowledgements(recording: Recording) -> None:
    """What a person decided about a change, which may be acknowledged already."""
    to_text = loaded("history.timestamps:to_text")
    schema: Any = loaded("history.store.schema")
    with recording.writing() as connection:
        change = connection.execute(
            schema.changes.select().where(schema.changes.c.fingerprint == "c0ffee02")
        ).first()
        row = {"change_id": change.id, "kind": "acknowledged", "who": "a person", "reason": change.reason}
        later, until = recording.now + timedelta(hours=1), recording.now + timedelta(days=30)
        row |= {"happened_at": to_text(later), "until": f"{until:%Y-%m-%d}"}
        connection.execute(schema.acknowledgements.insert().values(row))


def task_states(recording: Recording) -> None:
    """What a night found of what its plan tracks: a result, and a branch that could not be fetched."""
    module: Any = loaded("history.series.task_states")
    checks = [
        module.TaskCheck(
            module.TrackedTask("db1", "write-heavy", "short", tracked), "db1", module.TaskOutcome(outcome)
        )
        for tracked, outcome in ((BASE, "current"), (BRANCH, "unreachable"))
    ]
    with recording.writing() as connection:
        module.record_checks(connection, checks, recording.now)


def notices(recording: Recording) -> None:
    """A message that all routes have, and one that waits for one of them."""
    module: Any = loaded("runners.alerting.notices.outbox")
    kind = module.NoticeKind
    with recording.writing() as connection:
        for told, routes in ((kind.NEW, ()), (kind.FIXED, ("team",))):
            notice = module.Notice("alert c0ffee01", told, "insert is 7 % slower", "confirmed")
            module.add(connection, notice, routes, recording.now)


def pools(recording: Recording) -> None:
    """Two boxes that share two tasks."""
    task, demand = loaded("history.placement.hashing:SharedTask"), loaded("history.placement.hashing:Demand")
    boxes = ("a", "b")
    demands = {task(suite, "short", BRANCH): demand(5.0, frozenset(boxes)) for suite in ("tpcc", "shop")}
    with recording.writing() as connection:
        for box in boxes:
            begin = loaded("history.placement.pool:begin_night")
            begin(connection, "fast", boxes, demands, box, f"host-{box}", recording.now)


def owners_and_mutes(recording: Recording) -> None:
    """Whose a change is, that a rule of a plan mutes it, and to whom its issue is assigned."""
    to_text, schema = loaded("history.timestamps:to_text"), loaded("history.store.schema")
    at, until = to_text(recording.now), f"{recording.now + timedelta(days=30):%Y-%m-%d}"
    with recording.writing() as connection:
        change = connection.execute(schema.changes.select()).first()
        owner = {
            "change_id": change.id,
            "place": 1,
            "account": "a-person",
            "is_assignee": 1,
            "rule": "suites x",
        }
        connection.execute(schema.change_owners.insert().values(owner))
        muting = {"change_id": change.id, "rule": "steps x", "reason": "it is known", "until": until}
        connection.execute(schema.mutings.insert().values(muting | {"muted_at": at}))
        connection.execute(schema.mutes.insert().values(rule="steps x", until=until, since=at, matched_at=at))
        connection.execute(schema.alerts.update().values(assignee="a-person", assigned="a-person"))


RECORDERS: Mapping[int, Callable[[Recording], None]] = {
    1: nights,
    2: rounds,
    4: changes,
    5: alerts,
    6: bisects,
    7: confirmations,
    11: pools,
    12: acknowledgements,
    13: task_states,
    17: notices,
    18: owners_and_mutes,
}
"""By the schema that made room for it; schemas 3, 9, 10, 15 and 16 add to runs, and 8 and 12 to alerts."""

DROPPED: Mapping[int, int] = {11: 19}
"""By the schema that made room for something, the one that has it no more."""


def main() -> None:
    """Write the history to the path that is given."""
    recording = Recording(Path(sys.argv[1]))
    for number, record in RECORDERS.items():
        if number <= SCHEMA < DROPPED.get(number, SCHEMA + 1):
            record(recording)
    recording.store.close()


if __name__ == "__main__":
    main()

"""Thirty kinds of texts that may not leave the house, and sessions that have them wherever one fits."""

import html
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from build.finished_build import Build
from build.manifest import Manifest
from build.version import parse_version
from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.records import DroppedRound, Machine, SessionStatus
from history.store.schema import alerts, changes, gaps
from suites.measurement import Measurement
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start

FACTS = (
    "db01.internal.example",
    "alice",
    "/home/alice/postgres",
    "C:\\Users\\alice",
    "alice@example.org",
    "10.20.30.40",
    "fe80::1ff:fe23:4567:890a",
    "52:54:00:12:34:56",
    "ssh://git@git.example.org/fork.git",
    "https://user:hunter2@git.example.org/fork.git",
    "hunter2hunter2",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "AKIA0123456789EXAMPLE",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.e30.abc",
    "postgresql://alice:pw@db01/history",
    "PGPASSWORD=swordfish",
    "Initech GmbH",
    "PERF-4711: the Initech deal",
    "rack 7, room 2.114",
    "S/N 5CD1234XYZ",
    "6f1ed002-ab5c-4d1f-9a1d-1c5f3f7a0e11",
    "--with-extra-version=-initech",
    "-DINITECH_SECRET=1",
    "gcc version 12.2.0 (Initech build 7)",
    "http://proxy.internal:3128",
    "registry.internal/ci/runner:v3",
    "cn=alice,ou=db,dc=example",
    "backup.sh --to nas7",
    "Europe/Vatican",
    "+49 30 1234567",
    "0x7ffdeadbeef in initech_plan_hook",
)

REPOSITORY = "initech/secret-perf"

MANIFEST: dict[str, Any] = json.loads((Path(__file__).parent / "build.json").read_text(encoding="utf-8"))
"""The manifest of a real build of Postgres 18.6."""


def planted(value: Any, fact: str) -> Any:
    """Return a manifest with a private fact as every text, and as a name in every mapping."""
    if isinstance(value, dict):
        return {**{name: planted(inner, fact) for name, inner in value.items()}, f"x {fact}": fact}
    if isinstance(value, list):
        return [*(planted(inner, fact) for inner in value), fact]
    return fact if isinstance(value, str) else value


def manifest_with(fact: str) -> Manifest:
    """Return the real manifest with a fact everywhere but in what names the build in the history."""
    whole: dict[str, Any] = planted(MANIFEST, fact)
    source = {**whole["source"], "kind": "cache", "digest": "sha256:" + "cd" * 32}
    patches = [planted({"name": "", "sha256": ""}, fact)]
    return Manifest.model_validate({**whole, "source": source, "patches": patches})


def record(path: Path, number: int, fact: str) -> None:
    """Record a session with a private fact in every text that a person or a machine may have put it into."""
    moment = NIGHT + timedelta(days=100 + number)
    machine: Machine = replace(
        MACHINE,
        hostname=f"{fact} {number}",
        fingerprint=f"{fact} f",
        details={"governor": fact, "settings": {fact: fact, "governor": fact}},
    )
    options = {
        "versions": ["postgres@17.11", "postgres@18.6"],
        "settings": {fact: fact},
        "not_built": {"postgres@18.6": fact},
        "machine_changed": [fact],
        "left_out": [fact],
        "bound_to": fact,
    }
    start = replace(
        session_start(f"{number:08x}"),
        machine=machine,
        command=fact,
        tools={"generator": fact, "tidemark": fact, fact: fact, "python": fact},
        options=options,
    )
    settings = {
        "shared_buffers": "16GB",
        "application_name": fact,
        "wal_level": fact,
        "transaction_isolation": fact,
        "work_mem": f"4MB {fact}",
        f"initech.{fact}": "on",
    }
    with open_store(path, clock=lambda: moment) as store:
        session = store.start_session(start)
        position = 0
        for version in ("postgres@17.11", "postgres@18.6"):
            build = Build(
                parse_version(version), version[9:], f"{version} {number}", Path("/x"), manifest_with(fact)
            )
            for repetition in (1, 2, 3):
                position += 1
                made = run_record(version=version, repetition=repetition, position=position)
                measurement = Measurement({"qps": 1000.0 + position}, (1000.0, 1001.0), (fact,))
                store.record_run(
                    session, replace(made, build=build, configuration=settings, measurement=measurement)
                )
            position += 1
            failed = run_record(version=version, step="broken", position=position, failure=fact)
            store.record_run(session, replace(failed, build=build, configuration=settings))
        store.record_dropped(session, DroppedRound("insert", 1, fact, {"postgres@17.11": 5.0}))
        store.finish_session(session, SessionStatus.FINISHED)


def plant(path: Path) -> None:
    """Add a session for each fact to a history, and facts to its changes, gaps and alerts."""
    for number, fact in enumerate(FACTS):
        record(path, number, fact)
    with open_store(path) as store, store.database.writing() as connection:
        connection.execute(update(gaps).values(reason=FACTS[0]))
        connection.execute(update(changes).values(reason=FACTS[1]))
        (fingerprint,) = connection.execute(select(changes.c.fingerprint)).scalars()
        alert_outbox.set_desired(
            connection,
            [DesiredIssue(fingerprint, AlertKind.CHANGE, FACTS[2], Markdown(FACTS[3]), IssueState.OPEN)],
            NIGHT,
        )
        known = {"repository": REPOSITORY, "issue": 7, "issue_state": "open"}
        connection.execute(update(alerts).values(last_error=FACTS[4], **known))


def found_in(text: str) -> list[str]:
    """Return the private facts in the text of a page or of a file of data, whatever escapes it has."""
    plain = html.unescape(text).replace("\\\\", "\\").casefold()
    return [fact for fact in (*FACTS, REPOSITORY) if fact.casefold() in plain]

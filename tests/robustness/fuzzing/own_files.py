"""Files that people and Tidemark itself write: suites, plans, versions, pins, heartbeats, builds, records."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from build.cache import archives, earlier_compiles, store
from build.cache.archives import ArchiveError
from build.home import ROOT, Home
from build.sources.releases import ReleaseError, known_releases
from build.version import Engine, VersionError, parse_version, release_numbers
from history.timestamps import moment_of
from history.transfer.foreign.version_names import version_of
from runners.fitness.fixes import SavedSettingsError, saved_settings
from runners.nightly.heartbeat import status
from runners.nightly.plan import PlanError, load_plan
from runners.trying.series import base_commit_of, patches_in_mails
from suites.data_copies.store import CopyError, read_manifest
from suites.definition import SuiteError, load_suite
from suites.keys.sql_statements import statements_in
from suites.sizing import Hardware, sizes
from suites.slices import slices_in
from tests.robustness.fuzzing.campaign import FuzzTarget, Number, Parse

NOW = datetime(2026, 11, 22, tzinfo=UTC)

MACHINE = Hardware(cores=8, memory_bytes=32 << 30)


# --- what people write


def _suite(folder: Path) -> Parse:
    """A suite of its own folder, without scripts, and the sizes that follow from it."""
    file = folder / "suite.toml"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        suite = load_suite(f"{folder}/")
        for profile in suite.profiles.values():
            size = sizes(suite, profile, MACHINE)
            yield Number("seconds", profile.seconds, 1e6)
            yield Number("repetitions", profile.repetitions, 1e6, 1)
            yield Number("bytes", size.data_bytes, 1e18)
            yield Number("disk bytes", size.disk_bytes, 1e20)
            yield Number("slices", slices_in(profile.seconds, profile.slice_seconds), 1e7, 1)

    return parse


def _suites() -> Sequence[bytes]:
    return [_SUITE]


def _plan(folder: Path) -> Parse:
    file = folder / "nightly.toml"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        plan = load_plan(file)
        yield Number("backups", plan.backups, 1e6)
        yield Number("most new issues", plan.alerts.most_new_issues, 1e6)
        for box in plan.boxes.values():
            yield Number("budget", box.budget_minutes, 1e6)
        for task in plan.tasks:
            for past in task.backfill:
                yield Number("days", past.days, 366, 1)
                yield Number("share", past.share, 1)
            yield Number("rounds", task.rounds or 0, 1e6)
            yield Number("seconds", task.seconds or 0, 1e6)

    return parse


def _version(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        version = parse_version(data.decode(errors="replace"))
        return [Number("number", number, 1e9, -2.0) for number in release_numbers(version.ref)]

    return parse


def _version_name(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        version = version_of(data.decode(errors="replace"))
        return [Number("number", number, 1e9, -2.0) for number in release_numbers(version.ref)]

    return parse


def _moment(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        return [Number("year", moment_of(data.decode(errors="replace")).year, 9999, 1)]

    return parse


# --- what Tidemark writes


def _pins(folder: Path) -> Parse:
    home = Home(folder)
    home.sources.mkdir()

    def parse(data: bytes) -> Iterable[Number]:
        (home.sources / "pins.json").write_bytes(data)
        releases = [release for engine in Engine for release in known_releases(engine, home)]
        return [
            Number("number", number, 1e9, -2.0) for release in releases for number in release_numbers(release)
        ]

    return parse


def _failure(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        earlier_compiles.read_failure(data)
        return ()

    return parse


def _patch(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        return [Number("digits", len(base_commit_of(data) or "0" * 40), 40, 40)]

    return parse


def _mails(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        for patch in patches_in_mails(data):
            yield Number("number", patch.number, 9999)
            yield Number("total", patch.total, 9999)

    return parse


def _heartbeat(folder: Path) -> Parse:
    file = folder / "heartbeat.json"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        beat = status(file, NOW).beat
        if beat is not None:
            yield Number("done", beat.done)
            yield Number("total", beat.total or 0)
            if beat.ends_at is not None:
                yield Number("year of the end", beat.ends_at.year, 9999, 1)

    return parse


def _build_record(folder: Path) -> Parse:
    home, version = Home(folder), parse_version("postgres@18.6")
    file = home.builds / "postgres-18.6-0123456789ab" / store.MANIFEST
    file.parent.mkdir(parents=True)

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        for build in store.all_builds(home):
            yield from (Number("number", number, 1e9, -2.0) for number in build.numbers)
        store.imported(home, version, None, [], {})
        yield Number("commands", store.expected_commands(home, version.engine, 18) or 0, 1e9)

    return parse


def _sidecar(folder: Path) -> Parse:
    file = folder / "postgres-18.6-linux-x86_64-glibc2.36.json"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        if (described := archives.description(file)) is not None:
            manifest, _ = described
            store.folder_name(manifest.engine, manifest.release, manifest.key).encode()
        return ()

    return parse


def _saved_settings(folder: Path) -> Parse:
    file = folder / "fitness.json"

    def parse(data: bytes) -> Iterable[Number]:
        file.write_bytes(data)
        saved_settings(file)
        return ()

    return parse


def _copy(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        return [Number("bytes", size, 2.0**63) for size in read_manifest(data)["files"].values()]

    return parse


def _plans() -> Sequence[bytes]:
    return [(ROOT / "runners/nightly.toml").read_bytes(), _PLAN]


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


_SUITE = b"""name = "mine"
title = "A suite"
generator = "pgbench"
engines = ["postgres"]
seed = 5
bytes_per_row = 150
[profiles.smoke]
title = "short"
seconds = 2
slice_seconds = 0.5
repetitions = 2
data_to_memory = 0.01
rows = [100000, 1000000]
buffer_to_memory = 0.02
settle_seconds = 0.1
[[steps]]
name = "one"
title = "One"
queries = 5
options = { builtin = "tpcb-like" }
"""

_PLAN = b"""history = "history.db"
[boxes.here]
label = "tidemark-here"
hostname = "*"
budget_minutes = 90.0
[engines.postgres]
base = "postgres@17.11"
releases = ["18.6"]
branches = ["master"]
[[tasks]]
suite = "write-heavy"
profile = "smoke"
steps = ["insert"]
backfill = [{ branch = "postgres@master", since = "2025-01", every = "7d", share = 0.5 }]
rounds = 3
seconds = 2.5
[alerts]
repository = "owner/name"
most_new_issues = 3
"""

_BEAT = {
    "box": "here",
    "what": "measure",
    "began_at": "2026-11-22T02:00:00+00:00",
    "since": "2026-11-22T02:10:00+00:00",
    "beat_at": "2026-11-22T02:20:00+00:00",
    "done": 3.0,
    "total": 10.0,
    "process_id": 1,
    "start_ticks": 5,
    "boot_id": "b",
    "ended_at": None,
    "outcome": "",
}
_MANIFEST = {
    "format": 1,
    "engine": "postgres",
    "version": "postgres@18.6",
    "release": "18.6",
    "key": "ab" * 32,
    "source": {"kind": "cache", "digest": "sha256:00", "location": "x.tar.bz2", "commit": ""},
    "patches": [{"sha256": "00"}],
    "compiler": {"command": "gcc", "version": "gcc 12", "target": "x"},
    "host": {"architecture": "x86_64", "glibc": "2.36"},
    "compile_commands": 900,
    "built_at": "2026",
}
_SIDECAR = {"format": 1, "archive": "x.tar.zst", "sha256": "00" * 32, "manifest": _MANIFEST}
_FAILURE = {
    "key": "ab" * 32,
    "installed": ["/usr/lib 1"],
    "failed_at": "2026-11-22T02:00:00+00:00",
    "what": "postgres@18.6: compile src failed",
    "where": "/srv/build.log",
}
_FORMATTED = b"--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n--\n2.39\n\nbase-commit: " + b"5bf748b8" * 5 + b"\n"
_MAILED = b"From x Mon Sep 17 00:00:00 2001\nSubject: =?utf-8?q?[PATCH_v3_2/5]_a?=\n\n" + _FORMATTED
_ATTACHED = (
    b"From x Mon Sep 17 00:00:00 2001\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello\n--b\n"
    b'Content-Disposition: attachment; filename="v3-0002-a.patch"\n'
    b"Content-Transfer-Encoding: quoted-printable\n\n" + _FORMATTED + b"--b--\n"
)
_PINS = {
    version.engine: {version.ref: "00" * 32}
    for version in map(parse_version, ("postgres@18.6", "mysql@9.7.2"))
}
_SETTINGS = {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"}
_COPY = {
    "version": "postgres@18.6",
    "suite": "tpch",
    "profile": "short",
    "kept_at": "2026-11-23T03:02:51Z",
    "parts": {"build": "ab12", "settings": "[]"},
    "files": {"base/1/1259": 8192, "PG_VERSION": 3},
}
_VERSIONS = [b"postgres@18.6", b"postgres@git:5bf748b86b", b"mysql@9.7.2#mine", b"postgres@REL_18_STABLE"]
_NAMES = [b"pg1222", b"x.pg181_o2nofp.x10b_c32r128.pk1", b"my8045_rel", b"mysql@9.7.2", b"ma110806"]
_MOMENTS = [b"2025-11", b"2025-11-05", b"2025-11-05T02:00:00Z", b"2025-11-05T02:00:00.123+14:00"]


def _sql(_folder: Path) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        text = data.decode(errors="replace")
        for engine in Engine:
            found = statements_in(text, engine)
            yield from (Number("line", statement.line, text.count("\n") + 1) for statement in found)

    return parse


_SQL = b"""-- a; b
/*!50503 SET NAMES utf8mb4 */;
SELECT 'a;''b', "c;d", `e;f`, $x$ ; $x$ FROM t; # g
SELECT 2
"""

TARGETS = (
    FuzzTarget("suite", _suites, _suite, (SuiteError,)),
    FuzzTarget("plan", _plans, _plan, (PlanError,)),
    FuzzTarget("version", lambda: _VERSIONS, _version, (VersionError,)),
    FuzzTarget("version name", lambda: _NAMES, _version_name, (ValueError,)),
    FuzzTarget("moment", lambda: _MOMENTS, _moment, (ValueError,)),
    FuzzTarget("pins", lambda: [_json(_PINS)], _pins, (ReleaseError,)),
    FuzzTarget("failed compile", lambda: [_json(_FAILURE)], _failure, ()),
    FuzzTarget("patch", lambda: [_FORMATTED], _patch, ()),
    FuzzTarget("mails", lambda: [_MAILED, _ATTACHED], _mails, ()),
    FuzzTarget("heartbeat", lambda: [_json(_BEAT)], _heartbeat, ()),
    FuzzTarget("build record", lambda: [_json(_MANIFEST)], _build_record, (store.StoreError,)),
    FuzzTarget("archive record", lambda: [_json(_SIDECAR)], _sidecar, (ArchiveError, store.StoreError)),
    FuzzTarget("kept copy", lambda: [_json(_COPY)], _copy, (CopyError,)),
    FuzzTarget("statements of SQL", lambda: [_SQL], _sql, ()),
    FuzzTarget("saved settings", lambda: [_json(_SETTINGS)], _saved_settings, (SavedSettingsError,)),
)

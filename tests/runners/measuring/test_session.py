"""What is refused before anything is compiled, or before a server starts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.installs import PrefixError, digest_of, stamp_of
from build.progress import Silent
from build.version import Engine, parse_version
from history.changes.confirmation import ConfirmationRequest, Confirms
from history.series.round_seconds import RecordedSeconds
from runners.measuring import preparation
from runners.measuring.durations.expected import ExpectedCompile, Recorded, expected
from runners.measuring.request import Exact, Request
from runners.measuring.session_versions import MeasuredVersion
from runners.measuring.variants import read_variants
from suites.definition import load_suite
from suites.keys.profile import Mode
from suites.layers.choice import LayerError, Layers, Transport
from suites.server import ServerError
from tests.manifests import a_manifest
from tests.runners.measuring.journal import FakeServer, Journal, as_server

SUITE = load_suite("write-heavy")


class Notes(Silent):
    """Keeps what a session notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


VERSIONS = (parse_version("postgres@17.11"), parse_version("postgres@18.6"))


def test_long_mode_needs_memory_for_all_servers_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fits(servers: int, *_: object) -> bool:
        asked.append(servers)
        return False

    monkeypatch.setattr(preparation, "tool", str)
    monkeypatch.setattr(preparation, "require_reachable", lambda _: None)
    monkeypatch.setattr(preparation, "require_short_sockets", lambda _: None)
    monkeypatch.setattr(preparation, "require_disk", lambda *_: None)
    monkeypatch.setattr(preparation, "fit_together", fits)
    home = Home(tmp_path)
    rounds = Request(VERSIONS, SUITE, "smoke", SUITE.steps, 3)
    preparation.check_request(rounds, home)
    assert not asked, "rounds measure servers one after the other when they do not fit"
    with pytest.raises(ServerError, match="2 servers do not fit into memory together"):
        preparation.check_request(Request(VERSIONS, SUITE, "smoke", SUITE.steps, 3, mode=Mode.LONG), home)
    assert asked == [2]


def test_long_mode_cannot_build_the_same_indexes_twice(tmp_path: Path) -> None:
    suite = load_suite("insert-benchmark")
    request = Request(VERSIONS, suite, "smoke", suite.select(("l-x",)), 1, mode=Mode.LONG)
    with pytest.raises(ServerError, match="l-x needs a fresh server in every round"):
        preparation.check_request(request, Home(tmp_path))


def test_a_session_that_confirms_decides_more_strictly() -> None:
    confirms = Confirms(ConfirmationRequest.NEW, "postgres@master", "a", "b", ("insert",), 0.02)
    request = Request(VERSIONS, SUITE, "smoke", SUITE.select(("insert",)), 3, until_decided=True)
    builds = [Build(each, each.ref, each.ref, Path("/nowhere"), a_manifest()) for each in VERSIONS]
    usual = preparation.verdicts_of(request, builds, {})
    strict = preparation.verdicts_of(replace(request, confirms=confirms), builds, {})
    for number in range(1, 9):
        for verdicts in (usual, strict):
            rates = {"postgres@17.11": 1000.0, "postgres@18.6": 940.0 + 30 * (number % 2)}
            verdicts.add("insert", number, rates)
    assert usual.open_steps(["insert"], 8) == []
    assert strict.open_steps(["insert"], 8) == ["insert"]


@pytest.mark.parametrize(
    ("repetitions", "told"),
    [(5, "5 to 30 of them in a step until it is decided"), (30, "30 of them in each step")],
)
def test_the_expected_blocks_are_a_range_only_where_verdicts_end_a_step(repetitions: int, told: str) -> None:
    request = Request(VERSIONS, SUITE, "io", SUITE.steps, repetitions, mode=Mode.LONG, until_decided=True)
    unknown = Recorded((), RecordedSeconds({}, {}))
    assert expected(request, unknown, counts=False).endswith(f", {told}")


def minutes_of(line: str) -> float:
    """The sum of the times that a line expects before its budget, in minutes."""
    before = line.partition("; within")[0]
    found = re.findall(r"about (?:([0-9]+) h ?)?(?:([0-9]+) min)?(?:([0-9]+) s)?", before)
    return sum(60 * int(h or 0) + int(m or 0) + int(s or 0) / 60 for h, m, s in found)


def test_what_is_expected_is_of_the_machine_as_it_is_now() -> None:
    """Passes that took 5 s for each version take three times as long beside four others on two cores."""
    steps = SUITE.select(("insert", "delete"))
    counting = Request(VERSIONS, SUITE, "smoke", steps, 2, exact=Exact.ONLY)
    seconds = RecordedSeconds(counted={"insert": 5.0, "delete": 5.0}, loading=10.0)
    idle, busy = (
        expected(counting, Recorded((), seconds, others, 2), counts=True, rounds=False) for others in (0, 4)
    )
    assert minutes_of(idle) == pytest.approx((2 * 10 + 2 * 2 * 2 * 5) / 60)
    assert minutes_of(busy) == pytest.approx((2 * 10 * 2.5 + 2 * 2 * 2 * 5 * 3) / 60, abs=0.5)
    assert busy.endswith(", as 4 other processes want a core")


def test_rounds_that_others_disturb_are_expected_as_often_as_they_are_measured() -> None:
    request = Request(VERSIONS, SUITE, "smoke", SUITE.select(("insert",)), 10)
    fixed = request.profile.seconds
    known = Recorded((), RecordedSeconds({"insert": fixed + 2.0}), 4.0, 2)
    measured_thrice = expected(request, known, counts=False)
    once = expected(replace(request, keep_disturbed=True), known, counts=False)
    each = fixed + 2.0 * 2.5
    assert minutes_of(once) == pytest.approx(2 * 10 * each / 60, abs=0.5)
    assert minutes_of(measured_thrice) == pytest.approx(3 * 2 * 10 * each / 60, abs=0.5)
    assert "measured 3 times as others disturb it (--keep-disturbed: once)" in measured_thrice


def test_a_budget_that_counting_uses_up_is_told_before_it_begins() -> None:
    request = Request(VERSIONS, SUITE, "smoke", SUITE.steps, 3, has_deadline=True, budget_seconds=120.0)
    request = replace(request, until_decided=True, is_try=True)
    unknown = Recorded((), RecordedSeconds())
    line = expected(request, unknown, counts=True)
    assert "counts of 10 steps about 3 min, a guess" in line
    assert line.endswith(
        "; within a budget of 2 min, which is used up before the first round: --budget 7, or fewer steps, "
        "has rounds"
    )
    assert expected(replace(request, budget_seconds=900.0), unknown, counts=True).endswith("of 15 min")
    assert "used up" not in expected(request, unknown, counts=False)
    compiled = Recorded([ExpectedCompile(VERSIONS[0], 100.0)], RecordedSeconds(), 4.0, 2)
    longer = expected(replace(request, budget_seconds=900.0), compiled, counts=True)
    assert "compile postgres@17.11 about 5 min" in longer
    patched = replace(compiled, compiles=[ExpectedCompile(VERSIONS[0], 100.0, is_bound=True)])
    line = expected(request, patched, counts=True)
    assert "compile postgres@17.11 at most about 5 min" in line
    assert "--budget 20, or fewer" in line, "ccache may have all of it"


@pytest.mark.parametrize("says", ["", "valgrind-3.17.0"])
def test_without_a_usable_valgrind_only_the_counts_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    """A session that is to do nothing but count ends before anything is compiled."""
    if says:
        (tmp_path / "valgrind").write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / "valgrind").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    beside = Request(VERSIONS, SUITE, "smoke", SUITE.steps, 3, exact=Exact.BESIDE)
    notes = Notes()
    assert preparation.callgrind_of(beside, notes) is None
    problem = "too old to count" if says else "valgrind is not installed"
    assert problem in notes.lines[0]
    with pytest.raises(TidemarkError, match=problem):
        preparation.callgrind_of(replace(beside, exact=Exact.ONLY), notes)


def test_engines_that_start_slowly_are_counted_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "valgrind").write_text("#!/bin/sh\necho valgrind-3.19.0\n")
    (tmp_path / "valgrind").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    both = (VERSIONS[0], parse_version("mysql@9.7.2"))
    beside = Request(both, SUITE, "smoke", SUITE.steps, 3, exact=Exact.BESIDE)
    notes = Notes()
    assert preparation.callgrind_of(beside, notes) is None
    assert "a pass of mysql@9.7.2 takes minutes; --exact-only or --budget" in notes.lines[0]
    assert preparation.callgrind_of(replace(beside, versions=VERSIONS), notes) is not None
    for exact in (Exact.ONLY, Exact.FIRST):
        assert preparation.callgrind_of(replace(beside, exact=exact), notes) is not None


def test_layers_of_suite_and_variant_reach_versions_and_builds() -> None:
    variants = read_variants(["fast:layer.tls=on"])
    versions = (*VERSIONS, parse_version("postgres@18.6#fast"), parse_version("postgres@x=0123456789ab"))
    suite = SUITE.model_copy(update={"layers": {"transport": "tcp", "protocol": "simple"}})
    request = Request(versions, suite, "smoke", suite.steps, 3, variants=variants)
    assert request.layers_of(versions[0]) == Layers(Transport.TCP, protocol="simple")
    assert request.layers_of(versions[2]) == Layers(Transport.TCP, tls=True, protocol="simple")
    options = [request.build_of(version).choices.options for version in versions]
    assert options == [("--with-openssl",)] * 3 + [()], "builds differ in nothing but the layer"
    without = replace(request, versions=VERSIONS)
    assert without.build_of(versions[0]).choices.options == ()
    accompanied = replace(without, variants=read_variants(["companion=pgbouncer"]))
    with pytest.raises(TidemarkError, match="has no companions"):
        preparation.callgrind_of(replace(accompanied, exact=Exact.ONLY), Notes())


def test_layers_are_checked_before_anything_is_compiled(tmp_path: Path) -> None:
    variants = read_variants(["fast:layer.protocol=extended"])
    request = Request(
        (VERSIONS[0], parse_version("postgres@18.6#fast")), SUITE, "smoke", SUITE.steps, 3, variants=variants
    )
    with pytest.raises(LayerError, match="sysbench does not send statements in the protocol extended"):
        preparation.check_request(request, Home(tmp_path))


def test_a_prefix_that_changed_runs_no_further_step(tmp_path: Path) -> None:
    module = tmp_path / "lib" / "plpgsql.so"
    module.parent.mkdir()
    module.write_bytes(b"module")
    key, journal = digest_of(tmp_path, Engine.POSTGRES), Journal()
    name = parse_version(f"postgres@good={key[:12]}")
    build = Build(name, "18.6", key, tmp_path, a_manifest(), stamp_of(tmp_path))
    version = MeasuredVersion(build, as_server(FakeServer(build, journal)))
    version.start_from_loaded_data(1)
    started = list(journal.lines)
    assert started
    module.write_bytes(b"another module")
    with pytest.raises(PrefixError, match="has changed"):
        version.start_from_loaded_data(2)
    assert "has changed" in (version.exclusion_reason("any step") or "")
    assert journal.lines == started

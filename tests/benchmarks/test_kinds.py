"""The benchmark of kinds: its catalogue, what counts as told, kept results, sessions of equal builds."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.kinds import attempts
from benchmarks.kinds.attempts import kind_figures
from benchmarks.kinds.catalogue import (
    FOLDER,
    Attempt,
    AttemptCommand,
    KindsError,
    PlantedKind,
    kinds,
    parsed,
)
from benchmarks.kinds.equal_sessions import NAMES, EqualSession, equal_sessions, history_of_equals
from benchmarks.kinds.joined_sessions import (
    JoinedHistory,
    clean_figures,
    false_told,
    joined_runs,
    most_likely,
    rounds_of,
)
from benchmarks.kinds.told import ToldDifference, missed, told_worse
from benchmarks.output.intervals import upper_bound
from benchmarks.surroundings.scratch_home import CommandRun
from build.home import Home
from build.version import Version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.escaping.markdown import md
from history.open import open_store
from history.rendering.json_text import render_json
from history.store.records import Run, SessionStatus
from runners import cli
from runners.commands.run import request_of
from tests.history.handmade import record_steps, run_record, session_start

BASE, *CONTENDERS = map(str, NAMES)
MORE_LOG = ToldDifference("insert", "wal_bytes_per_op", "WAL or redo +41.0 % (+38.2 to +44.1)")
FAILED = ToldDifference("insert", "", "failed on postgres@18.6#try alone: sbtest1 by wal_k has *no* rows")
MUST = Attempt(AttemptCommand.TRY, (), "wal_")
A_KIND = {"name": "leak", "title": "it leaks", "version": "postgres@18.6", "settings": ["x=1"]}
AN_ATTEMPT = {"command": "run", "options": "--step insert", "told": "memory"}


# --- the catalogue


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_attempt_is_a_command(kind: PlantedKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    for attempt in kind.attempts:
        arguments, further = cli.parser().parse_known_args(kind.words(attempt))
        assert not further
        if attempt.command is AttemptCommand.RUN:
            assert [str(version) for version in request_of(arguments).versions] == [
                kind.version,
                kind.contender[AttemptCommand.RUN],
            ]


def test_every_name_is_of_one_kind_and_every_patch_has_one() -> None:
    named = [kind.name for kind in kinds()]
    assert len(named) == len(set(named))
    patches = [kind.patch for kind in kinds() if kind.patch]
    assert sorted(patches) == sorted(FOLDER.glob("*.patch")), "each patch has one row in kinds.toml"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"patches": ["a"]}, "leak has no use for, or lacks: patches"),
        ({"patch": "imagined.patch"}, "leak needs either settings or a patch that is there"),
        ({"attempts": [{**AN_ATTEMPT, "command": "try"}]}, "leak has settings, which only run takes"),
        ({"attempts": [{**AN_ATTEMPT, "reason": "too short"}]}, "an attempt of leak needs"),
        ({"attempts": [{"command": "run", "options": "", "reason": "too short"}]}, "leak is never told"),
    ],
)
def test_a_wrong_row_is_refused(changes: Mapping[str, Any], says: str) -> None:
    assert parsed({**A_KIND, "attempts": [AN_ATTEMPT]}).attempts[0].options == ("--step", "insert")
    with pytest.raises(KindsError, match=says):
        parsed({**A_KIND, "attempts": [AN_ATTEMPT], **changes})


def test_the_digest_is_of_all_that_decides() -> None:
    first = parsed({**A_KIND, "attempts": [AN_ATTEMPT]})
    others = (
        parsed({**A_KIND, "settings": ["x=2"], "attempts": [AN_ATTEMPT]}),
        parsed({**A_KIND, "attempts": [{**AN_ATTEMPT, "told": "RSS"}]}),
        parsed({**A_KIND, "attempts": [{**AN_ATTEMPT, "options": "--setup large_tree.sql"}]}),
    )
    assert len({first.digest, *(other.digest for other in others)}) == 4
    assert parsed({**A_KIND, "title": "another", "attempts": [AN_ATTEMPT]}).digest == first.digest


# --- what counts as told


@pytest.mark.parametrize(
    ("exit_code", "printed", "told", "lacks"),
    [
        (1, "insert: WAL or redo +41.0 % (+38.2 to\n  +44.1)", [MORE_LOG], ""),
        (1, "| insert | WAL or redo +41.0 % (+38.2 to +44.1) |", [MORE_LOG], ""),
        (1, f"- {md('insert: {}', FAILED.text)}", [FAILED], ""),
        (2, "insert: WAL or redo +41.0 % (+38.2 to +44.1)", [MORE_LOG], "told, and exit code 2"),
        (1, "insert: no difference", [MORE_LOG], "only in JSON"),
        (1, "insert", [ToldDifference("insert", "qps", "regression")], "exit code 1, but insert: qps"),
        (0, "No difference in any step", [], "not told: exit code 0"),
    ],
)
def test_a_kind_is_told_by_its_resource_its_text_and_the_exit_code(
    exit_code: int, printed: str, told: Sequence[ToldDifference], lacks: str
) -> None:
    found = missed(MUST, exit_code, printed, told)
    assert (lacks in found) if lacks else not found


def test_a_domain_that_does_not_show_a_kind_says_so() -> None:
    attempt = Attempt(AttemptCommand.TRY, (), "larger trees", is_seen=False)
    assert not missed(attempt, 2, "On 100,000 rows: not seen is larger trees.", [])
    assert missed(attempt, 0, "No difference in any step", []) == "no reason that matches 'larger trees'"


def test_regressions_are_read_from_json(tmp_path: Path) -> None:
    slower = {"insert": {BASE: [1000.0, 1001, 1002], CONTENDERS[0]: [500.0, 501, 502]}}
    equal = {"delete": {BASE: [1000.0, 1001, 1002], CONTENDERS[0]: [1000.0, 1001, 1002]}}
    with open_store(tmp_path / "history.db") as store:
        record_steps(store, session_start(), slower | equal)
        comparison = compare(store, NAMES[0], NAMES[1:2], CompareOptions())
    told = list(told_worse(json.loads(render_json(comparison))))
    assert ToldDifference("insert", "qps", "regression") in told
    assert all(difference.step == "insert" for difference in told)


def test_what_explains_a_regression_is_read_with_its_words(tmp_path: Path) -> None:
    slower = {BASE: [1000.0, 1001, 1002], CONTENDERS[0]: [500.0, 501, 502]}
    read = dict(zip(slower, (2.0, 9.0), strict=True))
    with open_store(tmp_path / "history.db") as store:
        session = store.start_session(session_start())
        for version, rates in slower.items():
            for number, rate in enumerate(rates, start=1):
                values = {
                    "qps": rate,
                    "server_cpu_us_per_op": 6e5 / rate,
                    "server_read_kb_per_op": read[version] + number / 1000,
                }
                store.record_run(session, run_record(values, version=version, repetition=number))
        store.finish_session(session, SessionStatus.FINISHED)
        comparison = compare(store, NAMES[0], NAMES[1:2], CompareOptions())
    told = list(told_worse(json.loads(render_json(comparison))))
    explained = ToldDifference("insert", "server_cpu_us_per_op", "server CPU +100 % explains")
    assert explained in told
    assert explained.is_printed("insert: time per query +100 %: server CPU +100 %\nexplains 60 of 100 %")
    assert ToldDifference("insert", "server_cpu_us_per_op", "2.00+") in told
    assert ToldDifference("insert", "server_read_kb_per_op", "with read up") in told


# --- results that are kept


def test_results_are_kept_with_their_commit(tmp_path: Path) -> None:
    kind = parsed({**A_KIND, "attempts": [AN_ATTEMPT, {**AN_ATTEMPT, "command": "run", "told": "RSS"}]})
    home, ran, commit = Home(tmp_path), list[str](), ["abc"]

    def command(words: Sequence[str], *_: object, **__: object) -> CommandRun:
        ran.append(words[0])
        return CommandRun(1.0, 1, "session 0a1b2c3d: write-heavy, smoke")

    with (
        patch.object(attempts, "tidemark", command),
        patch.object(attempts, "own_version", lambda: commit[-1]),
    ):
        first = [figure.met for figure in kind_figures(kind, home)]
        assert first == [False, False]
        assert ran.count("run") == 2
        list(kind_figures(kind, home))
        assert ran.count("run") == 2, "kept"
        list(kind_figures(kind, home, again=True))
        assert ran.count("run") == 4, "asked for again"
        commit.append("def")
        assert [" by abc: " in figure.note for figure in kind_figures(kind, home)] == [True, True]
        assert ran.count("run") == 4, "kept, with their commit"
        next(kind_figures(kind, home, again=True))
        assert ran.count("run") == 5
        assert [" by " in figure.note for figure in kind_figures(kind, home)] == [False, False]
        assert ran.count("run") == 6, "interrupted after the first attempt"
        other = replace(kind, attempts=kind.attempts[:1])
        list(kind_figures(other, home))
        assert ran.count("run") == 7, "another definition"


# --- equal builds


def recorded(path: Path, rates: Mapping[str, list[float]], sessions: int = 2) -> Path:
    with open_store(path) as store:
        for number in range(sessions):
            steps = {step: dict(rates) for step in ("insert", "delete")}
            record_steps(store, session_start(f"equal-{number}"), steps)
        record_steps(store, session_start("broken"), {"insert": dict(rates)}, SessionStatus.FAILED)
    return path


def scattered(rng: random.Random, around: float = 1000.0) -> list[float]:
    return [around * rng.gauss(1, 0.02) for _ in range(3)]


def test_joined_sessions_have_following_rounds_under_their_own_names(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = recorded(tmp_path / "history.db", {str(name): scattered(rng) for name in NAMES[:2]})
    with open_store(path) as history:
        sessions = equal_sessions(history)
        assert [(equal.session.uid, equal.contender) for equal in sessions] == [
            ("equal-0", NAMES[1]),
            ("equal-1", NAMES[1]),
        ]
        rounds = rounds_of(history, sessions)
        assert {step: len(of_step) for step, of_step in rounds.items()} == {"insert": 6, "delete": 6}
        assert list(joined_runs(rounds, 7, NAMES[2])) == []
        (joined,) = joined_runs(rounds, 4, NAMES[2])  # the last two rounds are too few for another
        measured = {
            name: [run.values["qps"] for equal in sessions for run in of_version(history, equal, name)][:4]
            for name in NAMES[:2]
        }
        for name, called in ((NAMES[0], NAMES[0]), (NAMES[1], NAMES[2])):
            found = [run for run in joined if run.step == "insert" and run.version == str(called)]
            assert [run.repetition for run in found] == [1, 2, 3, 4]
            assert [run.values["qps"] for run in found] == measured[name]
        assert len(joined) == 16
        (joined,) = joined_runs(rounds, 4, NAMES[1])
        told = false_told(JoinedHistory(history.database, joined), sessions[0])
        assert told == {"finding": [], "verdict": []}


def of_version(history: Any, equal: EqualSession, name: Version) -> list[Run]:
    runs = history.runs(equal.session.id, (name,))
    return [run for run in runs if run.step == "insert"]


def test_a_difference_that_lasts_for_one_of_two_servers_is_in_the_evidence(
    tmp_path: Path, home: Home
) -> None:
    """Names given at random to each round would hide it."""
    history = history_of_equals(home)
    history.parent.mkdir(parents=True)
    rates = {str(NAMES[0]): [1000.0, 1001.0, 1002.0], str(NAMES[1]): [970.0, 971.0, 972.0]}
    recorded(history, rates, sessions=4)
    figures = {figure.name: figure for figure in clean_figures(home)}
    for what, count in (("recorded sessions", 4), ("sessions joined to 5 rounds", 2)):
        figure = figures[f"equal builds: {what} with a false verdict"]
        assert (figure.value, figure.unit, figure.met) == (count, f"of {count}", False)
        assert "at most 100.0 % with 95 % confidence" in figure.note
    assert not any("20 rounds" in name for name in figures), "there are 12 rounds"


@pytest.mark.parametrize(
    ("trials", "share", "most"), [(40, 0.01, 2), (40, 0.02, 2), (6, 0.01, 1), (1, 0.02, 0), (300, 0.01, 6)]
)
def test_more_false_findings_than_chance_brings_are_a_miss(trials: int, share: float, most: int) -> None:
    """R's qbinom(0.95, trials, share)."""
    assert most_likely(trials, share) == most


def test_what_is_false_is_found(tmp_path: Path) -> None:
    rng = random.Random(2)
    rates = {str(NAMES[0]): scattered(rng), str(NAMES[-1]): scattered(rng, 500.0)}
    with open_store(recorded(tmp_path / "history.db", rates)) as history:
        (equal, _) = equal_sessions(history)
        told = false_told(history, equal)
        assert "qps of insert" in told["verdict"]
        assert "server_cpu_us_per_op of delete" in told["finding"]


@pytest.mark.parametrize(
    ("count", "trials", "bound"),
    [(0, 40, 0.0722), (1, 40, 0.1132), (0, 1, 0.95), (40, 40, 1.0)],
)
def test_the_bound_of_a_share(count: int, trials: int, bound: float) -> None:
    """1 - 0.05 ** (1 / 40) for none of 40; for one of 40 by R's binom.test(1, 40, alternative = "less")."""
    assert upper_bound(count, trials, 0.95) == pytest.approx(bound, abs=1e-4)
    with pytest.raises(ValueError, match="is no share"):
        upper_bound(trials + 1, trials, 0.95)

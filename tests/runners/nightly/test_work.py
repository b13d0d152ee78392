"""What is new: releases without a result, branches that have moved; and what is done already."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from build import installs
from build.home import Home
from build.version import parse_version
from history.open import open_store
from history.series.task_states import TaskOutcome
from history.store.records import SessionStatus
from history.store.writer import Store
from runners.measuring.variants import definition_of
from runners.nightly.plan import Plan
from runners.nightly.work import NightWork, find_work, request_of
from tests.build.pretended import pretended_prefix
from tests.history.handmade import record_steps, session_start
from tests.tiny_extension import TinyExtension

PLAN = {
    "boxes": {"db1": {"label": "tidemark-db1"}},
    "engines": {
        "postgres": {"base": "postgres@17.11", "releases": ["18.6"], "branches": ["master", "stable"]}
    },
    "tasks": [{"suite": "write-heavy", "profile": "smoke", "perf": False}],
}
BASE = "postgres@17.11"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "postgres"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "master")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "branch", "stable")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def plan(source: Path | str) -> Plan:
    tracked = PLAN["engines"]["postgres"] | {"git": str(source)}  # type: ignore[index]
    return Plan.model_validate(PLAN | {"engines": {"postgres": tracked}})


def look(store: Store, source: Path | str, tmp_path: Path) -> NightWork:
    with store.database.reading() as connection:
        return find_work(plan(source), "db1", "db1", connection, Home(tmp_path / "home"))


def names(work: NightWork) -> list[list[str]]:
    return [[str(version) for version in session.request.versions] for session in work.sessions]


def done(
    store: Store, *versions: str, status: SessionStatus = SessionStatus.FINISHED, **options: object
) -> None:
    with store.database.reading() as connection:
        number = connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar()
    start = replace(
        session_start(f"night-{number}"),
        profile="smoke",
        options={"mode": "rounds", "seconds": 3.0, "settings": {}, "versions": list(versions), **options},
    )
    record_steps(store, start, {"insert": {version: [1.0] for version in versions}}, status)


def tip(source: Path, branch: str = "master") -> str:
    return f"postgres@git:{git(source, 'rev-parse', branch)[:12]}"


def test_everything_is_new_at_first(store: Store, source: Path, tmp_path: Path) -> None:
    work = look(store, source, tmp_path)
    # Both branches mean the same commit still: it is measured once.
    assert names(work) == [[BASE, "postgres@18.6", tip(source)]]
    (session,) = work.sessions
    assert session.request.resume
    assert session.request.needs_contender
    assert session.request.git == {"postgres": str(source)}
    assert session.environment.configuration == "smoke relaxed 3s"


def test_an_install_prefix_is_measured_when_its_files_have_changed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installs, "said_with", lambda *command: "postgres (PostgreSQL) 18.6")
    base = pretended_prefix(tmp_path / "base", b"base")
    mine = pretended_prefix(tmp_path / "mine", b"first")
    tracked = {"base": f"postgres@old={base}", "installs": [f"mine={mine}"]}
    of_prefixes = Plan.model_validate(PLAN | {"engines": {"postgres": tracked}})

    def night() -> NightWork:
        with store.database.reading() as connection:
            return find_work(of_prefixes, "db1", "db1", connection, Home(tmp_path / "home"))

    ((old, first),) = names(night())
    assert old.startswith("postgres@old=")
    assert first.startswith("postgres@mine=")
    (session,) = night().sessions
    assert session.request.branches == {first: "postgres@mine"}
    assert night().spots[0].branches == frozenset(), "nothing confirms a change of a build that is gone"
    done(store, old, first)
    assert [target.outcome for target in night().targets] == [TaskOutcome.CURRENT]
    (mine / "lib" / "plpgsql.so").write_bytes(b"second")
    ((_, second),) = names(night())
    assert second not in (old, first)
    shutil.rmtree(base)
    work = night()
    assert work.sessions == ()
    (target,) = work.targets
    assert target.outcome is TaskOutcome.UNREACHABLE
    assert f"the base postgres@old={base} cannot be measured: there is no folder" in target.reason


def test_a_task_may_take_disturbed_rounds() -> None:
    task = {"suite": "write-heavy", "profile": "smoke"}
    plan = Plan.model_validate(PLAN | {"tasks": [task, task | {"keep_disturbed": True}]})
    kept = [request_of(listed, (parse_version(BASE),)).keep_disturbed for listed in plan.tasks]
    assert kept == [False, True]


def test_what_has_a_result_is_not_new(store: Store, source: Path, tmp_path: Path) -> None:
    done(store, BASE, "postgres@18.6", tip(source))
    work = look(store, source, tmp_path)
    assert work.sessions == ()
    assert {target.outcome for target in work.targets} == {TaskOutcome.CURRENT}


def test_a_branch_that_moved_is_measured_beside_the_base(store: Store, source: Path, tmp_path: Path) -> None:
    done(store, BASE, "postgres@18.6", tip(source))
    git(source, "commit", "-q", "--allow-empty", "-m", "two")
    work = look(store, source, tmp_path)
    assert names(work) == [[BASE, tip(source)]]
    assert work.sessions[0].request.branches == {tip(source): "postgres@master"}
    done(store, BASE, tip(source))
    assert not look(store, source, tmp_path).sessions


def test_a_session_that_was_interrupted_or_failed_is_no_result(
    store: Store, source: Path, tmp_path: Path
) -> None:
    for status in (SessionStatus.INTERRUPTED, SessionStatus.FAILED):
        done(store, BASE, "postgres@18.6", tip(source), status=status)
    assert len(names(look(store, source, tmp_path))[0]) == 3


def test_another_configuration_box_or_suite_is_no_result(store: Store, source: Path, tmp_path: Path) -> None:
    done(store, BASE, "postgres@18.6", tip(source), seconds=4.0)
    assert len(names(look(store, source, tmp_path))[0]) == 3
    with store.database.reading() as connection:
        elsewhere = find_work(plan(source), "db1", "db2", connection, Home(tmp_path / "home"))
    assert len(elsewhere.sessions) == 1


def test_what_could_not_be_built_is_tried_again(store: Store, source: Path, tmp_path: Path) -> None:
    start = replace(
        session_start("night"),
        profile="smoke",
        options={
            "mode": "rounds",
            "seconds": 3.0,
            "settings": {},
            "versions": [BASE, "postgres@18.6", tip(source)],
            "not_built": {tip(source): "make failed"},
        },
    )
    record_steps(store, start, {"insert": {BASE: [1.0], "postgres@18.6": [1.0]}})
    assert names(look(store, source, tmp_path)) == [[BASE, tip(source)]]


def test_a_source_that_does_not_answer_is_told_and_the_rest_goes_on(store: Store, tmp_path: Path) -> None:
    work = look(store, tmp_path / "nothing here", tmp_path)
    assert names(work) == [[BASE, "postgres@18.6"]]
    _, *branches = work.targets
    assert [target.tracked for target in branches] == ["postgres@master", "postgres@stable"]
    for target in branches:
        assert target.outcome is TaskOutcome.UNREACHABLE
        assert "nothing here" in target.reason


def test_a_variant_is_a_branch_of_its_own(store: Store, source: Path, tmp_path: Path) -> None:
    tracked = {"base": BASE, "releases": ["18.6#o3"], "branches": ["master", "master#o3"], "git": str(source)}
    variants = {"o3": {"build": {"CFLAGS": "-O3"}, "settings": {"postgres.work_mem": "8MB"}}}
    followed = Plan.model_validate(PLAN | {"engines": {"postgres": tracked}, "variants": variants})

    def missing() -> NightWork:
        with store.database.reading() as connection:
            return find_work(followed, "db1", "db1", connection, Home(tmp_path / "home"))

    work = missing()
    new = [BASE, "postgres@18.6#o3", tip(source), f"{tip(source)}#o3"]
    assert names(work) == [new]
    request = work.sessions[0].request
    assert request.branches == {
        "postgres@18.6#o3": "postgres@18#o3",
        tip(source): "postgres@master",
        f"{tip(source)}#o3": "postgres@master#o3",
    }
    assert request.settings_of(parse_version(new[3])) == {"work_mem": "8MB"}
    assert request.settings_of(parse_version(new[2])) == {}
    assert work.sessions[0].environment.configuration == "smoke relaxed 3s"
    done(store, *new, branches=dict(request.branches))
    assert not missing().sessions


def test_an_extension_is_followed_as_a_branch_on_a_release(store: Store, tmp_path: Path) -> None:
    tiny = TinyExtension(tmp_path / "tiny")
    first = tiny.tagged("v1")
    variants = {"vec": {"extensions": [f"tiny={tiny.path}@main"]}}
    tracked = {"base": BASE, "releases": ["18.6#vec"]}
    followed = Plan.model_validate(PLAN | {"engines": {"postgres": tracked}, "variants": variants})

    def missing() -> NightWork:
        with store.database.reading() as connection:
            return find_work(followed, "db1", "db1", connection, Home(tmp_path / "home"))

    def version(commit: str) -> str:
        return f"postgres@18.6#vec-{commit[:12]}"

    work = missing()
    assert names(work) == [[BASE, version(first)]]
    assert work.targets[0].name == f"postgres@18.6#vec ({first[:12]})"
    assert work.spots[0].branches == {"postgres@18#vec"}
    request = work.sessions[0].request
    assert request.branches == {version(first): "postgres@18#vec"}
    (extension,) = definition_of(parse_version(version(first)), request.variants).extensions
    assert (extension.repository, extension.ref) == (str(tiny.path), first[:12])
    done(store, BASE, version(first), branches=dict(request.branches))
    assert not missing().sessions
    second = tiny.tagged("v2", factor=2)
    assert names(missing()) == [[BASE, version(second)]]
    shutil.rmtree(tiny.path / ".git")
    (target,) = missing().targets
    assert target.outcome is TaskOutcome.UNREACHABLE


def test_a_base_alone_is_measured_once(store: Store, tmp_path: Path) -> None:
    alone = Plan.model_validate(PLAN | {"engines": {"postgres": {"base": BASE}}})
    with store.database.reading() as connection:
        first = find_work(alone, "db1", "db1", connection, Home(tmp_path / "home"))
    assert names(first) == [[BASE]]
    assert not first.sessions[0].request.needs_contender
    done(store, BASE)
    with store.database.reading() as connection:
        assert not find_work(alone, "db1", "db1", connection, Home(tmp_path / "home")).sessions

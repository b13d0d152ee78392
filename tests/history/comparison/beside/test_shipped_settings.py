"""Which settings of the servers of a comparison are not those of their releases."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from build.version import parse_version
from compare import main
from history.comparison.compare import compare
from history.open import open_store
from history.rendering.notes import notes
from history.store.records import SessionStatus
from runners.cli import parser
from tests.history.handmade import NIGHT, run_record, session_start

OLD, NEW = "postgres@17.11", "postgres@18.6"
TUNED = {"jit": "off", "max_parallel_workers_per_gather": "0"}
SYNC = {**TUNED, "io_method": "sync"}
START = (
    "not the release's settings: postgres@18.6: io_method = sync (its release has worker); as released: "
    "./tidemark run --suite write-heavy --profile short --step insert --with "
    "released2:setting.io_method=worker --repetitions 3 --no-exact postgres@17.11 'postgres@18.6#released2'"
)


def said(
    folder: Path, settings: Mapping[str, Mapping[str, str]], qps: float = 1000.0, **options: object
) -> list[str]:
    """The notes that are about settings, of two versions that are equally fast with eight clients."""
    old, new = settings
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        start = session_start()
        session = store.start_session(replace(start, options={**start.options, **options}))
        for version, chosen in settings.items():
            ran_with = {"server_version": version.partition("@")[2].partition("#")[0], **chosen}
            for number in (1, 2, 3):
                run = run_record({"qps": qps + number}, version=version, repetition=number)
                store.record_run(session, replace(run, configuration=ran_with))
        store.finish_session(session, SessionStatus.FINISHED)
        comparison = compare(store, parse_version(old), [parse_version(new)])
    lines = notes(comparison, comparison.contenders[0])
    return [line for line in lines if line.startswith("not the release's settings")]


def test_a_setting_that_a_release_ships_otherwise_is_told_with_the_command(tmp_path: Path) -> None:
    assert said(tmp_path, {OLD: TUNED, NEW: SYNC}) == [START]


def test_parallel_workers_and_jit_are_told_of_slow_queries(tmp_path: Path) -> None:
    (line,) = said(tmp_path, {OLD: TUNED, NEW: SYNC}, qps=10.0)
    assert "postgres@17.11: max_parallel_workers_per_gather = 0 (its release has 2), jit = off (" in line
    assert "--with released1:setting.jit=on" in line
    assert line.endswith(" 'postgres@17.11#released1' 'postgres@18.6#released2'")


def test_on_a_screen_the_command_names_the_home_the_step_and_the_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what the parser of the command line takes, in whatever folder it is typed."""
    said(tmp_path, {OLD: TUNED, NEW: SYNC}, seconds=7)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "my home"))
    main([OLD, NEW, "--history", str(tmp_path / "history.db")])
    lines = capsys.readouterr().out.splitlines()
    for start, program in (("not the release's settings: ", "as released: "), ("Not calibrated: ", "")):
        (line,) = (line for line in lines if line.startswith(start))
        home, path, *words = shlex.split(line.removeprefix(start).rpartition(program or start)[2])
        assert (home, path) == (f"TIDEMARK_HOME={tmp_path / 'my home'}", str(ROOT / "tidemark"))
        asked = parser().parse_args(words)
        assert asked.step == ["insert"]
        if asked.command == "run":
            assert asked.seconds == 7
            assert [str(version) for version in asked.versions] == [OLD, f"{NEW}#released2"]


@pytest.mark.parametrize(
    "settings",
    [
        {OLD: TUNED, NEW: {**TUNED, "io_method": "worker"}},
        {OLD: TUNED, "postgres@17.12": TUNED},
        {"mysql@9.7.2": {}, "mysql@9.6.0": {}},
        {OLD: {}, NEW: {}},
    ],
    ids=["as shipped", "before there was one", "MySQL", "not recorded"],
)
def test_nothing_is_said_without_one_that_can_matter(
    tmp_path: Path, settings: Mapping[str, Mapping[str, str]]
) -> None:
    assert said(tmp_path, settings) == []


def test_what_a_variant_sets_is_meant_so(tmp_path: Path) -> None:
    variants = {"uring": {"settings": {"io_method": "io_uring"}}}
    uring = {**TUNED, "io_method": "io_uring"}
    (line,) = said(tmp_path, {NEW: SYNC, f"{NEW}#uring": uring}, variants=variants)
    assert line == START.partition("; as released")[0], "of the other side alone, and without a command"

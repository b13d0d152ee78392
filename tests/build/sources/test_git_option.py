"""`--git`: one option of every command that takes branches and commits, and what is said without it."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import compare
from build.engines import ENGINES
from build.home import Home
from build.sources.git import GitError, clone_at
from build.sources.repository import GIT_HELP, engine_of, known_address, repository_address
from build.sources.source import as_recorded
from build.version import Engine, parse_revision
from runners.cli import main, parser
from runners.commands.run import RequestError, sources_of
from tests.plain_repository import PlainRepository


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainRepository:
    """A clone with the files of Postgres, and a home."""
    for engine in Engine:
        monkeypatch.delenv(f"TIDEMARK_GIT_{engine.upper()}", raising=False)
        nowhere = replace(ENGINES[engine].upstream, git=str(tmp_path / "no-such-repository"))
        monkeypatch.setitem(ENGINES, engine, replace(ENGINES[engine], upstream=nowhere))
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    work = PlainRepository(tmp_path / "work")
    for name in ENGINES[Engine.POSTGRES].tree_files:
        work.commit(f"{name}/x")
    return work


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield "compare", compare.parser()
    waiting = [("", parser())]
    while waiting:
        name, found = waiting.pop()
        yield name, found
        for action in found._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{name} {word}".strip(), below) for word, below in action.choices.items()]


def test_every_command_that_takes_commits_has_the_option_with_one_help() -> None:
    helps = {
        name: action.help
        for name, found in parsers()
        for action in found._actions
        if "--git" in action.option_strings
    }
    assert set(helps) == {
        "build",
        "run",
        "calibrate",
        "compare",
        "bisect",
        "try",
        "profile show",
        "profile diff",
    }
    assert set(helps.values()) == {GIT_HELP}


def test_a_clone_around_the_current_folder_is_taken(
    work: PlainRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = clone_at(work.path)
    assert found is not None
    assert engine_of(found) is Engine.POSTGRES
    monkeypatch.chdir(work.path / "src")
    assert repository_address(Engine.POSTGRES, None) == str(work.path)
    assert known_address(Engine.MYSQL, None) is None
    monkeypatch.setenv("TIDEMARK_GIT_POSTGRES", "/env")
    assert known_address(Engine.POSTGRES, None) == "/env"
    assert known_address(Engine.POSTGRES, "/given") == "/given"
    monkeypatch.chdir(tmp_path)
    assert repository_address(Engine.MYSQL, None) == ENGINES[Engine.MYSQL].upstream.git


@pytest.mark.parametrize(
    "words",
    [
        ["run", "postgres@mian", "postgres@main"],
        ["calibrate", "postgres@mian"],
        ["build", "postgres@mian"],
        ["bisect", "--good", "main~1", "--bad", "mian", "--step", "insert"],
        ["try", "mian", "--against", "main"],
        ["compare", "postgres@main~1", "postgres@mian~1"],
        ["profile", "diff", "postgres@main~1", "postgres@mian~1", "--step", "insert"],
    ],
    ids=lambda words: str(words[0]),
)
def test_a_mistyped_branch_is_refused_at_once(
    work: PlainRepository, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--git", str(work.path)]) == 2
    said = capsys.readouterr().err
    assert "no tag, branch or commit 'mian" in said
    assert "did you mean main?" in said


@pytest.mark.parametrize(
    "words",
    [
        ["run", "postgres@main~1", "postgres@main"],
        ["calibrate", "postgres@main"],
        ["build", "postgres@main"],
        ["bisect", "--good", "main~1", "--bad", "main", "--step", "insert"],
        ["try", "main", "--against", "main"],
        ["compare", "postgres@main~1", "postgres@main"],
        ["profile", "show", "postgres@main~1", "--step", "insert"],
    ],
    ids=lambda words: str(words[0]),
)
def test_without_a_repository_the_option_is_named(
    work: PlainRepository, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "--git" in capsys.readouterr().err


def test_a_version_is_compared_under_the_name_that_was_recorded(
    work: PlainRepository, tmp_path: Path
) -> None:
    home, first = Home(tmp_path / "home"), work.git("rev-parse", "main~1")
    named = as_recorded(parse_revision("postgres@main~1#fast"), home, str(work.path))
    assert str(named) == f"postgres@git:{first[:12]}#fast"
    head = work.git("rev-parse", "HEAD")
    assert (
        str(as_recorded(parse_revision("postgres@HEAD"), home, str(work.path))) == f"postgres@git:{head[:12]}"
    )
    branch = parse_revision("postgres@main")
    assert as_recorded(branch, home, None) is branch
    with pytest.raises(GitError, match="only its repository knows"):
        as_recorded(parse_revision("postgres@main~1"), home, None)


def test_one_repository_is_of_one_engine() -> None:
    release, commit = parse_revision("mysql@8.4.7"), parse_revision("postgres@main")
    assert sources_of((release, commit), "/pg") == {Engine.MYSQL: "/pg", Engine.POSTGRES: "/pg"}
    with pytest.raises(RequestError, match="two engines") as caught:
        sources_of((parse_revision("mysql@trunk"), commit), "/pg")
    assert "TIDEMARK_GIT_MYSQL and TIDEMARK_GIT_POSTGRES" in caught.value.hint

"""The trials in odd surroundings: every kind of fault is seen, and commands have none in any environment."""

from functools import partial
from pathlib import Path

import pytest

from runners.cli import parser
from tests.robustness.surroundings.answers import CommandAnswer, Expected, content, faults
from tests.robustness.surroundings.commands import COMMANDS, READING
from tests.robustness.surroundings.environments import ENVIRONMENTS
from tests.robustness.surroundings.trials import commands_in
from tests.robustness.surroundings.upgrades import recorded_histories, upgraded, write

PLAIN = CommandAnswer(0, b"a table\n", b"")


@pytest.mark.parametrize(
    ("given", "expected", "fault"),
    [
        (CommandAnswer(None, b"waiting", b""), Expected.ANSWER, "no answer within"),
        (CommandAnswer(1, b"", b"Traceback (most recent call last):\n"), Expected.SILENCE, "a traceback"),
        (CommandAnswer(-11, b"", b""), Expected.SILENCE, "exit code -11"),
        (CommandAnswer(3, b"", b"help"), Expected.ANSWER, "exit code 3"),
        (CommandAnswer(0, b"a tab", b""), Expected.SAME, "another output"),
        (CommandAnswer(1, b"a table\n", b""), Expected.SAME, "exit code 1 instead of 0"),
        (CommandAnswer(0, b"", b""), Expected.REFUSAL, "instead of a refusal"),
        (CommandAnswer(2, b" ", b"\n"), Expected.ANSWER, "without a word"),
    ],
)
def test_a_fault_is_seen(given: CommandAnswer, expected: Expected, fault: str) -> None:
    assert [fault in text for text in faults(given, expected, PLAIN)] == [True]


@pytest.mark.parametrize("expected", Expected)
def test_what_is_expected_is_no_fault(expected: Expected) -> None:
    given = PLAIN if expected is not Expected.REFUSAL else CommandAnswer(2, b"", b"tidemark: full\n")
    assert list(faults(given, expected, PLAIN)) == []


def test_a_history_that_is_written_has_another_content(tmp_path: Path) -> None:
    write(recorded_histories()[-1], tmp_path / "history.db")
    before = content(tmp_path)
    (tmp_path / "history.db-shm").write_bytes(b"left by a reader")
    assert content(tmp_path) == before
    (tmp_path / "history.db-wal").write_bytes(b"left by a writer")
    assert content(tmp_path) != before


def test_the_commands_are_ours() -> None:
    """But for one that is mistyped, each word selects a command."""
    known = next(iter(action.choices for action in parser()._actions if action.choices))
    assert {command.words[0] for command in COMMANDS} - set(known) == {"--help", "compair"}


@pytest.mark.deep("hundreds of damaged inputs")
def test_compare_answers_in_all_environments() -> None:
    history = partial(write, recorded_histories()[-1])
    outcome = commands_in(ENVIRONMENTS, READING[:1], history)
    assert outcome.faults == []
    assert outcome.tried + len(outcome.skipped) == len(ENVIRONMENTS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_commands_answer_in_all_environments() -> None:
    history = partial(write, recorded_histories()[-1])
    assert commands_in(ENVIRONMENTS, COMMANDS, history).faults == []


@pytest.mark.long
@pytest.mark.parametrize("text", recorded_histories(), ids=lambda path: path.stem)
def test_a_history_of_any_schema_is_read_and_written(text: Path) -> None:
    assert list(upgraded(text)) == []


@pytest.mark.deep("hundreds of damaged inputs")
def test_no_command_fails_in_a_folder_that_is_gone() -> None:
    history = partial(write, recorded_histories()[-1])
    gone = [environment for environment in ENVIRONMENTS if environment.name == "current folder deleted"]
    outcome = commands_in(gone, READING, history)
    assert (outcome.tried, outcome.faults) == (len(READING), [])

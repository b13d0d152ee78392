"""Steps that only read: the servers start from the loaded data once in a round, not once in a step."""

import pytest

from runners.measuring import round_measurement
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.test_rounds import NEW, OLD, SUITE, carry_out

READ_ONLY = SUITE.model_copy(
    update={"steps": tuple(step.model_copy(update={"reads_only": True}) for step in SUITE.steps)}
)


def starts(journal: Journal) -> list[str]:
    """When servers were restored and started, among the runs; without what precedes the first run."""
    lines = [line for line in journal.lines if line.split()[0] in ("restore", "start", "run")]
    return lines[lines.index("restore 17.11") :]


def started(*releases: str) -> list[str]:
    return [f"{what} {release}" for release in releases for what in ("restore", "start")]


def test_servers_start_once_in_a_round(journal: Journal) -> None:
    carry_out(journal, (OLD, NEW), 2, suite=READ_ONLY)
    steps = ["run 17.11 18.6 update-index", "run 17.11 18.6 delete"]
    assert starts(journal) == [*started("17.11", "18.6"), *steps, *started("18.6", "17.11"), *steps]


def test_after_a_server_died_both_begin_again_from_the_loaded_data(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 1}
    carry_out(journal, (OLD, NEW), 1, suite=READ_ONLY)
    at = journal.lines.index("run 17.11 18.6 update-index")
    assert journal.lines[at + 1 : at + 3] == ["abandon 17.11", "abandon 18.6"]
    assert starts(journal)[5:] == [
        *started("17.11"),  # measured again without the one that died
        "run 17.11 update-index",
        *started("18.6"),
        "run 17.11 18.6 delete",
    ]


def test_servers_that_do_not_fit_together_start_in_every_step(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_measurement, "fit_together", lambda *_: False)
    carry_out(journal, (OLD, NEW), 1, suite=READ_ONLY)
    assert sum(line.startswith("restore") for line in journal.lines) == 4

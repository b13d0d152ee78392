"""`status` names the open changes, whose they are, and mutes that are over."""

from pathlib import Path

import pytest

from runners.cli import main
from tests.history.watched import record_regression
from tests.runners.small_plan import small_plan

RULES = """
[[owners]]
assignee = "alice"
[[mutes]]
steps = ["delete"]
until = 2020-02-29
reason = "it is known"
"""


@pytest.mark.deep("months of simulated nights")
def test_status_lists_open_changes_with_their_owners_and_mutes_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    record_regression(tmp_path / "history.db")
    plan = tmp_path / "plan.toml"
    plan.write_text(f"backups = 0\n{small_plan(['insert'], '')}{RULES}")
    assert main(["nightly", "--report", "--plan", str(plan)]) == 1
    capsys.readouterr()
    main(["status", "--plan", str(plan)])
    *_, opened, notice = capsys.readouterr().out.splitlines()
    assert opened.startswith("open     postgres@REL_18_STABLE: insert ")
    assert opened.endswith("owner: alice (assignee)")
    assert notice.startswith("the mute of steps delete (it is known) ended: 2020-02-29 was its last day")

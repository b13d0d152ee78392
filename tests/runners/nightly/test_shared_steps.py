"""What moved most series of a box is said in the summary once, however many branches show it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.simulation.boxes.shared_causes import NO_COMMITS
from benchmarks.simulation.boxes.teams import judged, quiet_team
from history.changes.report import report_changes
from history.open import open_reader
from runners.nightly.report import NightReport
from runners.nightly.summary import summary


@pytest.mark.deep("months of simulated nights")
def test_a_box_that_moved_is_one_note_and_one_item_of_the_summary(tmp_path: Path) -> None:
    team = quiet_team((9970, 3))
    NO_COMMITS["box -3 %"](team)
    detected = judged(tmp_path / "history.db", team, (20,))[-1]
    with open_reader(tmp_path / "history.db") as history, history.database.reading() as connection:
        explained = report_changes(connection, detected.explained)
    assert len(explained) > 1
    found = NightReport(
        detected.series, (), (), (), len(detected.open), notes=detected.notes, explained=explained
    )
    text = str(summary(None, found, [], datetime(2026, 3, 1, tzinfo=UTC)))
    (machine,) = [line for line in text.splitlines() if line.startswith("- machine: ")]
    assert "most series of 2 branches moved together" in machine
    (item,) = [line for line in text.splitlines() if line.startswith("- explained, not alerted: ")]
    assert "17" in item
    assert "18" in item
    assert item.count("moved together") == 1

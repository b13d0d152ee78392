"""Nights of a branch: unknown, undecided, failed, missing and unchanged are told apart without colour."""

import re
from collections import Counter
from pathlib import Path

import pytest

from report.charts.looks import Look, Sight, look_of, signs
from suites.metrics import Better
from tests.report.conftest import write
from tests.report.histories.failing import BLIND, GOOD, REASON, record_failing
from tests.report.parsed import parsed


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a history that failed in its last nights."""
    folder = tmp_path_factory.mktemp("failing")
    record_failing(folder / "h.db")
    write(folder / "h.db", folder / "site")
    return folder / "site"


def text_of(site: Path, page: str) -> str:
    return " ".join((site / page).read_text(encoding="utf-8").split())


def labels(site: Path, page: str) -> list[str]:
    """Return the labels of the strips of a page."""
    return re.findall(r'class="chart strip" role="group" aria-label="([^"]+)"', text_of(site, page))


@pytest.mark.parametrize(
    ("ratio", "reason", "visible", "is_open", "look"),
    [
        (0.9, "", None, None, Look.UNKNOWN),  # not calibrated, no rounds
        (1.0, "", None, None, Look.UNKNOWN),
        (0.9, "", None, True, Look.UNDECIDED),  # the session has rounds, which decided nothing
        (1.0, "", None, False, Look.UNCHANGED),
        (0.9, "", None, False, Look.WORSE),
        (1.1, "", 0.02, None, Look.BETTER),
        (1.03, "", 0.05, None, Look.UNDECIDED),  # the calibration says that 3 % may be noise
        (1.0, "", 0.01, None, Look.UNCHANGED),
        (None, "the server did not start", 0.01, None, Look.FAILED),
        (None, "", 0.01, None, Look.MISSING),
    ],
)
def test_a_night_has_the_look_of_what_is_known(
    ratio: float | None, reason: str, visible: float | None, is_open: bool | None, look: Look
) -> None:
    assert look_of(ratio, reason, Sight(Better.HIGHER, 0.02, visible, is_open)) is look


def test_every_look_has_a_sign_of_its_own() -> None:
    assert len({look.value for look in Look}) == len(Look)
    drawn = {look: "".join(signs([look])) for look in Look}
    assert all(drawn.values())
    assert len(set(drawn.values())) == len(Look)


def test_nights_that_failed_are_seen_with_their_reason(failing: Path) -> None:
    page = "branches/postgres-REL_18_STABLE.html"
    ours, theirs = labels(failing, page)
    assert ours.endswith(f"2 steps by {GOOD + BLIND} nights: {2 * GOOD} unchanged, {2 * BLIND} failed")
    assert theirs.endswith(f"{2 * (GOOD + BLIND)} unchanged")
    assert text_of(failing, page).count(f"failed, {REASON}</title>") == 2 * BLIND
    rows = [row for row in parsed(failing / page).rows if row[2:] == ["all", REASON]]
    assert len(rows) == BLIND
    assert f"{2 * BLIND} failed: the night began, and has no value" in text_of(failing, page)


def test_a_branch_that_fails_says_so_first(failing: Path) -> None:
    said = f"write-heavy on db1: failed {BLIND} nights in a row, since 2026-04-01: {REASON}"
    for page in ("branches/postgres-REL_18_STABLE.html", "branches/index.html"):
        assert f'<p class="note failed"><span aria-hidden="true">✖ </span>{said}</p>' in text_of(
            failing, page
        )


def test_undecided_nights_are_told_from_unchanged_ones(site: Path) -> None:
    """The rich history has rounds: three of four of its nights decide nothing."""
    found = Counter[str]()
    for label in labels(site, "branches/postgres-master.html")[:2]:
        found += Counter({look: int(number) for number, look in re.findall(r"(\d+) ([a-z]+)(?=,|$)", label)})
    assert found["undecided"] > found["unchanged"] > 0
    assert found["missing"] == 4  # the night that the second box missed
    assert found["failed"] == 1
    assert "unknown" not in found


def test_a_box_counts_nights_that_failed_and_its_sessions_do_not_look_finished(failing: Path) -> None:
    rows = {row[0]: row[5:8] for row in parsed(failing / "machines/index.html").rows[1:]}
    assert rows == {"db1": [str(GOOD + BLIND), str(BLIND), "0"], "db2": [str(GOOD + BLIND), "0", "0"]}
    states = [row[-1] for row in parsed(failing / "sessions/index.html").rows]
    assert states.count("finished, every run failed") == BLIND
    assert "finished, every run failed" in text_of(failing, f"sessions/db1-{GOOD + BLIND}.html")


def test_pages_count_the_same_nights(site: Path) -> None:
    """Calibrations are in the series, and are no nights."""
    nights = {row[0]: row[5] for row in parsed(site / "machines/index.html").rows[1:]}
    assert nights == {"db1": "46", "db2": "45"}
    rows = {row[0]: row[3] for row in parsed(site / "branches/index.html").rows[1:]}
    assert rows["postgres@17"] == rows["postgres@master"] == str(46 + 45)
    page = text_of(site, "branches/postgres-master.html")
    assert "last 46 nights." in page
    assert "last 45 nights, 1 missing." in page

"""The published tables of mytools, imported and compared: the ratios are those that he published."""

from pathlib import Path

import pytest

import compare as program
from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.verdict import Gap
from history.open import open_store
from history.store.writer import Store
from history.transfer.foreign.values import Given
from history.transfer.format_detection import open_files
from history.transfer.merging import merge
from tests.suites.golden import require_golden

FACTS = ROOT / "tests/golden/facts"
"""Some tests of the tables whose copy lies in the shared folder, line by line as they are there."""

SHARED = ROOT.parent / "shared" / "facts"
BASE = "postgres@12.22"
CONTENDERS = (
    "postgres@13.23",
    "postgres@14.20",
    "postgres@15.15",
    "postgres@16.11",
    "postgres@17.7",
    "postgres@18.1",
)

PUBLISHED = {
    "update-index": (0.97, 1.12, 1.06, 0.95, 1.70, 1.67),
    "update-nonindex": (0.91, 1.01, 0.98, 0.85, 1.67, 1.64),
    "update-one": (1.01, 1.00, 0.97, 0.88, 1.32, 1.27),
    "insert": (1.01, 1.05, 1.01, 1.00, 1.05, 1.05),
}
"""Relative QPS by test and contender, from his blog."""

COSTS = {
    "machine_cpu_us_per_op": (0.98, 0.98, 0.93, 0.97, 0.68, 0.69),
    "machine_cs_per_op": (1.01, 0.95, 1.00, 1.09, 0.52, 0.53),
    "machine_written_kb_per_op": (0.80, 0.91, 0.94, 1.00, 1.01, 1.02),
}
"""Of update-index, from the relative half of its block, which is not imported."""


def imported(path: Path, folder: Path = FACTS, base: str | None = None) -> Store:
    store = open_store(path)
    files = sorted(file for file in folder.iterdir() if file.name.startswith("postgres"))
    merge(store, open_files(files, Given(cores=48, base=base), store).sources)
    return store


def test_ratios_are_the_published_ones(tmp_path: Path) -> None:
    with imported(tmp_path / "h.db") as store:
        found = compare(store, parse_version(BASE), [parse_version(ref) for ref in CONTENDERS])
    for place, contender in enumerate(found.contenders):
        steps = {step.step: step for step in contender.steps}
        for test, wanted in PUBLISHED.items():
            step = steps[f"{test}_range=100"]
            assert step.judged.value == pytest.approx(wanted[place], abs=0.0051)
            assert step.judged.gap is Gap.TOO_FEW
        costs = {cost.metric: cost.value for cost in steps["update-index_range=100"].beside}
        for metric, wanted in COSTS.items():
            assert costs[metric] == pytest.approx(wanted[place], abs=0.0051)


@pytest.mark.deep("merges and exports whole histories, also when killed")
def test_what_compare_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    imported(tmp_path / "h.db").close()
    words = [BASE, "postgres@17.7", "--history", "h.db"]
    assert program.main(words) == 2
    said = capsys.readouterr().out
    require_golden("compared.txt", said, FACTS)


def test_cpu_is_in_microseconds_of_all_cores(tmp_path: Path) -> None:
    """0.000264 % of 48 cores in a second, per operation, is 126.7 µs."""
    with imported(tmp_path / "h.db") as store:
        options = CompareOptions(metric="machine_cpu_us_per_op", steps=("update-index_range=100",))
        found = compare(store, parse_version(BASE), [parse_version("postgres@17.7")], options)
    assert found.contenders[0].steps[0].judged.base == pytest.approx(126.7, abs=0.05)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the whole tables are not on this machine")
def test_the_whole_tables_agree_with_each_other(tmp_path: Path) -> None:
    """QPS is in both: an import of both would be refused if they named a test differently or disagreed."""
    with imported(tmp_path / "h.db", SHARED) as store:
        session = store.latest_session([])
        assert session is not None
        runs = store.runs(session.id)
    assert len({run.step for run in runs}) == 38
    assert len(runs) == 38 * 7
    assert all(len(run.values) == 6 for run in runs)
    for path in FACTS.glob("postgres*"):
        whole = (SHARED / path.name).read_text(encoding="utf-8").splitlines()
        assert set(path.read_text(encoding="utf-8").splitlines()) <= set(whole)

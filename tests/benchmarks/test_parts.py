"""The parts of every benchmark, which are in the documentation, and the figures that it prints."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.output.figures import Figure, report
from benchmarks.surroundings.recorded_sessions import record_sessions
from build.errors import TidemarkError
from build.version import parse_version
from history.store.records import FailureCause, VersionFailure
from runners.commands import bench
from runners.console import Lines
from runners.measuring.session import SessionOutcome

BENCHES = (
    "bisect",
    "detection",
    "kinds",
    "overhead",
    "scale",
    "verdicts",
)
CONFIGURATION = Path("docs/configuration.md").resolve()


@pytest.mark.parametrize("words", ["imagined", ""])
@pytest.mark.parametrize("name", BENCHES)
def test_a_word_that_is_no_part_is_refused(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_BENCH_PARTS", words)
    with pytest.raises(TidemarkError, match=f"^bench {name} has no part") as refused:
        import_module(f"benchmarks.{name}").main()
    row = next(line for line in CONFIGURATION.read_text().splitlines() if "`TIDEMARK_BENCH_PARTS`" in line)
    described = re.search(rf"`{name}`: (.*?)(?:\. `| \|)", row)
    assert described is not None
    for part in refused.value.hint.removeprefix("the parts are: ").split(", "):
        assert f"`{part}`" in described.group(1)


def test_all_that_have_parts_are_tried() -> None:
    having = {name for name in bench.names() if "chosen_parts(" in bench.files()[name].read_text()}
    assert having == set(BENCHES)


def test_a_figure_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    note = "it does not start\n  where: server.log\n  to do: look there"
    assert report([Figure("failures", 1, "", at_most=0, note=note)]) == 1
    assert capsys.readouterr().out.endswith("MISSED  it does not start where: server.log to do: look there\n")


def test_a_session_without_a_build_is_a_missed_figure() -> None:
    why = VersionFailure(FailureCause.VERSION, "it does not compile")
    outcome = SessionOutcome(not_built={parse_version("postgres@18.6"): why})
    (figure,) = record_sessions("equal", 1, lambda: 0, lambda: outcome, Lines())
    assert (figure.met, figure.note) == (False, "it does not compile")

"""The parts of every benchmark: a word that is no part is refused, and the parts are in the documentation."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from build.errors import TidemarkError
from runners.commands import bench

BENCHES = (
    "applications",
    "bisect",
    "detection",
    "fleet",
    "io",
    "kinds",
    "overhead",
    "robustness",
    "service",
    "site",
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

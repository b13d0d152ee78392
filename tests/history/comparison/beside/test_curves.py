"""Curves over clients: where they peak, how much is lost, and what a comparison shows of them."""

from dataclasses import replace
from pathlib import Path

import pytest

import compare as program
from history.comparison.beside.curves import Shape, shape
from history.open import open_store
from tests.history.handmade import record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"


@pytest.mark.parametrize(
    ("throughputs", "found"),
    [
        ([100.0, 400.0, 300.0], Shape(400.0, 8, 64, 0.25, 200.0)),
        ([100.0, 200.0, 300.0], Shape(300.0, 64, 64, 0.0, 150.0)),
        ([300.0, 300.0, 300.0], Shape(300.0, 1, 64, 0.0, 150.0)),
        ([None, 400.0, 300.0], Shape(400.0, 8, 64, 0.25, 200.0)),
        ([100.0, 400.0, None], None),
    ],
)
def test_the_shape_of_a_curve(throughputs: list[float | None], found: Shape | None) -> None:
    assert shape([1, 8, 64], throughputs, 2) == found


def sweep(path: Path, option: object) -> Path:
    steps = {
        "read-write@1": {BASE: [100.0] * 3, NEW: [100.0] * 3},
        "read-write@8": {BASE: [500.0] * 3, NEW: [400.0] * 3},
        "read-write@64": {BASE: [400.0] * 3, NEW: [400.0] * 3},
    }
    options: dict[str, object] = {"versions": [BASE, NEW], "levels": option}
    with open_store(path) as store:
        record_steps(store, replace(session_start(), options=options), steps)
    return path


LEVELS = {f"read-write@{count}": {"step": "read-write", "clients": count} for count in (1, 8, 64)}


def test_a_comparison_shows_the_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main([BASE, NEW, "--history", str(sweep(tmp_path / "h.db", LEVELS)), "--format", "markdown"])
    said = capsys.readouterr().out
    assert "read-write: queries/s by clients\n\n| clients | base | new | rel | base of peak |" in said
    assert "| 8 | 500 | 400 | 0.80 | 100 % | 100 % | – | **regression?** |" in said
    assert "| 64 | 400 | 400 | 1.00 | 80 % | 100 % | – | unchanged |" in said
    base = "peak 500 queries/s with 8 clients, 10.42 per core; with 64 clients 20 % less"
    new = "peak 400 queries/s with 8 clients, 8.333 per core; with 64 clients as many"
    assert f"- read-write, base: {base}\n- read-write, new: {new}\n" in said


def test_steps_without_levels_make_no_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main([BASE, NEW, "--history", str(sweep(tmp_path / "h.db", {})), "--format", "markdown"])
    assert "by clients" not in capsys.readouterr().out

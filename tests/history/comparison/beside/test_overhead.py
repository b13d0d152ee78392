"""Overheads: which comparisons are pairs, and what is said of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import compare as program
from history.open import open_store
from tests.history.handmade import record_steps, session_start

BASE, POOLED, OPTIMISED = "postgres@18.6", "postgres@18.6#pooled", "postgres@18.6#o3"
VARIANTS = {"pooled": {"companions": ["pgbouncer"]}, "o3": {"build": {"CFLAGS": "-O3"}}}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    steps = {"insert": {BASE: [100.0, 101.0, 99.0], POOLED: [90.0, 91.0, 89.0], OPTIMISED: [110.0] * 3}}
    options: dict[str, object] = {"versions": [BASE, POOLED, OPTIMISED], "variants": VARIANTS}
    with open_store(tmp_path / "h.db") as store:
        record_steps(store, replace(session_start(), options=options), steps)
    return tmp_path / "h.db"


def said(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    program.main([*words, "--history", str(path)])
    return " ".join(capsys.readouterr().out.split())


def test_the_overhead_of_a_pair(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(recorded, capsys, BASE, POOLED)
    assert "overhead, 1 - new/base: insert +10.0 % (" in text
    assert "postgres@18.6#pooled: beside pgbouncer" in text
    assert "every difference is noise" not in text
    assert "overhead, 1 - new/base: none in insert, which is faster" in said(recorded, capsys, POOLED, BASE)


def test_the_overhead_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (contender,) = json.loads(said(recorded, capsys, BASE, POOLED, "--format", "json"))["contenders"]
    (overhead,) = contender["overheads"]
    assert overhead["step"] == "insert"
    assert overhead["low"] < overhead["value"] < overhead["high"]
    assert overhead["value"] == pytest.approx(0.1, abs=0.001)


@pytest.mark.parametrize("words", [(BASE, OPTIMISED), (BASE, POOLED, "--metric", "server_cpu_us_per_op")])
def test_other_comparisons_have_no_overhead(
    recorded: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert "overhead" not in said(recorded, capsys, *words)

"""How servers warmed up in long mode, as compare.py tells it in words and in JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build.version import parse_version
from history.comparison.compare import compare
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.notes import origin_lines
from suites.turns.warmth import Warmth, warmth_of
from tests.history.handmade import record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
WARM, COLD = Warmth(45.0, checkpoint=True), Warmth(300.0, checkpoint=True, lacking=("no checkpoint is over",))


def test_a_session_says_how_long_its_servers_warmed_up(tmp_path: Path) -> None:
    start = replace(session_start(), options={"versions": [BASE, NEW], "mode": "long", "seconds": 9.0})
    both = {BASE: [100.0] * 3, NEW: [100.0] * 3}
    with open_store(tmp_path / "h.db") as store:
        session = record_steps(store, start, {"insert": both, "delete": both}, status=None)
        store.record_warmth(session, "insert", WARM)
        store.record_warmth(session, "delete", COLD)
        store.record_warmth(session, "a step that nobody measured", COLD)
        comparison = compare(store, parse_version(BASE), [parse_version(NEW)])
    (contender,) = comparison.contenders
    assert contender.session.warmth["delete"] == COLD
    first, _, warmed, lacking, *_ = origin_lines(comparison, contender)
    assert "3 blocks" in first
    assert warmed == (
        "Each version warmed up until its cache was full or no longer grew, and a checkpoint was over, or "
        "time was up: 45 s before insert; 5 min before delete."
    )
    assert lacking == "not warm after 5 min: delete: no checkpoint is over"
    (told,) = json.loads(render_json(comparison))["contenders"]
    assert told["session"]["warmed_up"] == {"insert": WARM.as_option(), "delete": COLD.as_option()}


@pytest.mark.parametrize(
    "option",
    [
        None,
        3,
        {"insert": None},
        {"insert": {"seconds": "45", "for": [], "lacking": []}},
        {"insert": {"seconds": 45, "for": "memory", "lacking": []}},
        {"insert": {"seconds": 45, "for": ["memory"]}},
    ],
)
def test_what_says_nothing_of_warming_up_is_left_out(option: Any) -> None:
    assert warmth_of(option) == {}


@pytest.mark.parametrize("warmth", [WARM, COLD, Warmth(1.5, checkpoint=False)])
def test_what_is_stored_is_read_again(warmth: Warmth) -> None:
    assert warmth_of(json.loads(json.dumps({"insert": warmth.as_option()}))) == {"insert": warmth}

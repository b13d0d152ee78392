"""What people read of a bisect: report, status, replay; in words, Markdown and JSON."""

import itertools
import json
import secrets
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import htpy as h
import pytest

from build.home import ROOT
from history.comparison.profile_diff import differential
from report.pages.bisect import bisect_page
from report.values.clearance import Clearance
from runners.bisect.domain.question import BisectPoint
from runners.bisect.domain.rules import LevelStep, SearchVerdict
from runners.bisect.report.render import markdown, result, text
from runners.bisect.report.replay import LogError, read_file, replay
from runners.bisect.report.state import BisectState, export, verdict_of
from runners.bisect.report.wording import headline, merge_hint, reproduce, smaller_step_hint, undone_hint
from runners.bisect.run.event_log import Log
from runners.cli import main, parser
from runners.measuring.variants import definition_of, require_defined, variants_of
from runners.reporting.bisects import bisect_values
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY
from tests.history.profiled import profile
from tests.runners.bisect.conftest import Line
from tests.runners.bisect.stand import Stand, a_question
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners"

Made = Callable[..., Stand]


@pytest.fixture
def log(stand: Made, line: Line, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A culprit among commits that do not compile, and two calls: the budget of the first was too small."""
    numbers = itertools.count(1)
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    broken = {line.version(place): "cc -c a.c\na.c:1: error: expected ';' | <b>" for place in range(6, 10)}
    machine = stand((11, 0.7), uncompilable=broken)
    question = a_question(line.good[:12], line.code[-1][:12])
    machine.bisect(question, budget_seconds=4 * 60.0)
    return machine.bisect(question)


def test_golden_reports(log: Log) -> None:
    state = BisectState(log)
    require_golden("bisect.txt", text(state), GOLDEN)
    require_golden("bisect.md", markdown(state), GOLDEN)
    require_golden("bisect-replay.txt", "\n".join(replay(log)) + "\n", GOLDEN)


@pytest.mark.deep("searches that are simulated many times")
def test_status_of_all(log: Log, stand: Made, line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    machine = stand((11, 0.7))
    machine.bisect(a_question(line.good[:12], line.code[-1][:12], direction="either"), budget_seconds=300.0)
    assert main(["bisect", "status", "--history", str(machine.folder / "history.db")]) == 0
    require_golden("bisect-status.txt", capsys.readouterr().out, GOLDEN)


def test_a_log_that_was_exported_is_replayed_as_in_the_history(log: Log, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(export(BisectState(log))), encoding="utf-8")
    again = read_file(file)
    # An exported verdict holds no observations of its own: the file has them once.
    assert list(replay(again)) == list(replay(log))
    assert text(BisectState(again)) == text(BisectState(log))


@pytest.mark.parametrize(
    "change",
    [
        {"tidemark": "history"},
        {"format": 99},
        {"question": {}},
        {"span": {"points": [{}], "collapsed": []}},
        {"events": [{"number": 1}]},
        {"observations": [["s0", 1, 99, 0.5]]},
        {"observations": [["s0", 1, 3, float("nan")]]},
        {"observations": 7},
    ],
    ids=str,
)
def test_a_file_that_is_no_log_is_refused(log: Log, tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(export(BisectState(log)) | change), encoding="utf-8")
    with pytest.raises(LogError) as caught:
        list(replay(read_file(file)))
    assert caught.value.where


def test_texts_of_others_are_no_markup_and_move_no_cursor(log: Log) -> None:
    evil = "Fix \x1b[2J it @everyone #1 | <script> `rm` [x](http://evil)"
    points = list(log.span.points)
    points[11] = replace(points[11], subject=evil, message=f"{evil}\n\n```\n{evil}", author="<b> | @me")
    span = replace(log.span, points=tuple(points))
    changed = replace(log, bisect=replace(log.bisect, span=span.to_json()))
    for told in (text(BisectState(changed)), markdown(BisectState(changed)), result(BisectState(changed))):
        assert "\x1b" not in told
    shown = markdown(BisectState(changed))
    plain = [row for row in shown.splitlines() if not row.startswith("    ")]
    assert not any("<script>" in row or "@everyone" in row or "http://" in row for row in plain)
    table = [row for row in plain if row.startswith("| 11 |")]
    assert len(table) == 2
    assert all(row.replace("\\|", "").count("|") in (6, 7) for row in table)


def verdict(kind: Any, low: int, high: int, **changes: Any) -> SearchVerdict:
    given: dict[str, Any] = {
        "confidence": 0.97,
        "size": 0.9,
        "interval": (0.88, 0.92),
        "smallest_seen": 0.013,
        "rounds": 40,
    }
    return SearchVerdict(kind, low, high, **given | changes)


STEPS = (LevelStep(3, 4, 0.97, 0.9, (0.88, 0.92)), LevelStep(10, 12, 0.96, 0.8, (0.78, 0.83)))


@pytest.mark.deep("searches that are simulated many times")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (verdict("culprit", 3, 4), "(Change 4) changes qps of update-nonindex by -10.0 % (-12.0 to -8.0)"),
        (verdict("range", 3, 6), "one of 3 neighbouring commits"),
        (
            verdict("none", 0, 16, size=1.0, interval=(0.99, 1.01)),
            "good and bad do not differ in qps of update-nonindex on this machine: a change of 1.3 % or more",
        ),
        (
            verdict("none", 0, 16, size=0.99, interval=(0.985, 0.995)),
            "by -1.0 % (-1.5 to -0.5), less than was searched for: a change of 1.3 % or more would have been",
        ),
        (verdict("two-steps", 0, 16, steps=STEPS), "two steps: qps of update-nonindex changes at"),
        (
            verdict("several-steps", 0, 16, steps=(*STEPS, STEPS[0])),
            "3 steps: qps of update-nonindex changes at",
        ),
        (verdict("slope", 0, 16), "a slope and no single culprit"),
        (
            verdict("varying", 0, 16),
            "no commit is named: qps of update-nonindex varies from commit to commit",
        ),
        (verdict("undecided", 3, 9), "undecided after"),
        (verdict("swapped", 0, 16, size=1.1), "bad is better, not worse"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_every_verdict_is_told_in_every_way(log: Log, given: SearchVerdict, wanted: str) -> None:
    state = BisectState(log)
    state.__dict__["verdict"] = given
    assert wanted in headline(state)
    told = text(state)
    assert wanted in told
    assert wanted.partition(" (")[0].replace("-", "") in markdown(state).replace("-", "")
    places = {"two-steps": 2, "several-steps": 3, "culprit": 1, "range": 3}.get(given.kind, 0)
    assert len(state.blamed()) == places
    assert told.count("./tidemark run") == 1


def test_what_changes_much_less_elsewhere_is_told_with_how_to_find_it(log: Log) -> None:
    state = BisectState(log)
    assert smaller_step_hint(state) == ""
    small = LevelStep(5, 9, 0.96, 1.03, (1.02, 1.04))
    state.__dict__["verdict"] = verdict("culprit", 10, 11, rest=small)
    low, high = (state.point(place).short for place in (5, 9))
    assert (
        f"between {low} and {high} changes qps of update-nonindex by +3.0 % (+2.0 to +4.0)"
        in smaller_step_hint(state)
    )
    assert f"--good {low} --bad {high}" in text(state)
    for told in (text(state), markdown(state), result(state)):
        assert "too little for the same search to locate" in told


def test_what_was_undone_on_the_way_is_told_wherever_the_answer_is(log: Log) -> None:
    state = BisectState(log)
    assert undone_hint(state) == ""
    dip = LevelStep(2, 5, 0.9, 0.85, (0.83, 0.87)), LevelStep(5, 6, 0.9, 1.18, (1.15, 1.2))
    state.__dict__["verdict"] = verdict("culprit", 10, 11, undone=dip)
    low, high, fix = (state.point(place).short for place in (2, 5, 6))
    told = (
        f"qps of update-nonindex changed by -15.0 % (-17.0 to -13.0) between {low} and {high}, and by "
        f"+18.0 % (+15.0 to +20.0) at {fix}: these cancel"
    )
    assert told in undone_hint(state)
    for where in (text(state), markdown(state), result(state)):
        assert "these cancel, and are not why bad differs from good" in where


def test_a_verdict_is_read_as_it_was_written() -> None:
    given = verdict("culprit", 10, 11, steps=STEPS[:1], rest=STEPS[1], undone=STEPS)
    kept = json.loads(json.dumps(asdict(given)))
    assert verdict_of(kept) == given
    del kept["undone"]  # as versions before several steps wrote it
    assert verdict_of(kept) == replace(given, undone=())
    del kept["rest"]  # as the first Tidemarks wrote it
    assert verdict_of(kept) == replace(given, undone=(), rest=None)


def test_patched_commits_are_measured_again_by_a_command_that_is_accepted(log: Log, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a/a.c\n+++ b/a.c\n", encoding="utf-8")
    question = {**log.bisect.question, "variant": {"patches": [str(patch)]}}
    lines = reproduce(BisectState(replace(log, bisect=replace(log.bisect, question=question))))
    (words,) = [shlex.split(line)[1:] for line in lines if line.startswith("./tidemark run ")]
    arguments = parser().parse_args(words)
    variants = variants_of(arguments)
    require_defined(arguments.versions, variants)
    assert all(definition_of(version, variants).patches for version in arguments.versions)


def test_a_layer_of_an_older_bisect_is_said_to_be_no_longer_measured(log: Log) -> None:
    question = {**log.bisect.question, "variant": {"layers": {"tls": "on", "auth": "md5"}}}
    state = BisectState(replace(log, bisect=replace(log.bisect, question=question)))
    said = "# No command measures this again: the layer auth=md5 is no longer measured."
    assert list(reproduce(state)) == [said]
    assert "clients with tls=on, auth=md5" in text(state)


def test_profiles_are_part_of_the_report(log: Log) -> None:
    before = {number: profile({"client backend;main;heap_update": 400}) for number in (1, 2, 3)}
    after = {number: profile({"client backend;main;weigh_successor": 900}) for number in (1, 2, 3)}
    state = BisectState(log, {11: differential(before, after)})
    assert "| weigh_successor | 0.00 |" in markdown(state)
    assert "weigh_successor" in text(state)
    counted = replace(after[1], event=COUNTED_EVENT, frequency=COUNTED_FREQUENCY)
    both = differential({1: replace(counted, stacks=before[1].stacks)}, {1: counted})
    told = text(BisectState(log, {11: both}))
    table = told.partition("Instructions per query, culprit against its parent:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in table.splitlines()[1:]]
    assert names[0] == "client"  # backend
    assert sorted(names[1:]) == ["heap_update", "weigh_successor"], "main executes as much as before"


@pytest.mark.parametrize(("event", "what"), [("cpu-clock", "CPU time"), (COUNTED_EVENT, "Instructions")])
def test_the_page_says_what_functions_need(log: Log, event: str, what: str) -> None:
    frequency = COUNTED_FREQUENCY if event == COUNTED_EVENT else 999
    sides = [
        {1: replace(profile({f"client backend;main;{name}": 400}), event=event, frequency=frequency)}
        for name in ("heap_update", "weigh_successor")
    ]
    values = bisect_values(BisectState(log, {11: differential(*sides)}))
    shown = str(h.div[bisect_page(values, Clearance()).body])
    commit = values.functions[0].commit
    assert f"{what} per query, {commit} against the commit before it" in shown
    assert ("µs/query" in shown) == (event != COUNTED_EVENT)


@pytest.mark.parametrize("is_public", [False, True])
def test_the_page_has_the_message_of_the_culprit(log: Log, is_public: bool) -> None:
    state = BisectState(log)
    (culprit,) = state.blamed()
    page = bisect_page(bisect_values(state), Clearance(is_public=is_public))
    shown = str(h.div[page.body])
    assert (f"Message of {culprit.short}, " in shown) is not is_public
    assert ("&lt;b&gt;@someone&lt;/b&gt; | `said`</pre>" in shown) is not is_public


@pytest.mark.deep("searches that are simulated many times")
def test_a_culprit_says_which_merge_brought_it(log: Log) -> None:
    assert merge_hint(BisectState(log)) == ""
    verdict = BisectState(log).verdict
    assert verdict is not None
    place, length = verdict.suspects[0], log.span.length
    points = log.span.points
    # One branch has all commits before the culprit, and another one the rest; bad merges both.
    parents = [[position - 1] for position in range(1, length)] + [[place, length - 1]]
    parents[place] = [0]
    brought = {point.commit: points[-1].commit for point in points[1 : place + 1]}
    span = {**log.bisect.span, "parents": parents, "merged_by": brought}
    merge = points[-1].commit
    state = BisectState(replace(log, bisect=replace(log.bisect, span=span)))
    assert f"{points[place].short} (merged by {merge[:12]}) (" in headline(state)
    assert f"- merged by {merge}" in markdown(state)
    assert f"- merged by {merge}" in result(state)
    merging = replace(verdict, kind="culprit", low=place, high=length, among=(length,))
    state.__dict__["verdict"] = merging
    names = f"{points[place].short} (merged by {merge[:12]}), {points[length - 1].short}"
    assert merge_hint(state).startswith(f"It is a merge of {names}: none of them has the change")
    state.__dict__["verdict"] = replace(merging, kind="undecided", among=(1, 2, length))
    assert "most likely one of 3 commits, the first " in headline(state)


def test_a_release_has_no_commit() -> None:
    assert BisectPoint("postgres@18.6").short == "18.6"

"""Tries: which two versions are compared, and what a reviewer is told."""

import json
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from build import installs
from build.errors import TidemarkError
from build.finished_build import Build
from build.home import ROOT, Home
from build.request import BuildRequest
from build.sources.commits import commit_range
from build.sources.git import mirror
from build.version import Engine
from history.comparison.verdict import Judged, MetricChange
from history.open import open_store
from runners.bisect.run import builds as bisect_builds
from runners.cli import main
from runners.measuring import session
from runners.measuring.passes.work_proofs import WorkProofs
from runners.measuring.request import Exact, Request
from runners.measuring.session import SessionOutcome
from runners.trying import trial
from runners.trying.answer import StepAnswer, TryAnswer, basis, markdown
from runners.trying.changes import changes_of
from runners.trying.command import answer_of, require_page, write_page
from runners.trying.series import base_commit_of
from runners.trying.sides import Sides, TryError, sides_of
from runners.trying.trial import TrialOutcome, TrialRequest, history_of_tries, run_trial
from suites.counting.tool import Callgrind
from suites.definition import load_suite
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import PROVED_ROWS
from tests.build.pretended import pretended_prefix
from tests.history.conftest import rows
from tests.history.handmade import MACHINE, record_steps, session_start
from tests.runners.job_outputs import read_outputs
from tests.runners.nightly.pretended import STEPS, Lab
from tests.suites.golden import require_golden

MORE = {"update-index": 1.02}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path, monkeypatch)
    monkeypatch.setattr(bisect_builds, "provide", lab.provide)
    monkeypatch.setattr(bisect_builds, "require_clean", lambda build: None)
    lab.counts = {}

    def callgrind(request: Request, progress: object) -> Callgrind:
        if lab.counts is None:
            raise TidemarkError("valgrind is not installed")
        return Callgrind("valgrind", "valgrind-3.19.0")

    monkeypatch.setattr(trial, "callgrind_of", callgrind)
    return lab


def branched(lab: Lab) -> tuple[str, str]:
    """A branch `topic` that left master before its last commit: the merge base and the tip."""
    base = lab.commit()
    lab.git("checkout", "-q", "-b", "topic")
    tip = lab.commit()
    lab.git("checkout", "-q", "master")
    lab.commit()
    return base, tip


def tried(lab: Lab, sides: Sides, minutes: float = 30.0, layouts: int = 0) -> tuple[TryAnswer, str]:
    suite = load_suite("write-heavy")
    steps = suite.select(STEPS, "smoke")
    asked = TrialRequest(sides, suite, "smoke", steps, minutes * 60, layouts=layouts)
    with open_store(history_of_tries(lab.home)) as store:
        outcome = run_trial(asked, lab.home, store, lab.progress, clock=lambda: lab.minutes * 60)
        answer = answer_of(store, sides, outcome, lab.home)
    page = write_page(answer, lab.home, str(lab.home.path / "page.html"))
    return answer, page.read_text()


def test_a_branch_is_compared_with_its_merge_base(lab: Lab) -> None:
    base, tip = branched(lab)
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    assert (str(sides.base), str(sides.tip)) == (base, tip)
    same = sides_of(["postgres@topic"], "postgres@master", Engine.MYSQL, str(lab.source), lab.home)
    assert replace(same, described="") == replace(sides, described="")
    with pytest.raises(TryError, match="contains"):
        sides_of(["master~1"], "master", Engine.POSTGRES, str(lab.source), lab.home)
    with pytest.raises(TidemarkError, match="two engines"):
        sides_of(["topic"], "mysql@trunk", Engine.POSTGRES, str(lab.source), lab.home)


def test_a_patch_is_tried_on_what_it_names(lab: Lab, tmp_path: Path) -> None:
    base, _ = branched(lab)
    commit = lab.git("rev-parse", "master~1")
    old = lab.git("show", f"{commit}:server.c").strip()
    hunk = f"@@ -1 +1 @@\n-{old}\n+int version;\n"
    patch = tmp_path / "work.patch"
    patch.write_text(f"--- a/server.c\n+++ b/server.c\n{hunk}-- \nbase-commit: {commit}\n")
    sides = sides_of([str(patch)], None, Engine.POSTGRES, str(lab.source), lab.home)
    assert (str(sides.base), str(sides.tip)) == (base, f"{base}#try")
    assert sides.variants["try"].patches == (patch.resolve(),)
    release = sides_of([str(patch)], "postgres@18.6", Engine.POSTGRES, None, lab.home)
    assert str(release.tip) == "postgres@18.6#try"
    assert base_commit_of(b"no such line\nbase-commit: 12\n") is None
    with pytest.raises(TryError, match="there is no patch"):
        sides_of([str(tmp_path / "other.patch")], None, Engine.POSTGRES, None, lab.home)


def test_an_install_prefix_is_tried_against_what_is_named(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installs, "said_with", lambda *command: "postgres (PostgreSQL) 18.6")
    old, new, same = (
        f"postgres@{name}={pretended_prefix(tmp_path / name, module)}"
        for name, module in (("old", b"old"), ("new", b"new"), ("same", b"new"))
    )

    def sides(what: str, against: str | None, *, is_published: bool = False) -> Sides:
        git = str(lab.source)
        return sides_of([what], against, Engine.POSTGRES, git, lab.home, is_published=is_published)

    found = sides(new, old)
    assert (found.base.install_name, found.tip.install_name) == ("old", "new")
    assert sides(str(found.tip), old) == found, "the digest names it too"
    answer, _ = tried(lab, found)
    assert (answer.exit_code, answer.failures) == (0, ())
    commit = lab.commit()
    assert str(sides(new, "master").base) == commit, "a branch is its tip, without a merge base"
    assert str(sides(new, "postgres@17.11").base) == "postgres@17.11"
    for words, problem in (
        ((new, None), "no merge base"),
        ((new, same), "have the same programs: there is nothing to try"),
        ((new, "mysql@9.7.2"), "two engines"),
    ):
        with pytest.raises(TryError, match=problem):
            sides(*words)
    with pytest.raises(TryError, match="a workflow tries no install prefix"):
        sides(new, old, is_published=True)
    patch = tmp_path / "work.patch"
    patch.write_text("--- a/server.c\n+++ b/server.c\n")
    with pytest.raises(TryError, match="no source that a patch applies to"):
        sides(str(patch), old)


@pytest.mark.deep("a whole command in a process of its own")
def test_a_page_replaces_no_file_of_another_kind(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    branched(lab)
    monkeypatch.setenv("TIDEMARK_HOME", str(lab.home.path))
    answer, page = tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))
    mine = tmp_path / "work.patch"
    mine.write_text("my work")
    words = ["try", "topic", "--git", str(lab.source), "--page"]
    assert main([*words, str(mine)]) == 2
    assert f"left as it is\n  where: {mine}\n  to do: name a new file" in capsys.readouterr().err
    assert mine.read_text() == "my work"
    assert main([*words, str(tmp_path)]) == 2
    require_page(write_page(answer, lab.home, str(lab.home.path / "page.html")))
    assert page.startswith("<!doctype html>")


@pytest.mark.parametrize("what", ["notes.txt", "missing.patch"])
def test_a_file_that_is_no_patch_is_told_from_a_ref(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    branched(lab)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("not a patch")
    for words in ((what, "master"), ("topic", what)):
        with pytest.raises(TidemarkError) as caught:
            sides_of([words[0]], words[1], Engine.POSTGRES, str(lab.source), lab.home)
        there = ": it is a file here" if what == "notes.txt" else ", and no file of this name here"
        assert caught.value.what == f"no tag, branch or commit '{what}'{there}"
    with pytest.raises(TidemarkError, match=rf"'{what}'.* file"):
        commit_range(mirror(str(lab.source), Engine.POSTGRES, lab.home), Engine.POSTGRES, what, "master")


@pytest.mark.deep("a whole command in a process of its own")
def test_a_try_over_layouts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    branched(lab)
    linked: list[int] = []
    compiled: list[object] = []

    def link(request: Request, *_: object) -> dict[str, object]:
        linked.append(request.layouts)
        return {}

    def provide(request: BuildRequest, home: Home, progress: object) -> Build:
        compiled.append(request.relinks)
        return lab.provide(request, home, progress)

    monkeypatch.setattr(session, "link_layouts", link)
    monkeypatch.setattr(bisect_builds, "provide", provide)
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    answer, _ = tried(lab, sides, layouts=5)
    assert (linked, compiled) == ([0, 5], [True, True]), "instructions are counted without layouts"
    assert "interleaved rounds, in 5 layouts a side, of write-heavy" in markdown(answer, "page.html")
    monkeypatch.setenv("TIDEMARK_HOME", str(lab.home.path))
    assert main(["try", "topic", "--git", str(lab.source), "--layouts", "2"]) == 2
    assert "2 layouts do not show how much layouts differ" in capsys.readouterr().err


def test_more_instructions_are_told_and_no_series_gets_a_point(lab: Lab) -> None:
    _, tip = branched(lab)
    assert lab.counts is not None
    lab.counts[tip] = MORE
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    answer, page = tried(lab, sides)
    assert re.match(r"More work: more instructions in update-index \+(1\.9|2\.[01]) %\. ?", answer.headline)
    assert answer.exit_code == 1
    assert lab.passes
    assert answer.headline in page
    with open_store(history_of_tries(lab.home)) as store:
        assert rows(store, "SELECT COUNT(*) FROM nights") == [(0,)]
        assert rows(store, "SELECT COUNT(*) FROM series") == [(0,)]
        options = [json.loads(text) for (text,) in rows(store, "SELECT options FROM sessions")]
    assert [option["try"] for option in options] == [True, True]
    assert not lab.home.history.exists()


def test_rounds_compare_only_rows_that_the_counted_session_has_not(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_to_rounds = set()

    def prove(
        proofs: WorkProofs, _number: int, step: Step, _versions: object, measured: Sequence[Measurement]
    ) -> list[Measurement]:
        if proofs.request.exact is not Exact.ONLY:
            left_to_rounds.add(proofs.request.proved_steps)
        elif step.name != "insert":
            return [replace(found, values={**found.values, PROVED_ROWS: 10.0}) for found in measured]
        return list(measured)

    branched(lab)
    monkeypatch.setattr(WorkProofs, "add_to", prove)
    answer, _ = tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))
    assert left_to_rounds == {frozenset({"update-index", "delete"})}
    (line,) = [line for line in basis(answer) if "same rows" in line]
    said = "the same rows after the same transactions and a crash in update-index, delete (session "
    assert line.startswith(said)


def test_functions_and_resources_that_changed_are_named(lab: Lab) -> None:
    base, tip = branched(lab)
    assert lab.counts is not None
    lab.counts[tip] = MORE
    lab.functions = {
        base: {"_bt_first": 40_000, "hash_any": 9_000, "palloc": 1_000},
        tip: {"_bt_first": 41_200, "hash_any": 7_500, "palloc": 1_010, "loop": 3_009},
    }
    answer, page = tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))
    said = "update-index: functions: loop +3,009, hash_any -1,500, _bt_first +1,200 instructions per query"
    (change,) = answer.changes
    assert change.text.startswith(said)
    assert f"- {said}" in markdown(answer, "page.html").replace("\\_", "_").replace("\\+", "+")
    assert said in page
    cpu = Judged("server_cpu_us_per_op", 1.0, 1.2, 1.2, None, MetricChange.MORE, 9, 0.02, "round")
    unknown = replace(cpu, metric="server_cs_per_op", change=MetricChange.UNKNOWN)
    assert answer.timed is not None
    (contender,) = answer.timed.contenders
    steps = tuple(replace(step, beside=(cpu, unknown)) for step in contender.steps if step.step == "insert")
    timed = replace(answer.timed, contenders=(replace(contender, steps=steps),))
    with open_store(history_of_tries(lab.home)) as store:
        insert, _ = changes_of(store, answer.counted, timed)
    assert insert.text == "insert: resources per query: server CPU +20.0 %"


@pytest.mark.deep("a whole command in a process of its own")
def test_a_patch_that_costs_nothing_is_told_as_that(lab: Lab) -> None:
    branched(lab)
    answer, _ = tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))
    assert answer.headline.startswith("No difference in any step.")
    assert answer.exit_code == 0
    text = markdown(answer, "page.html").replace(str(answer.sides.base), "BASE")
    rest = text[text.index("**") :]
    shown = "\n".join(line for line in rest.splitlines() if "session" not in line)
    require_golden("try.md", shown + "\n", ROOT / "tests/golden/runners")


def test_a_job_gets_the_answer_as_its_output(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, tip = branched(lab)
    assert lab.counts is not None
    lab.counts[tip] = MORE
    monkeypatch.setenv("TIDEMARK_HOME", str(lab.home.path))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    words = ["--step", "update-index", "--step", "insert", "--keep-disturbed"]
    assert main(["try", "topic", "--git", str(lab.source), *words]) == 1
    answer = read_outputs(tmp_path / "outputs")["answer"]
    assert "\n**More work: more instructions in update-index" in answer
    assert answer in capsys.readouterr().out


def test_slower_rounds_and_an_exhausted_budget(lab: Lab) -> None:
    _, tip = branched(lab)
    lab.speeds[tip] = {"insert": 0.9}
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    answer, _ = tried(lab, sides)
    assert answer.headline.startswith("Slower in insert -")
    assert answer.exit_code == 1
    lab.counts = None
    answer, _ = tried(lab, sides, minutes=0.0)
    assert (answer.counted, answer.timed, answer.exit_code) == (None, None, 2)
    assert answer.headline == "Undecided. Throughput was not measured."


def test_a_budget_that_ends_while_data_are_loaded_is_no_failure(lab: Lab) -> None:
    branched(lab)
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    both = frozenset({str(sides.base), str(sides.tip)})
    outcome = TrialOutcome(None, SessionOutcome("a1b2c3d4", without_result=both, had_time=False), 60.0)
    with open_store(history_of_tries(lab.home)) as store:
        answer = answer_of(store, sides, outcome, lab.home)
    assert (answer.failures, answer.timed) == ((), None)
    assert "no rounds were measured" in basis(answer)


def test_what_does_not_compile_is_no_answer(lab: Lab) -> None:
    _, tip = branched(lab)
    lab.unbuildable = {tip}
    with pytest.raises(TryError, match="cannot be built"):
        tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))


@pytest.mark.deep("a whole command in a process of its own")
def test_a_budget_that_ends_before_a_verdict_is_continued_by_the_same_command(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    branched(lab)
    lab.minutes_a_round = 1.0
    monkeypatch.setattr(time, "monotonic", lambda: lab.minutes * 60)
    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    answer, _ = tried(lab, sides, minutes=5.0)
    assert len(lab.measured) == 5
    passes = len(lab.passes)
    again, _ = tried(lab, sides, minutes=3.0)
    assert len(lab.measured) == 8
    assert len(lab.passes) == passes, "they are counted once"
    assert answer.timed
    assert again.timed
    assert answer.timed.contenders[0].session.uid == again.timed.contenders[0].session.uid
    tried(lab, sides, minutes=500.0)
    measured = len(lab.measured)
    assert measured > 8
    tried(lab, sides, minutes=500.0)
    assert len(lab.measured) > measured, "a session that is decided is not continued"


def test_the_first_try_reads_minutes_from_the_history_of_the_machine(lab: Lab) -> None:
    branched(lab)
    start = session_start()
    here = replace(MACHINE, hostname=platform.node())
    rates = {step: {"postgres@17.11": [1.0], "postgres@18.6": [1.0]} for step in STEPS}
    with open_store(lab.home.history) as store:
        record_steps(store, replace(start, machine=here, profile="smoke"), rates)
    tried(lab, sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home))
    (expected,) = (note for note in lab.progress.notes if note.startswith("expected: "))
    assert "rounds of 3 steps about" in expected
    assert "a guess" not in expected.partition("rounds of")[2]


def test_a_step_without_rounds_or_passes_is_neither_decided_nor_the_same() -> None:
    unknown = StepAnswer("delete", None, None)
    assert (unknown.is_worse, unknown.is_known, unknown.is_unchanged) == (False, False, False)

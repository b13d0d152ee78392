"""`./tidemark profile` and what `compare` says of profiles: tables, JSON, flame graphs, what is missing."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

import compare as program
from build.home import ROOT
from build.version import parse_version
from history.open import open_store
from history.store.records import SessionStatus
from runners.cli import main
from suites.measurement import Measurement
from tests.history.handmade import NIGHT, run_record, session_start
from tests.history.profiled import BASE, CONTENDER, NEW, STEP, profile, record_profiled
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/profile"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a history that holds profiles."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    record_profiled(tmp_path / "history.db")
    return tmp_path / "history.db"


def said(words: list[str], capsys: pytest.CaptureFixture[str], home: Path) -> str:
    assert main(words) == 0
    return capsys.readouterr().out.replace(str(home), "HOME")


def test_the_difference_as_a_table(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(["profile", "diff", BASE, CONTENDER, "--step", STEP], capsys, history.parent)
    require_golden("diff.txt", text, GOLDEN)
    assert text.splitlines()[2].rstrip().endswith("tidemark_burn")
    assert len([line for line in text.splitlines() if line.endswith(".svg")]) == 3


def test_the_difference_as_json(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["profile", "diff", BASE, CONTENDER, "--step", STEP, "--format", "json", "--limit", "2"]
    found = json.loads(said(words, capsys, history.parent))
    assert [function["function"] for function in found["functions"]] == ["tidemark_burn", "XLogInsert"]
    assert found["functions"][0]["own_base"] == 0
    assert found["contender_us_per_query"] > found["base_us_per_query"]
    assert (len(found["flame_graphs"]), len(found["folded_stacks"])) == (3, 2)
    low, high = found["functions"][0]["own_change_interval"]
    assert 0 < low < 25.4 < high
    assert found["functions"][0]["is_certain"]


def test_one_version(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_golden(
        "show.txt", said(["profile", "show", CONTENDER, "--step", STEP], capsys, history.parent), GOLDEN
    )
    words = ["profile", "show", CONTENDER, "--step", STEP, "--role", "checkpointer", "--format", "json"]
    found = json.loads(said(words, capsys, history.parent))
    assert {function["function"] for function in found["functions"]} == {
        "main",
        "CheckpointerMain",
        "BufferSync",
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["diff", BASE, "postgres@9.6"], "no session holds postgres@18.5 and postgres@9.6"),
        (["diff", BASE, "postgres@9.6"], "to do: ./tidemark history show lists what was measured"),
        (["diff", BASE, "postgres@13.23"], "to do: ./tidemark run --perf --suite write-heavy --profile "),
        (["show", BASE, "--step", "delete"], "has no profile of postgres@18.5 on delete"),
        (["show", BASE, "--step", "delete"], "--step delete --perf --alone postgres@18.5\n"),
        (["show", BASE, "--step", "update-inde"], f"steps of this session with CPU profiles: {STEP}"),
        (["show", BASE, "--role", "purge"], "its roles: checkpointer, client backend, walwriter"),
        (["show", BASE, "--history", "/nowhere/history.db"], "there is no history yet"),
    ],
)
def test_what_is_missing_is_said(
    history: Path, words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    step = [] if "--step" in words else ["--step", STEP]
    assert main(["profile", *words, *step]) == 2
    assert expected in capsys.readouterr().err


def test_an_install_prefix_is_found_by_its_name(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(history, clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(uid="prefix"))
        values = {"qps": 1000.0, "server_cpu_us_per_op": 85.0}
        record = run_record(values, version="postgres@good=0123456789ab", step=STEP, repetition=1, position=1)
        taken = Measurement(values, (), (), profile(NEW))
        store.record_run(session, replace(record, measurement=taken))
        store.finish_session(session, SessionStatus.FINISHED)
    text = said(["profile", "show", "postgres@good", "--step", STEP], capsys, history.parent)
    assert f"/prefix/{STEP}-postgres_good_0123456789ab.svg" in text
    assert main(["profile", "show", "postgres@bad", "--step", STEP]) == 2
    assert "no session holds postgres@bad" in capsys.readouterr().err


def test_what_is_written_can_be_opened(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(["profile", "diff", BASE, CONTENDER, "--step", STEP], capsys, history.parent)
    files = [history.parent / line.removeprefix("HOME/") for line in text.splitlines() if line[:5] == "HOME/"]
    base, contender, both = (ElementTree.parse(file).getroot() for file in files if file.suffix == ".svg")
    assert all(root.tag == f"{SVG}svg" for root in (base, contender, both))
    widths = {
        group.get("data-name"): float(rect.get("width", ""))
        for group in contender.iter(f"{SVG}g")
        if (rect := group.find(f"{SVG}rect")) is not None
    }
    assert widths["all"] == pytest.approx(1600)
    assert widths["tidemark_burn"] == pytest.approx(1600 * 25.4 / 109.4, abs=0.1)
    assert "tidemark_burn" not in {group.get("data-name") for group in base.iter(f"{SVG}g")}
    classes = {
        group.get("data-name"): rect.get("class")
        for group in both.iter(f"{SVG}g")
        if (rect := group.find(f"{SVG}rect")) is not None
    }
    assert (classes["tidemark_burn"], classes["XLogInsert"]) == ("worse5", "better3")
    old, new = (file.read_text() for file in files if file.suffix == ".folded")
    assert "checkpointer;main;CheckpointerMain;BufferSync 9200\n" in old
    assert "heap_update;tidemark_burn 25400\n" in new


@pytest.mark.parametrize(
    ("base", "names"),
    [(BASE, (BASE, CONTENDER)), ("postgres@17.11", ("postgres@17", "postgres@18"))],
    ids=["versions", "branches"],
)
def test_a_later_session_without_the_profile_does_not_hide_it(
    tmp_path: Path, base: str, names: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "history.db"
    record_profiled(file, base=base)
    with open_store(file, clock=lambda: NIGHT + timedelta(days=1)) as store:
        session = store.start_session(session_start(uid="later", suite="read"))
        for position, version in enumerate((base, CONTENDER), 1):
            record = run_record({"qps": 1000.0}, version=version, step="scan", position=position)
            store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
    words = ["profile", "diff", *names, "--history", str(file), "--output", str(tmp_path)]
    text = said([*words, "--step", STEP], capsys, tmp_path)
    next_command = f"--session night-1 --step {STEP} --costs --history HOME/history.db"
    assert text.splitlines()[-1].endswith(next_command)
    assert main([*words, "--step", "scan"]) == 2
    assert "session later has no profile" in capsys.readouterr().err


def test_the_next_command_measures_more_where_nothing_is_certain(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["profile", "diff", BASE, BASE, "--step", STEP]
    *_, sentence, command = said(words, capsys, history.parent).splitlines()
    assert sentence == f"No function of {BASE} is known to use more or less CPU per query than in {BASE}."
    assert command.startswith("TIDEMARK_HOME=HOME ./tidemark run --suite write-heavy --profile ")
    assert "--perf --repetitions 6" in command


def test_compare_names_the_functions_of_a_regression(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main([BASE, CONTENDER, "--history", str(history)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "update-index: CPU per query gained by tidemark_burn +25." in text
    assert program.main([BASE, CONTENDER, "--history", str(history), "--format", "json"]) == 1
    (step,) = json.loads(capsys.readouterr().out)["contenders"][0]["steps"]
    assert step["gained"][0]["function"] == "tidemark_burn"


def test_compare_says_nothing_of_profiles_that_are_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_profiled(tmp_path / "history.db", profiles=False)
    assert program.main([BASE, CONTENDER, "--history", str(tmp_path / "history.db")]) == 1
    assert "gained" not in capsys.readouterr().out


def test_profiles_come_back_as_they_went_in(tmp_path: Path) -> None:
    record_profiled(tmp_path / "history.db")
    with open_store(tmp_path / "history.db") as store:
        session = store.latest_session([parse_version(BASE)])
        assert session is not None
        found = store.profiles(session.id, STEP, parse_version(CONTENDER))
        assert found == {number: profile(NEW, 2 * number) for number in (1, 2, 3)}
        assert store.profiles(session.id, "delete", parse_version(CONTENDER)) == {}


def test_a_profile_without_samples_is_none(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        record = run_record({"qps": 1.0}, version=BASE, step=STEP)
        assert record.measurement is not None
        object.__setattr__(record.measurement, "profile", profile({}))
        store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        assert store.profiles(session, STEP, parse_version(BASE)) == {}

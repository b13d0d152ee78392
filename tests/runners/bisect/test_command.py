"""`./tidemark bisect` from the command line: what it asks, prints, and with which exit code it ends."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from build.home import Home
from build.sources.commits import RangeError
from build.sources.releases import record_pin
from build.version import Engine, Version
from history.open import open_store
from runners.bisect.domain.question import Question, QuestionError, metric_named, rules_of
from runners.bisect.requests import parse_request
from runners.bisect.run.candidates import candidate_range, git_source_of
from runners.cli import main, parser
from runners.commands import bisect
from runners.exit_codes import INTERRUPTED
from tests.runners.bisect.conftest import Line
from tests.runners.bisect.stand import Fuse, Stand

Made = Callable[..., Stand]


@pytest.fixture
def command(stand: Made, line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command on a made-up machine."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    made: list[Stand] = []

    def called(*steps: tuple[int, float], words: tuple[str, ...] = (), fuse: Fuse | None = None) -> int:
        machine = made[0] if made else stand(*steps, fuse=fuse or Fuse())
        made.append(machine)
        monkeypatch.setattr(
            bisect, "real_dependencies", lambda home, shown, suite, variant, extension: machine.dependencies
        )
        ends = ("--good", line.good, "--bad", line.code[-1], "--step", "update-nonindex")
        history = ("--history", str(tmp_path / "history.db"))
        return main(["bisect", *ends, "--git", str(line.repository.path), *history, *words])

    return called


@pytest.mark.deep("searches that are simulated many times")
def test_a_culprit_is_an_answer(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command((11, 0.7)) == 0
    out = capsys.readouterr().out
    assert "(Change 11) changes qps of update-nonindex by -" in out
    assert "./tidemark bisect report " in out
    assert " --format markdown --history " in out


@pytest.mark.deep("searches that are simulated many times")
def test_no_difference_is_an_answer(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command() == 0
    assert "good and bad do not differ" in capsys.readouterr().out


class Pressed(Fuse):
    """Ctrl-C before a moment of a bisect."""

    def pass_(self) -> None:
        self.passed += 1
        if self.passed == self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("moment", "said"),
    [(4, "no usable round is stored\n"), (22, r"\d rounds are stored; the same command continues it\n")],
)
def test_what_an_interrupted_search_has_is_told(
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    moment: int,
    said: str,
) -> None:
    assert command((11, 0.7), fuse=Pressed(left=moment)) == INTERRUPTED
    assert re.search(rf"\ntidemark: bisect \w{{8}}: {said}", capsys.readouterr().err)


def test_nothing_is_told_of_a_search_that_did_not_begin(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(words=("--bad", "nonsense")) == 2
    assert "tidemark: bisect" not in capsys.readouterr().err


@pytest.mark.deep("searches that are simulated many times")
def test_a_budget_that_is_used_up_is_none(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line says how much longer it takes."""
    small = (11, 0.97)
    assert command(small, words=("--budget", "2")) == 1
    out = capsys.readouterr().out
    assert "there is no verdict yet" in out
    assert command(small, words=("--budget", "7")) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    told = re.fullmatch(r"undecided: about (\d+) min more: .*tidemark bisect .* --budget (\d+)", last)
    assert told
    assert int(told[2]) - int(told[1]) in (1, 2)
    assert command(small, words=("--budget", "1000")) == 0
    assert "for an issue: " in capsys.readouterr().out


def test_the_other_direction_is_trouble_and_offered(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command((11, 1.4)) == 2
    assert "--direction better" in capsys.readouterr().out


def test_what_fails_is_told_with_what_is_stored(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command((11, 0.7), words=("--metric", "wal_bytes_per_op")) == 2
    err = capsys.readouterr().err
    assert "no wal_bytes_per_op above zero" in err
    assert re.search(r"\ntidemark: bisect \w{8}: no usable round is stored\n", err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--good, --bad, --step is missing"),
        (("--good", "a", "--bad", "b"), "--step is missing"),
        (("--good", "a..b", "--bad", "b", "--step", "insert"), "neither a release nor a git ref"),
        (("--good", "a", "--bad", "b", "--step", "insert", "--metric", "speed"), "no metric 'speed'"),
        (
            ("--good", "a", "--bad", "b", "--step", "x", "--metric", "seconds"),
            "neither more nor less is worse",
        ),
    ],
    ids=str,
)
def test_a_question_that_is_none(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", *words, "--history", str(tmp_path / "history.db")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("percent", ["50", "100", "0.95", "x", "nan"])
def test_a_confidence_that_is_none(percent: str) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["bisect", "--confidence", percent])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("qps", "qps"),
        ("cpu-per-op", "server_cpu_us_per_op"),
        ("latency-p99-ms", "latency_p99_ms"),
        ("wal_bytes_per_op", "wal_bytes_per_op"),
    ],
)
def test_metrics_by_name(text: str, name: str) -> None:
    assert metric_named(text).name == name


def test_an_unknown_metric_names_the_others() -> None:
    with pytest.raises(QuestionError) as caught:
        metric_named("speed")
    assert "cpu-per-op" in caught.value.hint


def test_releases_without_git_are_a_list_and_with_it_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_GIT_POSTGRES", raising=False)
    git = git_source_of
    assert git(Engine.POSTGRES, "15.17", "18.6", None) is None
    assert git(Engine.POSTGRES, "15.17", "18.6", "/srv/pg") == "/srv/pg"
    assert git(Engine.POSTGRES, "REL_17_0", "18.6", None) == "https://git.postgresql.org/git/postgresql.git"
    monkeypatch.setenv("TIDEMARK_GIT_POSTGRES", "/env/pg")
    assert git(Engine.POSTGRES, "15.17", "18.6", None) == "/env/pg"


def test_releases_of_mariadb_are_those_between_good_and_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEMARK_GIT_MARIADB", raising=False)
    home, engine = Home(tmp_path), Engine.MARIADB
    for release in ("11.4.9", "10.6.20", "12.1.2"):
        record_pin(Version(engine, release), "0" * 64, home)
    address = git_source_of(engine, "10.11.18", "11.8.6", None)
    between = candidate_range(engine, "10.11.18", "11.8.6", address, home)
    assert [point.version for point in between.points] == [
        f"mariadb@{release}" for release in ("10.11.18", "11.4.9", "11.8.6")
    ]
    with pytest.raises(RangeError, match="good and bad are swapped"):
        candidate_range(engine, "11.8.6", "10.11.18", address, home)
    branch = git_source_of(engine, "git:10.11", "11.8.6", None)
    assert branch == "https://github.com/MariaDB/server.git"


def test_a_password_stays_out_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["bisect", "--good", "a", "--bad", "b", "--step", "insert", "--git", "https://me:pw@host/pg.git"]
    asked = parse_request(parser().parse_args(words))
    assert asked.address == "https://me:pw@host/pg.git"
    assert asked.question.git == "https://host/pg.git"


def test_a_smaller_change_is_searched_for() -> None:
    ends = ["bisect", "--good", "a", "--bad", "b", "--step", "insert", "--git", "https://host/pg.git"]
    words = [*ends, "--metric", "instructions-per-op", "--threshold"]
    question = parse_request(parser().parse_args([*words, "0.3"])).question
    assert (question.rules().threshold, question.rules().wobble) == pytest.approx((0.003, 0.0006))
    assert question.summary.endswith("insert, changes from 0.3 % on")
    kept = question.to_json(question.rules())
    assert (Question.of_json(kept), rules_of(kept)) == (question, question.rules())
    usual = parse_request(parser().parse_args(words[:-1])).question
    assert "threshold" not in usual.to_json(usual.rules())
    with pytest.raises(QuestionError, match="equal commits differ too much") as refused:
        parse_request(parser().parse_args([*words, "0.2"]))
    assert refused.value.hint == "at least 0.25"


def test_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(tmp_path / "history.db").close()
    history = ("--history", str(tmp_path / "history.db"))
    assert main(["bisect", "status", *history]) == 0
    assert "there is no bisect yet" in capsys.readouterr().out
    assert main(["bisect", "report", *history]) == 2
    assert main(["bisect", "replay", "nobody", *history]) == 2
    assert main(["bisect", "report", "--history", str(tmp_path / "none.db")]) == 2

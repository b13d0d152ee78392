"""The command line: what it answers, with which exit code, on which stream."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from build.home import ROOT, Home
from runners import cli, parsing
from runners.cli import ELSEWHERE, UNREAD, main, parser
from runners.exit_codes import TROUBLE
from suites.metrics import METRICS

KNOWN = "postgres@18.6"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--suite", "nonsense", KNOWN], "there is no suite 'nonsense'"),
        (["run", "--suite", "nonsense", KNOWN], "insert-benchmark, oltp-sweep, payments, pgbench, read, "),
        (["run", "--profile", "tiny", KNOWN], "its profiles are: smoke, short, io, long"),
        (["run", "--step", "read-only", KNOWN], "its steps are: update-inlist, update-index"),
        (["run", "--with", "io_method", KNOWN], "'io_method' is not of the form [VARIANT:]KEY=VALUE"),
        (["run", "--with", "io_method=worker", KNOWN], "'io_method' is no key here"),
        (["run", "--with", "settings.jit=on", KNOWN], "did you mean setting?"),
        (
            ["run", "--with", "setting=8MB", KNOWN],
            "the keys are: setting.NAME=VALUE, build.KEY=VALUE, patch=FILE",
        ),
        (["build", "--with", "setting.jit=on", KNOWN], "the keys are: build.KEY=VALUE, patch=FILE"),
        (
            ["run", "--exact-only", "--profile", "io", KNOWN],
            "a counted pass starts from the loaded data, which long mode does not keep",
        ),
        (
            ["run", "--exact-only", "--until-decided", KNOWN],
            "counted passes have neither verdicts to wait for",
        ),
        (["run", "--exact-only", "--profile", "long", KNOWN], "which long mode does not keep"),
        (["run", "--with", "patch=fix.patch", KNOWN], "write --with NAME:patch=FILE"),
        (["run", "--with", "mine:patch=fix.patch", KNOWN], "no version is called postgres@18.6#mine"),
        (
            ["run", "--with", "mine:setting.work_mem=8MB", KNOWN],
            "such as: postgres@18.6 'postgres@18.6#mine'",
        ),
        (
            ["run", KNOWN, f"{KNOWN}#mien", "--with", "mine:setting.work_mem=8MB"],
            "postgres@18.6#mien is not defined",
        ),
        (["run", KNOWN, f"{KNOWN}#mien", "--with", "mine:setting.work_mem=8MB"], "the variants are: mine"),
        (
            ["run", KNOWN, f"{KNOWN}#a", "--with", "a:build.CFLAG=-O3"],
            "one of: CC, CFLAGS, LDFLAGS, configure",
        ),
        (
            ["run", KNOWN, f"{KNOWN}#a", "--with", "a:build.CFLAGS=$(x)"],
            "'$(x)' cannot be the CFLAGS of a build",
        ),
        (
            ["run", KNOWN, f"{KNOWN}#a", "--with", "a:build.CC=no-such-cc"],
            "the compiler 'no-such-cc' is missing",
        ),
        (["run", KNOWN, "--with", "a b:setting.c=d"], "'a b' is not a valid variant"),
        (
            ["run", f"{KNOWN}#a", f"{KNOWN}#b", "--with", "a:setting.jit=on", "--with", "b:setting.jit=on"],
            "postgres@18.6#a and postgres@18.6#b are the same",
        ),
        (["calibrate", f"{KNOWN}#mine"], "postgres@18.6#mine is not defined"),
        (["build", f"{KNOWN}#mine"], "postgres@18.6#mine is not defined"),
        (
            ["bisect", "--good", "18.5#a", "--bad", "18.6", "--step", "insert", "--with", "a:setting.jit=on"],
            "two variants",
        ),
        (["run", "--with", "mine:patch=/nowhere/fix.patch", f"{KNOWN}#mine"], "/nowhere/fix.patch"),
        (["bench", "nonsense"], "the benchmarks are: bisect, detection, kinds, overhead, scale, verdicts"),
        (["build", "export", "somewhere"], "build export FOLDER VERSION..."),
        (["build", "import"], "build import FILE..."),
        (["build", "oracle@19"], "unknown engine 'oracle'"),
        (["history", "show", "--history", "/"], "this is not a file"),
        (["compare", "postgres@1", "postgres@2"], "there is no history yet"),
        (["build", "import", ""], "is not the path of an archive"),
        (["runner", "install", "--box", "db1"], "use ./tidemark service install"),
        (["runner", "watch"], "boxes.NAME.ping in the plan"),
        (["runner", "pause"], "use ./tidemark service"),
        (["update"], "use ./tidemark service update"),
        (["run", "--seconds", "86400", "--alone", KNOWN], "a round of 1 versions would have 1,7"),
        (["run", KNOWN], "postgres@18.6 has no base to be compared with"),
        (["run", KNOWN, KNOWN], "./tidemark run BASE postgres@18.6; or add --alone"),
        (["run", "postgres@no-such-branch"], "has no base"),
        (["run", "--alone", KNOWN, "postgres@17.11"], "--alone is for one version"),
        (["run", "--alone", "--until-decided", KNOWN], "a version alone has no verdict to wait for"),
    ],
)
def test_mistakes_are_answered_with_2_and_a_way_out(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert not captured.out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["run"],
        ["run", "postgres"],
        ["run", "postgres@$(touch x)"],
        ["run", "--repetitions", "0", KNOWN],
        ["run", "--repetitions", "-1", KNOWN],
        ["run", "--seconds", "0.5", KNOWN],
        ["run", "--seconds", "nan", KNOWN],
        ["run", "--budget", "0", KNOWN],
        ["run", "--mode", "short", KNOWN],
        ["run", "--clients", "8,1", KNOWN],
        ["run", "--clients", "0", KNOWN],
        ["run", "--clients", "1,,8", KNOWN],
        ["run", "--clients", "20000", KNOWN],
        ["run", f"{KNOWN}#"],
        ["run", f"{KNOWN}#a b"],
        ["calibrate"],
        ["calibrate", KNOWN, KNOWN],
        ["calibrate", KNOWN, "--rounds", "0"],
        ["run", "--durability", "none", KNOWN],
    ],
)
def test_words_that_make_no_sense_are_refused_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: tidemark" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [
                "run",
                "--set",
                "a:postgres.jit=on",
                "--build",
                "CFLAGS=-O3 -g",
                "--patch",
                "a=/x=1.patch",
                KNOWN,
            ],
            "--with a:setting.postgres.jit=on --with 'build.CFLAGS=-O3 -g' --with a:patch=/x=1.patch",
        ),
        (
            ["calibrate", "--layer", "tls=on", "--initdb", "a:checksums=off", "--index", "a:t*(c)", KNOWN],
            "--layer, --initdb, --index: write --with layer.tls=on --with a:initdb.checksums=off --with '",
        ),
        (
            ["run", "--extension", "a:tiny=https://me:secret@example.org/t@v1", KNOWN],
            "write --with a:extension.tiny=https://***",
        ),
        (
            ["bisect", "--good", "1", "--set", "jit=on", "--bad", "2", "--companion", "pgbouncer"],
            "--with setting.jit=on --with companion=pgbouncer",
        ),
        (
            ["build", "--patch", "fix.patch", "--build", "CC=clang", KNOWN],
            "--with patch=fix.patch --with build.CC=",
        ),
        (["try", "topic", "--set", "jit=on"], "--with setting.jit=on"),
    ],
)
def test_options_that_were_replaced_are_answered_with_what_to_write(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    answer = capsys.readouterr().err
    assert said in answer
    assert "secret" not in answer


@pytest.mark.deep("a whole command in a process of its own")
def test_an_unknown_release_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "postgres@99.9"]) == 2
    said = capsys.readouterr().err
    assert "postgres@99.9" in said
    assert "18.6" in said


def test_a_malformed_suite_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "suite.toml").write_text('name = "x"\ntitle = \n')
    assert main(["run", "--suite", f"{tmp_path}/", KNOWN]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "suite.toml") in said
    assert "line 2" in said


def test_every_command_has_a_module_or_is_the_launchers() -> None:
    names = set(re.findall(r"^    (\w+)\b", parser().format_help(), re.MULTILINE))
    modules = {path.stem for path in (Path(__file__).parents[2] / "runners/commands").glob("[a-z]*.py")}
    assert names - modules == {"setup", "test", "compare", *ELSEWHERE}
    assert modules <= names


def test_the_home_is_left_alone_by_mistakes(tmp_path: Path) -> None:
    main(["run", "--suite", "nonsense", KNOWN])
    assert not Home(tmp_path).history.exists()


def test_a_reader_that_goes_early_is_no_traceback() -> None:
    """As in `./compare.py ... | head -1`: the pipe is closed before all is written."""
    code = "import compare, runners.cli; compare.main = lambda _: print('x' * 10**6);"
    code += "exit(runners.cli.main(['compare']))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(timeout=30) == UNREAD


def test_a_bug_is_trouble_and_no_regression() -> None:
    script = "import runpy, runners.cli as cli; cli.main = lambda: 1 / 0;"
    script += "runpy.run_module('runners', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == TROUBLE
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--seconds", "1e12", KNOWN],
        ["run", "--repetitions", "99999999999999999999", KNOWN],
        ["run", "--repetitions", "9" * 5000, KNOWN],
        ["run", "--repetitions", "²", KNOWN],
        ["run", "--budget", "1e300", KNOWN],
        ["calibrate", "--rounds", "10001", KNOWN],
        ["run", "postgres@" + "9" * 5000 + ".1"],
        ["build", "postgres@18." + "9" * 5000],
    ],
)
def test_numbers_without_measure_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(words)
    except SystemExit as ended:  # argparse's own way to refuse
        code = ended.code
    assert code == TROUBLE
    assert len(capsys.readouterr().err) < 6000


@pytest.mark.parametrize(
    "words",
    [
        ["build", "export", "{file}/folder", KNOWN],
        ["run", "--history", "{file}/history.db", KNOWN],
        ["history", "import", "{file}/x.csv"],
        ["nightly", "--plan", "{file}/plan.toml"],
        ["status"],
    ],
)
def test_a_file_where_a_folder_is_expected_is_said(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setenv("TIDEMARK_HOME", str(file))
    assert main([word.format(file=file) for word in words]) in (0, 1, TROUBLE)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu", KNOWN], "did you mean run?"),
        (["history", "exprot"], "did you mean export?"),
        (["run", "--sutie", "read", KNOWN], "unrecognized arguments: --sutie read; did you mean --suite?"),
        (["compare", KNOWN, KNOWN, "--formta=csv"], "did you mean --format?"),
        (["run", "--durability", "relaxd", KNOWN], "did you mean relaxed?"),
        (["run", "-c", "16", KNOWN], "the number of clients is --clients N"),
        (["run", "-c16", KNOWN], "the number of clients is --clients N"),
        (["run", "--threads=16", KNOWN], "the number of clients is --clients N"),
        (["run", "-T60", KNOWN], "in a round are --seconds S"),
        (["run", "-j", "4", KNOWN], "as many threads as the machine has cores"),
        (["run", "-f", "x.sql", KNOWN], "scripts of pgbench are --script FILE@WEIGHT"),
        (["run", "-s", "10", KNOWN], "--scale N; a suite is as large as its profile"),
        (["run", "-M", "prepared", KNOWN], "--protocol simple, extended or prepared"),
        (["run", "-t", "1000", KNOWN], "a round lasts a time, --seconds S"),
        (["run", "-U", "postgres", KNOWN], "Tidemark starts the servers itself"),
        (["run", "--mysql-host=db1", KNOWN], "Tidemark starts the servers itself"),
        (["run", "-D", "n=5", KNOWN], "--define NAME=VALUE"),
        (["run", "-S", KNOWN], "steps of --suite pgbench"),
        (["calibrate", "-c", "16", KNOWN], "the number of clients is --clients N"),
        (["calibrate", "-U", "postgres", KNOWN], "Tidemark starts the servers itself"),
        (["compare", "-U", "postgres", KNOWN, KNOWN], "unrecognized arguments: -U postgres"),
        (
            ["compare", "--metric", "instructions-per-op", KNOWN, KNOWN],
            f"'instructions-per-op' (none of {len(METRICS)}); did you mean instructions_per_op?",
        ),
        (["compare", "--metric", "furlongs", KNOWN, KNOWN], "(choose from 'qps', 'tps', "),
        (["compare", "--format", "jsn", KNOWN, KNOWN], "'csv', 'html'); did you mean json?"),
        (["--verison"], "did you mean --version?"),
    ],
)
def test_what_was_meant_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--suite", "pgbnch", KNOWN], "did you mean pgbench? the suites are: "),
        (["run", "--step", "dlete", KNOWN], "did you mean delete? its steps are: "),
        (["run", "--profile", "shrot", KNOWN], "did you mean short? its profiles are: "),
        (["build", "postgre@18.6"], "did you mean postgres? the engines are: "),
    ],
)
def test_what_was_meant_is_said_of_names(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_options_of_the_tests_go_to_pytest() -> None:
    _, others = parser().parse_known_args(["test", "-x", "-k", "name", "--durations=3"])
    assert others == ["-x", "-k", "name", "--durations=3"]


@pytest.mark.parametrize("name", cli.GONE)
def test_a_command_that_went_is_answered_with_what_takes_its_place(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in (cli.main, parsing.main):
        assert run([*name.split(), "--yes"]) == 2
        said = capsys.readouterr().err
        assert f"the command '{name}' is gone" in said
        assert cli.GONE[name] in said

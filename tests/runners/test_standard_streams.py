"""What a command says where its output cannot go, or where names, locale or memory are not as usual."""

import errno
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from build.home import ROOT
from runners import cli
from runners.commands import status
from runners.exit_codes import TROUBLE
from tests.history.watched import BASE, NEW, record_regression

pytestmark = pytest.mark.deep("a whole command in a process of its own")

COMPARE = ["compare", BASE, NEW]

READING = (
    COMPARE,
    [*COMPARE, "--format", "json"],
    [*COMPARE, "--format", "html"],
    ["history", "show"],
    ["history", "show", "--format", "json"],
    ["history", "changes"],
    ["status"],
    ["bisect", "status"],
    ["data", "list"],
    ["--help"],
    ["--version"],
    ["compare", "--help"],
)

WRITTEN = re.compile(rb'<span class="written">[^<]*')
"""When a page was written, to the minute: two pages of one history may differ in it."""

LATIN = b"caf\xe9"
"""A name in ISO 8859-1, which is no UTF-8."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a history."""
    home = tmp_path_factory.mktemp("home")
    record_regression(home / "history.db", judged=True)
    return home


def program(
    words: Sequence[str | bytes], home: Path | bytes, redirected: str = "", **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a shell, with its streams redirected as it says."""
    environment = {
        b"PATH": b"/usr/bin:/bin",
        b"PYTHONPATH": os.fsencode(ROOT),
        b"TIDEMARK_HOME": os.fsencode(home),
        **{os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
    }
    script = f'exec "$0" -P -m runners "$@" {redirected}'
    command = ["sh", "-c", script, sys.executable, *words]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


# --- where the output goes


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        (">/dev/full", b"tidemark: standard output cannot be written: No space left on device\n"),
        (">&-", b"tidemark: standard output is closed\n"),
    ],
)
def test_output_that_cannot_be_written_is_trouble(
    words: list[str], redirected: str, said: bytes, home: Path
) -> None:
    done = program(words, home, redirected)
    assert done.returncode == TROUBLE
    assert done.stderr.startswith(said)
    assert done.stderr.count(b"\n") == 2


def test_nothing_is_begun_without_an_output(tmp_path: Path) -> None:
    """Otherwise the first file that is opened, such as a history, would be written to as the output."""
    assert program(["history", "import", str(tmp_path)], tmp_path, ">&-").returncode == TROUBLE
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_messages_that_nobody_can_read_change_nothing(redirected: str, home: Path) -> None:
    wanted = program(COMPARE, home)
    done = program(COMPARE, home, redirected)
    assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)
    assert b"\n" in done.stdout


# --- locales, and names that are no UTF-8


@pytest.mark.parametrize("words", READING[:6], ids=" ".join)
def test_every_locale_gets_the_same_text(words: list[str], home: Path) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    wanted = program(words, home)
    assert not wanted.stderr
    text = WRITTEN.sub(b"", wanted.stdout)
    for variables in ({"LC_ALL": "POSIX"}, plain, {"PYTHONIOENCODING": "latin-1"}):
        done = program(words, home, **variables)
        assert (done.returncode, done.stderr) == (wanted.returncode, b"")
        assert WRITTEN.sub(b"", done.stdout) == text


@pytest.mark.parametrize(
    "words",
    [
        COMPARE,
        ["history", "show"],
        ["history", "judge"],
        ["status"],
        ["check"],
        ["build", "postgres@18.6"],
        ["run", "postgres@17.11", "postgres@18.6"],
        ["report"],
        ["nightly"],
        ["data", "prune"],
        ["bisect", "--good", "17.11", "--bad", "18.6", "--step", "insert"],
        ["try", "topic"],
    ],
    ids=" ".join,
)
def test_a_home_that_is_no_utf_8_is_refused(words: list[str], tmp_path: Path) -> None:
    home = os.fsencode(tmp_path / "x")[:-1] + LATIN
    done = program(words, home)
    assert done.returncode == TROUBLE
    assert b"the path of the output folder holds bytes that are no UTF-8\n" in done.stderr
    assert rf"where: {tmp_path}/caf\xe9".encode() in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["history", "show", "--history"],
        ["history", "backup"],
        ["bisect", "replay"],
    ],
    ids=" ".join,
)
def test_other_names_that_are_no_utf_8_are_refused(words: list[str], home: Path) -> None:
    done = program([*words, os.fsencode(home) + b"/" + LATIN], home)
    assert done.returncode == TROUBLE
    assert b"Traceback" not in done.stderr
    assert done.stderr.startswith(b"tidemark: ")


def test_an_export_may_have_a_name_that_is_no_utf_8(home: Path) -> None:
    target = os.fsencode(home) + b"/" + LATIN
    done = program(["history", "export", target], home)
    assert (done.returncode, done.stderr) == (0, b"")
    assert Path(os.fsdecode(target)).stat().st_size > 0


# --- memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("libnumpy.so: failed to map segment from shared object"),
    ],
    ids=repr,
)
def test_too_little_memory_is_told_as_that(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise error

    monkeypatch.setattr(status, "main", fail)
    assert cli.main(["status"]) == TROUBLE
    assert capsys.readouterr().err.startswith("tidemark: there is not enough memory\n  to do: ")


def test_a_bug_is_not_told_as_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(status, "main", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["status"])


def test_no_library_starts_threads_that_could_fail() -> None:
    """OpenBLAS answers a thread that cannot be started by a SIGINT to its own process."""
    script = (
        "import runpy, runners.cli as cli\n"
        "def threads():\n"
        "    import numpy, os\n"
        "    numpy.ones((300, 300)) @ numpy.ones((300, 300))\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "cli.main = threads\n"
        "runpy.run_module('runners', run_name='__main__')\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=False)
    assert done.returncode == 1

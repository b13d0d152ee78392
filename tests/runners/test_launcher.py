"""The launcher: whose environment it uses, through which links, and what it does before it is there."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from build.home import ROOT

PARTS = ("build", "suites", "history", "report", "runners", "compare.py", "requirements.txt")

STUBS = {
    "runners/__init__.py": "",
    "runners/parsing.py": "import sys\nsys.exit(100)\n",
    "runners/__main__.py": "import sys\nprint(sys.prefix, *sys.argv[1:])\n",
    "requirements.txt": "",
}
"""A checkout whose environment needs no packages, and whose program says where it runs."""

HELPS = (
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["compare", "--help"],
    ["history", "judge", "-h"],
    ["service", "install", "-h"],
    ["bisect", "-h"],
    ["try", "-h"],
    ["setup", "-h"],
    ["setup", "--help"],
    ["demo", "-h"],
    ["test", "-h"],
    ["test", "-m", "server", "--help"],
)

REFUSED: tuple[list[str], ...] = (
    [],
    ["nonsense"],
    ["setup", "nonsense"],
    ["demo", "--fast"],
    ["run"],
    ["run", "postgres@18.6", "--clients", "0"],
    ["compare", "postgres@18.6"],
)

SECONDS = 1.0


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which nothing has run yet."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    shutil.copy(ROOT / "tidemark", folder)
    for part in PARTS:
        (folder / part).symlink_to(ROOT / part)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout of STUBS, without an environment."""
    return _small(tmp_path)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of STUBS whose environment was made by its first use."""
    folder = _small(tmp_path_factory.mktemp("used"))
    done = called([folder / "tidemark", "status"])
    assert (done.returncode, done.stdout) == (0, f"{folder}/.venv status\n"), done.stderr
    return folder


def _small(parent: Path) -> Path:
    folder = parent / "small checkout"
    for name, text in STUBS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in ("tidemark", "compare.py"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the front of PATH: a Python with its own library alone, and an apt that says it ran."""
    folder = tmp_path / "programs"
    folder.mkdir()
    python = Path(sys.executable).resolve()
    _script(folder / "python3", f'exec "{python}" -S "$@"')
    for name in ("apt-get", "sudo"):
        _script(folder / name, f'echo "$0 $*" >>"{folder}/installed"; exit 1')
    return folder


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def called(
    command: Sequence[str | Path], programs: Path | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command, with `programs` at the front of PATH if they are given."""
    path = os.pathsep.join(map(str, filter(None, (programs, os.environ["PATH"]))))
    words = [str(word) for word in command]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        words, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


# --- before the environment exists


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_comes_before_anything_is_installed(words: list[str], checkout: Path, programs: Path) -> None:
    before, used = sorted(checkout.iterdir()), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = called([checkout / "tidemark", *words], programs)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tidemark " if words == ["--version"] else "usage: tidemark")
    assert sorted(checkout.iterdir()) == before
    assert not (programs / "installed").exists()
    # CPU time, as other tests run beside this one.
    assert after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime < SECONDS


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_refused_installs_nothing(words: list[str], checkout: Path, programs: Path) -> None:
    before = sorted(checkout.iterdir())
    done = called([checkout / "tidemark", *words], programs)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: tidemark")
    assert sorted(checkout.iterdir()) == before
    assert not (programs / "installed").exists()


def test_a_python_that_is_too_old_is_said_before_anything_is_installed(
    checkout: Path, programs: Path
) -> None:
    _script(programs / "python3", '[ "$1" = --version ] && echo "Python 3.9.2"; exit 1')
    done = called([checkout / "tidemark", "setup"], programs)
    assert (done.returncode, done.stderr) == (
        2,
        "tidemark: Python 3.9.2 is too old: Tidemark needs Python 3.11 or newer\n",
    )
    assert not (programs / "installed").exists()


@pytest.mark.deep("a whole command in a process of its own")
def test_too_little_address_space_is_said_as_that(used: Path) -> None:
    """Python and its packages would end by a MemoryError, a false interruption, or not at all."""
    limited = 'ulimit -v "$0"; exec "$@"'
    done = called(["sh", "-c", limited, "40000", used / "tidemark", "status"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tidemark: processes may use 39 MiB of address space here (ulimit -v)\n")
    assert called(["sh", "-c", limited, "600000", used / "tidemark", "status"]).returncode == 0


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize("further", [False, True])
def test_a_tool_that_does_not_work_is_installed(
    further: bool, small: Path, programs: Path, tmp_path: Path
) -> None:
    """As rustup's cargo without a toolchain, unless another one on the path works."""
    for name in ("packages.txt", "packages-profiles.txt", "packages-companions.txt"):
        (small / "runners" / name).write_text("# none\n")
    (small / "runners/packages.txt").write_text("tool-package  works:atool  why\n")
    _script(programs / "atool", "echo no toolchain >&2; exit 1")
    (tmp_path / "later").mkdir()
    if further:
        _script(tmp_path / "later/atool", "exit 0")
    path = f'PATH="$PATH:{tmp_path}/later"; export PATH; exec "$0" setup'
    done = called(["sh", "-c", path, small / "tidemark"], programs)
    installed = programs / "installed"
    if further:
        assert not installed.exists()
        assert done.returncode == 0
    else:
        assert "tool-package" in installed.read_text()
        assert done.stderr.startswith("tidemark: installing system packages: tool-package\n")


# --- whose environment it is


def test_an_environment_of_somebody_else_is_left_alone(small: Path) -> None:
    theirs = small / ".venv/lib/their work.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("work")
    done = called([small / "tidemark", "status"])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{small}/.venv was not made by Tidemark" in done.stderr
    assert theirs.read_text() == "work"
    assert [path.name for path in (small / ".venv").iterdir()] == ["lib"]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_is_left_alone(kind: str, small: Path, tmp_path: Path) -> None:
    venv = small / ".venv"
    if kind == "file":
        venv.write_text("theirs")
    else:
        venv.symlink_to(tmp_path / "nowhere")
    done = called([small / "tidemark", "status"])
    assert done.returncode == 2
    assert "was not made by Tidemark" in done.stderr
    assert venv.is_symlink() if kind == "link" else venv.read_text() == "theirs"
    assert not (tmp_path / "nowhere").exists()


def test_links_lead_to_the_checkout_and_not_to_where_they_lie(used: Path, tmp_path: Path) -> None:
    other = tmp_path / "another project"
    (other / ".venv").mkdir(parents=True)
    (other / ".venv/theirs").touch()
    (other / "bin").mkdir()
    (other / "tidemark").symlink_to(used / "tidemark")
    (other / "bin/tm").symlink_to("../tidemark")
    (other / "bin/compare").symlink_to(used / "compare.py")
    expected = f"{used}/.venv {{}}\n"
    # By a path, by PATH with a link to a link, and by a shell that is told the file.
    assert called([other / "tidemark", "a b"]).stdout == expected.format("a b")
    assert called(["tm", "status"], other / "bin").stdout == expected.format("status")
    assert called(["sh", "tidemark", "status"], cwd=other).stdout == expected.format("status")
    assert called(["compare", "a b"], other / "bin").stdout == expected.format("compare a b")
    assert called(["sh", "compare", "a b"], cwd=other / "bin").stdout == expected.format("compare a b")
    assert [path.name for path in (other / ".venv").iterdir()] == ["theirs"]


@pytest.fixture
def copied(used: Path, tmp_path: Path) -> Path:
    """A copy of a checkout with an environment."""
    return Path(shutil.copytree(used, tmp_path / "copied", symlinks=True))


@pytest.mark.deep("a whole command in a process of its own")
def test_an_environment_that_was_interrupted_is_repaired(copied: Path) -> None:
    venv = copied / ".venv"
    (mark,) = (path.name for path in venv.iterdir() if path.name.startswith("made-by"))
    for path in venv.iterdir():
        if path.name != mark:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (venv / "half").touch()
    done = called([copied / "tidemark", "status"])
    assert done.stdout == f"{venv} status\n"
    assert not (venv / "half").exists()
    assert {"bin", "requirements.txt", mark} <= {path.name for path in venv.iterdir()}


@pytest.mark.deep("a whole command in a process of its own")
def test_an_environment_of_an_earlier_version_is_used(copied: Path) -> None:
    """Its only mark is the copy of requirements.txt, here of another version of it."""
    venv = copied / ".venv"
    (venv / "made-by-tidemark").unlink()
    (venv / "requirements.txt").write_text("# older")
    (venv / "kept").touch()
    done = called([copied / "tidemark", "status"])
    assert done.stdout == f"{venv} status\n"
    assert (venv / "kept").exists()
    assert (venv / "requirements.txt").read_text() == ""


@pytest.mark.deep("a whole command in a process of its own")
def test_an_environment_whose_python_is_gone_is_made_anew(copied: Path, tmp_path: Path) -> None:
    """As after an upgrade of the distribution: `python3` leads to another version, without the packages."""
    settings = copied / ".venv/pyvenv.cfg"
    changed = re.sub(r"(?m)^executable = .*$", f"executable = {tmp_path}/python3.10", settings.read_text())
    settings.write_text(changed)
    done = called([copied / "tidemark", "status"])
    assert done.stdout == f"{copied}/.venv status\n"
    assert "the Python of .venv has changed" in done.stderr
    assert called([copied / "tidemark", "status"]).stderr == ""


# --- an environment outside of the checkout


@pytest.mark.deep("a whole command in a process of its own")
def test_an_environment_outside_of_the_checkout_outlives_a_cleaned_one(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with GitHub's checkout, which cleans and resets the folder before each job."""
    venv = tmp_path / "home of a box/venv"
    monkeypatch.setenv("TIDEMARK_VENV", str(venv))
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "x"]):
        subprocess.run(["git", *identity, *words], cwd=small, check=True)
    done = called([small / "tidemark", "status"])
    assert (done.returncode, done.stdout) == (0, f"{venv} status\n"), done.stderr
    assert "installing the Python packages" in done.stderr
    subprocess.run(["git", "clean", "-ffdxq"], cwd=small, check=True)
    subprocess.run(["git", "reset", "--hard", "--quiet"], cwd=small, check=True)
    done = called([small / "tidemark", "status"])
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{venv} status\n", "")
    assert not (small / ".venv").exists()
    assert not (small / ".venv.lock").exists()


def test_a_relative_path_of_an_environment_is_refused(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lie elsewhere with every folder that a command is called from."""
    monkeypatch.setenv("TIDEMARK_VENV", "var/venv")
    done = called([used / "tidemark", "status"], cwd=used)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tidemark: the path of the Python environment is relative: var/venv\n")
    assert not (used / "var").exists()


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_a_second_user_is_told_who_makes_the_environment(small: Path) -> None:
    other = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        checkout = Path(shutil.copytree(small, Path(place) / "a checkout", symlinks=True))
        done = called([*other, checkout / "tidemark", "status"])
        assert done.returncode == 2
        assert f"where: {checkout}\n" in done.stderr
        assert "as the owner of the checkout" in done.stderr
        assert "ermission denied" not in done.stderr
        assert called([checkout / "tidemark", "status"]).returncode == 0

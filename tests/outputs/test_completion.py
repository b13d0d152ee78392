"""`./tidemark completion`: what the shells make of its scripts."""

import shutil
import subprocess
from pathlib import Path

import pytest

from runners.cli import main

# What Bash does at a Tab, with the words of the line and the one that is completed last.
COMPLETE = """
source "$0"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_tidemark
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", shell]) == 0
    path = folder / f"completion.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.fixture
def bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    return script("bash", tmp_path, capsys)


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("tidemark prof", {"profile"}),
        ("./tidemark profile d", {"diff"}),
        ("tidemark run --sui", {"--suite"}),
        ("tidemark run --suite write-h", {"write-heavy"}),
        ("tidemark run --profile smoke --step update-ind", {"update-index"}),
        ("tidemark run postgres@17.11 postgres@13.2", {"postgres@13.23"}),
        ("tidemark profile diff postgres@17.11 postgres@13.2", {"postgres@13.23"}),
        ("tidemark compare postgres@13.2", {"postgres@13.23"}),
        ("tidemark compare --metric server_cpu_us", {"server_cpu_us_per_op"}),
        ("tidemark completion z", {"zsh"}),
    ],
)
def test_a_word_is_completed(line: str, completed: set[str], bash: Path) -> None:
    command = ["bash", "-c", COMPLETE, str(bash), *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed <= set(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", script(shell, tmp_path, capsys)], check=True)


def test_bash_takes_a_version_for_one_word(bash: Path) -> None:
    command = ["bash", "-c", 'source "$0"; echo "$COMP_WORDBREAKS"', str(bash)]
    assert "@" not in subprocess.run(command, capture_output=True, text=True, check=True).stdout

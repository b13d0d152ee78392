"""A shell reads the words of a command that is printed, whatever the names in it are."""

import re
import subprocess
from pathlib import Path

import pytest

from history.backups.backup import back_up
from history.backups.restore import RestoreError, restore
from history.open import open_store
from runners.cli import main
from tests.history.generated import record
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2

AWKWARD = 'it\'s a $(folder) with "quotes"'


def words_of(command: str) -> list[str]:
    """Let a shell take a line apart."""
    done = subprocess.run(
        ["sh", "-c", f'show() {{ printf "%s\\0" "$@"; }}; show {command}'], capture_output=True, check=True
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / AWKWARD).mkdir()
    return tmp_path / AWKWARD


@pytest.mark.parametrize(("given", "instead"), [("import", "merge"), ("merge", "import")])
def test_a_file_for_the_other_command(
    folder: Path, given: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "x.csv"
    if given == "import":
        open_store(file).close()
    else:
        file.write_text("step,version,metric,value\n")
    assert main(["history", given, str(file), "--history", str(folder / "history.db")]) == 2
    found = re.search(r"to do: (.*)", capsys.readouterr().err)
    assert found
    assert words_of(found[1]) == ["./tidemark", "history", instead, str(file)]


def test_a_backup_that_lacks_something(folder: Path) -> None:
    record(folder / "history.db", [NIGHT_1])
    back_up(folder / "history.db", folder / "b.db")
    record(folder / "history.db", [NIGHT_2])
    with pytest.raises(RestoreError) as refused:
        restore(folder / "b.db", folder / "history.db")
    command = refused.value.hint.partition(" adds what")[0]
    assert words_of(command) == ["./tidemark", "history", "merge", str(folder / "b.db")]


def test_series_among_which_to_choose(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = folder / "t.csv"
    rows = ["machine,suite,step,version,metric,value,when,configuration"]
    rows += [
        f"old box,it's mine,insert,postgres@{ref},qps,10,2026-01-01,{AWKWARD.replace(chr(34), '')}"
        for ref in ("17.1", "18.1")
    ]
    table.write_text("\n".join(rows) + "\n")
    history = ["--history", str(folder / "history.db")]
    assert main(["history", "import", str(table), *history]) == 0
    capsys.readouterr()
    assert main(["history", "series", "--step", "insert", *history]) == 2
    found = [
        line.strip() for line in capsys.readouterr().err.splitlines() if line.strip().startswith("--machine")
    ]
    assert len(found) == 2
    capsys.readouterr()
    assert main(["history", "series", "--step", "insert", *words_of(found[0]), *history]) == 0

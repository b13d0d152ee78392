"""`./tidemark history`: what it prints, with which exit code, on which history."""

from pathlib import Path

import pytest

from build.home import ROOT, Home
from history.open import open_store
from runners.cli import main
from tests.history.generated import contents, record
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, execute
from tests.suites.golden import require_golden

GOLDEN = ROOT / "tests/golden/runners/history.txt"
FACTS = ROOT / "tests/golden/facts"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a history of two nights, which is also the current folder."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    record(Home(tmp_path).history, [NIGHT_1, NIGHT_2], change=True)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says on both streams, below itself and above its exit code."""
    code = main(["history", *words])
    out, err = capsys.readouterr()
    return f"$ ./tidemark history {' '.join(words)}\n{out}{err}exit code {code}\n\n"


@pytest.mark.deep("a whole command in a process of its own")
def test_a_session_of_commands(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(home / "history.db") as store:
        # What is left out is named.
        execute(
            home / "history.db",
            "INSERT INTO sessions SELECT 99, 'tonight', machine_id, suite, profile, suite_digest, seed,"
            " durability, repetitions, started_at, NULL, 'running', command, tools, options, process_id,"
            " process_start_ticks, boot_id FROM sessions LIMIT 1",
        )
        assert store.latest_session([], uid="tonight")
    (home / "sheet.csv").write_text(
        "machine,suite,step,version,metric,value,when,unit\n"
        "old box,sysbench,insert,postgres@17.7,latency_p99_ms,0.5,2025-11,s\n"
        "old box,sysbench,insert,postgres@18.1,latency_p99_ms,0.4,2025-11,furlongs\n"
    )
    (home / "facts.tsv").write_bytes((FACTS / "postgres-sysbench-40threads-2025-11.qps.tsv").read_bytes())
    (home / "facts.txt").write_bytes((FACTS / "postgres-sysbench-40threads-2025-11.per-op.txt").read_bytes())
    (home / "parquet").mkdir()
    (home / "parquet" / "history.json").write_text("{}")
    commands = (
        "export all.ndjson.gz",
        "export all.ndjson.gz",
        "export parquet --format parquet --since 2026-03-03",
        "import parquet --history other.db",
        "import all.ndjson.gz --history other.db",
        "merge history.db --history other.db",
        "merge other.db",
        "merge sheet.csv",
        "import other.db",
        "import sheet.csv",
        "import all.ndjson.gz --machine box",
        "import facts.tsv facts.txt --history other.db",
        "import facts.tsv facts.txt --when 2025-11 --suite sb --machine box --history other.db",
        "import facts.tsv facts.txt --when 2025-11 --suite sb --machine box --cores 48 --history other.db",
        "prune --before 2026-03-03 --dry-run",
        "prune --before 2026-03-03",
        "prune --before 2026-03-03 --history other.db",
        "merge nowhere.db",
        "export x.ndjson --history nowhere.db",
        "backup history.db",
    )
    said = "".join(told(capsys, *command.split()) for command in commands).replace(str(home), "HOME")
    require_golden(GOLDEN.name, said, GOLDEN.parent)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP TABLE measurements", "it has no table measurements"),
        ("DELETE FROM measurements", "a finished run has no measurements: night-1 postgres@17.11 insert 1"),
        ("DELETE FROM measurements WHERE run_id = 6", "a finished run has no measurements: night-2"),
    ],
)
def test_a_history_without_its_measurements_is_not_exported(
    home: Path, capsys: pytest.CaptureFixture[str], damage: str, said: str
) -> None:
    execute(home / "history.db", damage)
    for command in (["export", "x.ndjson"], ["backup", "x.db"]):
        assert main(["history", *command]) == 2
        assert said in capsys.readouterr().err
    assert main(["history", "merge", "history.db", "--history", "other.db"]) == 2
    assert not list(home.glob("x*"))


@pytest.mark.deep("a whole command in a process of its own")
def test_backup_and_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "backup", "backups/monday.db"]) == 0
    assert capsys.readouterr().out.endswith(" KiB: backups/monday.db\n")
    assert contents(home / "backups/monday.db") == contents(home / "history.db")
    assert main(["history", "backup", "backups/monday.db"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["export"],
        ["import"],
        ["merge"],
        ["backup"],
        ["prune"],
        ["prune", "--before", "last week"],
        ["export", "x", "--format", "xml"],
        ["import", "x", "--cores", "0"],
        ["import", "x", "--when", "soon"],
    ],
)
def test_words_that_make_no_sense(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["history", *words])
    assert ended.value.code == 2
    assert "usage: tidemark history" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["export", "x"], ["backup", "x"], ["prune", "--before", "2026-01"]])
def test_looking_makes_no_history(home: Path, words: list[str]) -> None:
    assert main(["history", *words, "--history", "none.db"]) == 2
    assert not (home / "none.db").exists()

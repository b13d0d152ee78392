"""The base of an imported table: a person names it, every text names it, and nothing is judged without it."""

import json
import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from build.home import Home
from history.open import open_reader
from history.series.not_judged import not_judged
from history.series.series import list_environments
from runners.cli import main
from tests.history.transfer.test_merging import execute

pytestmark = pytest.mark.deep("imports and judges months of nights")

HEAD = "machine,suite,step,version,metric,value,when"
FIRST, NIGHTS, CHANGE = date(2026, 8, 1), 80, 50


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(nights: range, *, metric: str = "qps", base: str = "postgres@17.11") -> list[str]:
    """A base that stays, and a master that loses 8 % in night CHANGE."""
    rng = random.Random(nights.start)
    found = []
    for night in nights:
        for version in (base, "postgres@master"):
            loss = 0.92 if version == "postgres@master" and night >= CHANGE else 1.0
            when = FIRST + timedelta(days=night)
            found.append(f"box,s,insert,{version},{metric},{1000 * loss * rng.gauss(1, 0.01):.2f},{when}")
    return found


def table(name: str, lines: list[str]) -> str:
    Path(name).write_text("\n".join([HEAD, *lines]) + "\n")
    return name


def history(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["history", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_nothing_is_judged_until_the_base_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """17.11 sorts before master here, and master before 17.11 by age: neither says which one is the base."""
    whole = table("whole.csv", rows(range(NIGHTS)))
    _, out, _ = history(capsys, "import", whole)
    assert "not judged" in out
    code, out, err = history(capsys, "judge")
    assert (code, "for the " in out) == (2, False)
    assert "--base BRANCH, one of postgres@17, postgres@master" in err
    _, out, _ = history(capsys, "import", whole, "--base", "postgres@17")
    assert "box, s, imported unknown: judged against postgres@17" in out
    code, out, err = history(capsys, "judge")
    assert (code, err) == (1, "")
    assert "open change for the worse, postgres@master against postgres@17, s" in out
    _, out, _ = history(capsys, "changes", "--format", "json")
    assert json.loads(out)[0]["base"] == "postgres@17"
    assert history(capsys, "import", whole)[0] == 0, "the same table without the option says nothing else"


def test_a_table_of_its_base_alone_has_nothing_to_judge(capsys: pytest.CaptureFixture[str]) -> None:
    """It was "0 series" and exit code 0, as if all were well."""
    alone = table("x.csv", [row for row in rows(range(NIGHTS)) if "17.11" in row])
    _, out, _ = history(capsys, "import", alone, "--base", "postgres@17")
    said = "box, s, imported unknown: not judged: every night has the base postgres@17 alone"
    assert said in out
    code, out, err = history(capsys, "judge")
    assert (code, said in err) == (2, True)
    code, _, err = history(capsys, "judge", "--format", "json")
    assert (code, said in err) == (2, True)
    other = table("z.csv", [row.replace("box,", "other,") for row in rows(range(NIGHTS))])
    history(capsys, "import", other, "--base", "postgres@17")
    assert history(capsys, "judge")[::2] == (1, ""), "others are judged"


def test_each_engine_has_its_own_base(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The base of the latest session, another engine's, was that of every branch: nothing was judged."""
    postgres = [row + "T03:00:00Z" for row in rows(range(NIGHTS))]
    renamed = [
        row.replace("postgres@17.11", "mysql@9.7.2").replace("postgres@master", "mysql@trunk")
        for row in postgres
    ]
    mysql = [row.replace("T03", "T05") for row in renamed]
    history(capsys, "import", table("p.csv", postgres), "--base", "postgres@17")
    _, out, _ = history(capsys, "import", table("m.csv", mysql), "--base", "mysql@9.7")
    assert "box, s, imported unknown: judged against mysql@9.7 and postgres@17" in out
    code, out, err = history(capsys, "judge")
    assert (code, err) == (1, "")
    assert "open change for the worse, postgres@master against postgres@17, s" in out
    assert "open change for the worse, mysql@trunk against mysql@9.7, s" in out
    assert "2 series: 2 new" in out
    assert main(["report", "--out", "site"]) == 0
    trend = Path("site/trend.html").read_text()
    assert ("relative to postgres@17." in trend, "relative to mysql@9.7." in trend) == (True, True)
    versions = Path("site/compare/index.html").read_text()
    assert ("s--box--imported_unknown--postgres-17" in versions, "mysql-9.7" in versions) == (True, True)
    for branch in ("postgres-master", "mysql-trunk"):
        assert "relative to" in Path(f"site/branches/{branch}.html").read_text()


def test_a_base_that_is_missing_is_told_with_the_branch_and_since_when(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was "0 new" and exit code 0, although the branch lost 8 % in these nights."""
    lost = [row for number, row in enumerate(rows(range(60))) if number < 100 or "master" in row]
    history(capsys, "import", table("x.csv", lost), "--base", "postgres@17")
    code, out, err = history(capsys, "judge")
    said = "box, s, imported unknown: postgres@master is not judged since 2026-09-20: postgres@17, its base, "
    assert (code, said in err) == (2, True)
    assert "in its last 10 nights" in err
    again = rows(range(60, 61))
    _, out, _ = history(capsys, "import", table("y.csv", again), "--base", "postgres@17")
    assert "not judged" not in out


def test_a_branch_that_ended_without_its_base_is_told_and_fails_no_judgement(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = [row.replace("master", "old") for row in rows(range(5)) if "master" in row]
    ended = table("x.csv", [*rows(range(40)), *old, f"{old[-1]}T12:00:00Z"])
    history(capsys, "import", ended, "--base", "postgres@17")
    code, _, err = history(capsys, "judge")
    assert (code, "postgres@old is not judged since 2026-08-05" in err) == (0, True)


def test_a_branch_that_is_renamed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It was a new series without a word."""
    whole = rows(range(NIGHTS))
    both = [*whole[:80], *(row.replace("master", "REL_19_STABLE") for row in whole[80:])]
    said = "box, s: branch postgres@master ended on 2026-09-09, postgres@REL_19_STABLE began on 2026-09-10; "
    _, out, _ = history(capsys, "import", table("x.csv", both), "--base", "postgres@17")
    assert said in out
    assert said in history(capsys, "judge")[1]


def test_a_step_that_is_renamed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It was a new series without a word."""
    renamed = [
        row.replace("insert", "insert-new" if "master" in row and night >= 40 else "insert")
        for night in range(NIGHTS)
        for row in rows(range(NIGHTS))[2 * night : 2 * night + 2]
    ]
    both = [*renamed, *(row.replace("insert", "insert-new") for row in renamed if "17.11" in row)]
    said = "box, s, postgres@master: step insert ended on 2026-09-09, step insert-new began on 2026-09-10; "
    _, out, _ = history(capsys, "import", table("x.csv", both), "--base", "postgres@17")
    assert said in out
    assert said in history(capsys, "judge")[1]
    _, out, _ = history(capsys, "import", table("y.csv", rows(range(NIGHTS))), "--base", "postgres@17")
    assert "ended on" not in out, "the old name goes on"


def test_a_base_can_be_replaced_and_holds_for_later_tables(capsys: pytest.CaptureFixture[str]) -> None:
    early, late = table("early.csv", rows(range(70))), table("late.csv", rows(range(70, NIGHTS)))
    history(capsys, "import", early, "--base", "postgres@master")
    history(capsys, "import", early, "--base", "pg1711")
    _, out, _ = history(capsys, "import", late)
    assert "judged against postgres@17" in out
    code, out, _ = history(capsys, "judge")
    assert (code, out.count("open change for the worse, postgres@master against postgres@17")) == (1, 1)
    _, out, _ = history(capsys, "show")
    assert "postgres@17.11 (base)" in out


def test_a_base_that_no_table_has_is_refused_with_those_that_they_have(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = history(capsys, "import", table("x.csv", rows(range(3))), "--base", "postgres@16")
    assert code == 2
    assert "name one of their branches: postgres@17, postgres@master" in err
    with open_reader(home / "history.db") as reader, reader.database.reading() as connection:
        assert not list_environments(connection)
    both = [*rows(range(3)), *rows(range(3), base="postgres@17.10")]
    code, _, err = history(
        capsys, "import", table("y.csv", list(dict.fromkeys(both))), "--base", "postgres@17"
    )
    assert code == 2
    assert "--base postgres@17 is any of postgres@17.11, postgres@17.10" in err


@pytest.mark.parametrize("metric", ["tps", "NOPM", "ops"])
def test_any_unit_of_throughput_is_followed(metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    history(capsys, "import", table("x.csv", rows(range(NIGHTS), metric=metric)), "--base", "postgres@17")
    code, out, _ = history(capsys, "judge")
    assert (code, "insert qps" in out) == (1, metric == "ops")
    assert "change for the worse, postgres@master against postgres@17" in out


def test_transactions_have_no_series_beside_queries(capsys: pytest.CaptureFixture[str]) -> None:
    both = [*rows(range(NIGHTS)), *rows(range(NIGHTS), metric="tps")]
    history(capsys, "import", table("x.csv", both), "--base", "postgres@17")
    _, out, _ = history(capsys, "judge")
    assert out.endswith("1 series: 1 new, 0 back, 0 gone; 1 open\n")


def test_a_row_that_is_there_twice_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = rows(range(3))
    code, out, _ = history(capsys, "import", table("x.csv", [*lines, lines[0], lines[3]]))
    assert code == 0
    assert "x.csv: 2 rows repeat earlier ones: left out, such as row 8" in out
    other = lines[0].replace(lines[0].split(",")[5], "5")
    code, _, err = history(capsys, "import", table("y.csv", [*lines, other]))
    assert code == 2
    assert "y.csv, row 2" in err
    assert "y.csv, row 8" in err


def test_a_guess_of_an_older_tidemark_is_withdrawn(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(capsys, "import", table("x.csv", rows(range(3))))
    execute(home / "history.db", "UPDATE nights SET is_base = 1 WHERE branch = 'postgres@17'")
    # Later migrations are carried out again too.
    for table_ in ("activities", "wait_profiles", "notices", "change_owners", "mutings", "mutes"):
        execute(home / "history.db", f"DROP TABLE {table_}")
    for column in ("assignee", "assigned"):
        execute(home / "history.db", f"ALTER TABLE alerts DROP COLUMN {column}")
    execute(home / "history.db", "DELETE FROM schema_migrations WHERE number >= 14")
    for table_, columns in (
        ("pool_boxes", "pool, box, hostname, seen_at, missed_at, left_at, missed"),
        ("placements", "pool, suite, configuration, branch, box, reason, placed_at, number"),
    ):
        execute(home / "history.db", f"CREATE TABLE {table_} ({columns})")
    assert history(capsys, "migrate")[0] == 0
    with open_reader(Home(home).history) as reader, reader.database.reading() as connection:
        assert [found.branches for found in not_judged(connection)] == [("postgres@17", "postgres@master")]


def test_mean_latency_is_judged_and_other_latencies_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A table with a rate that stays and a mean latency that grows gave `0 new`, and exit code 0."""
    lines = rows(range(NIGHTS), base="postgres@17")
    steady = [line.replace(",qps,", ",latency_p99_ms,") for line in lines]
    grown = [line.replace(",qps,", ",latency_mean_ms,") for line in lines]
    rates = [line.replace("postgres@17", "postgres@18") for line in lines if "@17" in line]
    rates = [
        *(line.replace("@18", "@17") for line in rates),
        *(line.replace("@18", "@master") for line in rates),
    ]
    _, out, _ = history(capsys, "import", table("t.csv", [*rates, *grown, *steady]), "--base", "postgres@17")
    assert "latencies that are never judged: latency_p99_ms" in out
    code, out, err = history(capsys, "judge")
    assert (code, "mean latency: -7." in out or "mean latency: -8." in out, "qps" in out) == (
        0,
        True,
        False,
    ), out
    assert "latencies that are never judged: latency_p99_ms" in err

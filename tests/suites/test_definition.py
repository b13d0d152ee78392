"""Suites as data: the shipped ones, those of a folder of one's own, and files with a mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from history.series.environment_changes import changed_steps
from suites.definition import SuiteError, SysbenchSuite, load_suite, suite_names
from suites.keys.profile import Mode

ORDER = [
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write-10",
    "read-write-100",
    "delete",
    "insert",
]

SUITE = """
name = "mine"
title = "Mine"
generator = "sysbench"
script = "mine.lua"
engines = ["postgres"]
seed = 7
bytes_per_row = 100

[profiles.smoke]
title = "short"
seconds = 1
slice_seconds = 0.5
repetitions = 1
data_to_memory = 0.1
rows = [10, 20]
buffer_to_memory = 0.1
settle_seconds = 0

[[steps]]
name = "first"
title = "First"
options = { workload = "first" }

[[steps]]
name = "second"
title = "Second"
options = { file = "x.sql" }
"""


def write(folder: Path, *changes: tuple[str, str]) -> Path:
    """A folder with SUITE, each change made in it."""
    text = SUITE
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} does not name one place of the suite"
        text = text.replace(old, new)
    (folder / "suite.toml").write_text(text)
    (folder / "mine.lua").write_text("-- nothing\n")
    return folder


def mistake(folder: Path) -> SuiteError:
    with pytest.raises(SuiteError) as caught:
        load_suite(str(folder))
    return caught.value


# --- what is shipped


@pytest.mark.parametrize("name", ["write-heavy", "pgbench"])
def test_the_shipped_suites_load(name: str) -> None:
    suite = load_suite(name)
    assert suite.name == name
    assert list(suite.profiles) == ["smoke", "short", "io", "long"]
    assert suite.folder == suite_names()[name]


def test_no_other_suite_is_shipped_unseen() -> None:
    assert set(suite_names()) == {
        *("write-heavy", "pgbench", "oltp-sweep", "read", "connections"),
        *("tpcc", "payments", "shop", "tpch", "insert-benchmark"),
    }


def test_the_ten_steps_come_in_the_order_of_the_method() -> None:
    suite = load_suite("write-heavy")
    assert [step.name for step in suite.steps] == ORDER
    ranges = [step.options.get("range_size") for step in suite.select(("read-write-10", "read-write-100"))]
    assert ranges == [10, 100]
    bounded = {step.name: step.most_work_to_rows for step in suite.steps if step.most_work_to_rows}
    assert bounded == {"delete": 0.5}
    assert suite.profile("long").seconds == 7200
    assert suite.profile("long").data_to_memory > 1


def test_selected_steps_keep_the_order_of_the_suite() -> None:
    suite = load_suite("write-heavy")
    assert [step.name for step in suite.select(("insert", "update-one"))] == ["update-one", "insert"]
    assert suite.select(()) == suite.steps


def test_a_step_has_a_name_of_its_own_at_every_level() -> None:
    suite = load_suite("oltp-sweep")

    def names(*wanted: str, profile: str | None = "smoke", clients: tuple[int, ...] = ()) -> list[str]:
        return [step.name for step in suite.select(wanted, profile, clients)]

    assert names() == [f"read-write@{count}" for count in (1, 2, 4, 8)]
    assert names(clients=(1, 64)) == ["read-write@1", "read-write@64"]
    assert names("read-write@16", clients=(1, 64)) == ["read-write@16"]
    assert names(profile=None) == ["read-write"]
    (step,) = suite.select(("read-write@16",))
    assert (step.plain_name, step.clients, step.options) == ("read-write", (16,), suite.steps[0].options)


def test_held_connections_have_all_levels_in_one_step() -> None:
    suite = load_suite("connections")
    assert [(step.name, step.clients) for step in suite.select((), "smoke")] == [
        ("idle", (25, 50, 100)),
        ("used", (25, 50, 100)),
    ]
    (step,) = suite.select(("used",), "smoke", (5, 10))
    assert (step.name, step.clients, step.level) == ("used", (5, 10), None)
    used = [suite.select((), profile)[1].options for profile in ("smoke", "short")]
    assert used == [{"transactions": 60}, {"transactions": 200}]
    assert suite.select((), "smoke")[0].options == {}
    assert suite.primary == "connection_kib"
    with pytest.raises(SuiteError, match="has no step 'used@50'"):
        suite.select(("used@50",))


@pytest.mark.parametrize(
    "name", ["read-write@", "read-write@0", "read-write@x", "read-write@99999", "write@8"]
)
def test_a_level_that_cannot_be_is_no_step(name: str) -> None:
    with pytest.raises(SuiteError, match=f"has no step '{name}'"):
        load_suite("oltp-sweep").select((name,))


def test_the_digest_follows_the_modules_that_a_script_requires() -> None:
    modules = SysbenchSuite.shared_files
    names = {
        suite: [file.name for file in modules(load_suite(suite).folder / str(load_suite(suite).script))]
        for suite in ("shop", "write-heavy")
    }
    required = ["arrivals", "background", "clock", "numbers", "slices", "statements", "transactions"]
    every = [f"{module}.lua" for module in ("tidemark", *required)]
    assert names == {"shop": every, "write-heavy": ["tidemark.lua", "sbtest.lua", *every[1:]]}


# --- what is not there


def test_an_unknown_suite_says_which_there_are() -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite("reading")
    assert str(caught.value) == (
        "there is no suite 'reading'\n"
        "  to do: did you mean read? the suites are: "
        "connections, insert-benchmark, oltp-sweep, payments, pgbench, read, shop, "
        "tpcc, tpch, write-heavy; "
        "or give the path of a folder with a suite.toml"
    )


def test_a_folder_without_a_suite(tmp_path: Path) -> None:
    assert f"there is no suite '{tmp_path}'" in str(mistake(tmp_path))


def test_an_unknown_profile_says_which_there_are() -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite("pgbench").profile("huge")
    assert caught.value.what == "suite pgbench has no profile 'huge'"
    assert caught.value.where.endswith("pgbench/suite.toml")
    assert caught.value.hint == "its profiles are: smoke, short, io, long"


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_has_the_profile_io_or_says_why_not(name: str) -> None:
    suite = load_suite(name)
    if "io" not in suite.without:
        profile = suite.profile("io")
        assert (profile.mode, profile.until_decided, profile.data_to_memory) == (Mode.LONG, True, 2.0)
        assert profile.blocks == 30
        assert suite.select((), "io")
        return
    with pytest.raises(SuiteError) as caught:
        suite.profile("io")
    assert caught.value.what == f"suite {name} has no profile 'io': {suite.without['io']}"


def test_an_unknown_step_says_which_there_are() -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite("write-heavy").select(("insert", "upsert"))
    assert caught.value.what == "suite write-heavy has no step 'upsert'"
    assert caught.value.hint == "did you mean insert? its steps are: " + ", ".join(ORDER)


# --- mistakes

PGBENCH = (
    ('generator = "sysbench"\nscript = "mine.lua"', 'generator = "pgbench"'),
    ('options = { file = "x.sql" }', 'scripts = ["x.sql"]'),
)
MISTAKES = [
    ("seed = 7", 'seed = 7\ncolour = "red"', "colour: Extra inputs are not permitted"),
    ("seed = 7", 'seed = 7\nfiles.x = "ab"', "files: not a key of a suite"),
    ("repetitions = 1", "repetitions = 1\nthreads = 8", "profiles.smoke.threads: Extra inputs"),
    ('title = "First"', 'title = "First"\nweight = 2', "steps.0.weight: Extra inputs"),
    ("seed = 7", 'seed = "7"', "seed: Input should be a valid integer"),
    ("seed = 7", "seed = 0", "seed: Input should be greater than 0"),
    ("seconds = 1", 'seconds = "long"', "profiles.smoke.seconds: Input should be a valid number"),
    ("seconds = 1", "seconds = true", "profiles.smoke.seconds: Input should be a valid number"),
    ("seconds = 1", "seconds = 0", "profiles.smoke.seconds: Input should be greater than 0"),
    ("seconds = 1", "seconds = inf", "profiles.smoke.seconds: Input should be a finite number"),
    ("bytes_per_row = 100", "bytes_per_row = nan", "bytes_per_row: Input should be a finite number"),
    (
        "[profiles.smoke]",
        "[profiles.own]\ntitle = 'x'\n[profiles.smoke]",
        "profiles.own.seconds: Field",
    ),
    ("[profiles.smoke]", "[profiles]\nlong = 3\n[profiles.smoke]", "profiles.long: Input should be a valid"),
    (
        "bytes_per_row = 100",
        "scale.unit = 'x'\nscale.tables.x.rows = 1",
        "scale.tables.x.bytes_per_row: ",
    ),
    ("slice_seconds = 0.5", "slice_seconds = 0", "profiles.smoke.slice_seconds: Input should be greater"),
    ("slice_seconds = 0.5", "slice_seconds = 1.5", "smoke: slice_seconds: a slice is longer than the step"),
    ("repetitions = 1", "repetitions = 1\nwarm_seconds = -1", "profiles.smoke.warm_seconds: Input should be"),
    ("repetitions = 1", "repetitions = 1\nmost_rounds = 2", "profiles.smoke.most_rounds: Input should be"),
    ("repetitions = 1", "repetitions = 1\nbudget_minutes = 0", "profiles.smoke.budget_minutes: Input should"),
    ("repetitions = 1", 'repetitions = 1\nmode = "fast"', "profiles.smoke.mode: Input should be 'rounds' or"),
    ("repetitions = 1", "repetitions = 1.5", "profiles.smoke.repetitions: Input should be a valid integer"),
    ("buffer_to_memory = 0.1", "buffer_to_memory = 0.9", "profiles.smoke.buffer_to_memory: Input should be"),
    ("seed = 7", "without = 3", "without: Input should be a valid dictionary"),
    ("seed = 7", "without.smoke = 'no'", "without.smoke: the suite has this profile"),
    ("[10, 20]", "[20, 10]", "profiles.smoke: rows = [least, most]: least is larger than most"),
    ("[10, 20]", "[0, 20]", "profiles.smoke.rows.0: Input should be greater than 0"),
    ("[10, 20]", "[10]", "profiles.smoke.rows.1: Field required"),
    ("[profiles.smoke]", '[profiles."Smoke test"]', "profiles.Smoke test.[key]: String should match"),
    ('"mine"', '"My suite"', "name: String should match pattern"),
    ('name = "first"', 'name = "First!"', "steps.0.name: String should match pattern"),
    ('name = "second"', 'name = "first"', "steps: two steps are called first"),
    ('["postgres"]', '["oracle"]', "engines.0: Input should be 'postgres', 'mysql' or 'mariadb'"),
    ('["postgres"]', "[]", "engines: Tuple should have at least 1 item"),
    (
        '"sysbench"',
        '"hammerdb"',
        "generator: Input should be 'sysbench', 'pgbench', 'connections', 'queries' or 'plain-sysbench'",
    ),
    ('"mine.lua"', '"other.lua"', "script: there is no file other.lua beside suite.toml"),
    ('script = "mine.lua"\n', "", "script: sysbench needs the Lua script that implements the steps"),
    ("workload", "[1]", "this suite is not valid TOML"),
    ("seed = 7", "seed =", "Invalid value (at line 7"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_a_mistake_is_refused_with_file_key_and_reason(tmp_path: Path, old: str, new: str, said: str) -> None:
    error = mistake(write(tmp_path, (old, new)))
    assert error.where == str(tmp_path / "suite.toml")
    assert said in str(error)
    assert "\n" not in error.what
    assert not error.hint


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{ workload = "first" }', '{ workload = "first" }', "steps.first.options.workload: pgbench takes"),
        ('{ workload = "first" }', "{}", "steps.first.options: pgbench takes either builtin or"),
        (
            '{ workload = "first" }',
            '{ builtin = "select-only" }',
            "steps.second.scripts: there is no file x.sql beside suite.toml",
        ),
        (
            '{ workload = "first" }',
            '{ builtin = "select-only" }\nmost_work_to_rows = 0.5',
            "steps.first.most_work_to_rows: not supported by pgbench, which runs for a fixed time",
        ),
        ('{ workload = "first" }', "{}\ntimed = true", "steps.first.timed: not supported by pgbench"),
        (
            '{ workload = "first" }',
            "{}\nbackground = { x = 1 }",
            "steps.first.background: not supported by pgbe",
        ),
    ],
)
def test_a_step_that_pgbench_could_not_run(tmp_path: Path, old: str, new: str, said: str) -> None:
    error = mistake(write(tmp_path, *PGBENCH, (old, new)))
    assert said in error.what


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_bytes(b'name = "\xff"')
    assert mistake(tmp_path).where == str(tmp_path / "suite.toml")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    what = mistake(write(tmp_path, ("seed = 7", "seed = -1"), ("seconds = 1", "seconds = -1"))).what
    assert "seed: " in what
    assert "profiles.smoke.seconds: " in what


# --- a suite of one's own

EIGHT_LINES = """
name = "queue"
title = "orders come and go"
generator = "pgbench"
engines = ["postgres"]
setup = "setup.sql"
[[steps]]
name = "order"
title = "one order"
scripts = ["order.pgbench"]
"""


def test_a_suite_has_the_usual_profiles_and_states_what_differs(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(EIGHT_LINES)
    (tmp_path / "setup.sql").write_text("CREATE TABLE orders (id int);\n")
    (tmp_path / "order.pgbench").write_text("SELECT 1;\n")
    usual = load_suite(f"{tmp_path}/")
    assert list(usual.profiles) == ["smoke", "short", "long"]
    of_pgbench = load_suite("pgbench").profile("long")
    assert usual.profile("long") == of_pgbench.model_copy(update={"scale": None})
    with (tmp_path / "suite.toml").open("a") as file:
        file.write("[profiles.short]\nseconds = 20\n[without]\nlong = 'it is over in a minute'\n")
    stated = load_suite(f"{tmp_path}/")
    assert stated.profile("short") == usual.profile("short").model_copy(update={"seconds": 20})
    with pytest.raises(SuiteError, match="no profile 'long': it is over in a minute"):
        stated.profile("long")


def test_a_folder_of_ones_own_is_a_suite(tmp_path: Path) -> None:
    suite = load_suite(str(write(tmp_path)))
    assert [step.name for step in suite.steps] == ["first", "second"]
    assert suite.folder == tmp_path


def digests(folder: Path) -> dict[str, Any]:
    """What a session of all steps records of the suite in a folder."""
    suite = load_suite(f"{folder}/")
    kept: dict[str, Any] = json.loads(suite.work_digests("smoke", suite.select((), "smoke")))
    return kept


SCRIPT = """-- adds rows
local text, long = "--[[ no comment ]]", [==[ -- nor this ]] ]==]
function event() db_query("SELECT 1 -- one") end --[[ the end ]]
"""

SAME_WORK = [
    ("mine.lua", "-- adds rows", "--[==[ adds\n ]] rows ]==]"),
    ("mine.lua", " end --[[", "\n    end\n\n--[["),
    ("suite.toml", 'title = "First"', 'title = "Else"\ngroup = "else"'),
    ("suite.toml", "repetitions = 1", "repetitions = 4 # more"),
    ("suite.toml", "[profiles.smoke]", "[profiles.long]\nseconds = 70\n[profiles.smoke]"),
    ("suite.toml", "bytes_per_row = 100", "bytes_per_row = 100\ngrowth = 4.0"),
]
OTHER_DATA = [
    ("mine.lua", "no comment", "no  comment"),
    ("mine.lua", "-- one", "-- two"),
    ("mine.lua", "-- nor this", ""),
    ("mine.lua", "SELECT", "DELETE"),
    ("suite.toml", "seed = 7", "seed = 8"),
    ("suite.toml", "[10, 20]", "[10, 21]"),
    ("suite.toml", "bytes_per_row = 100", "bytes_per_row = 101"),
    ("suite.toml", "[profiles.smoke]", "[server.postgres]\njit = 'off'\n[profiles.smoke]"),
    ("data/x.sql", "SELECT 1", "SELECT 2"),
]
OTHER_STEPS = [
    ("suite.toml", '{ workload = "first" }', '{ workload = "1st" }', frozenset({"first"})),
    ("suite.toml", 'title = "First"', 'title = "First"\nclients = [4]', frozenset({"first"})),
    ("x.sql", "SELECT 1", "SELECT 2", frozenset({"second"})),
    ("suite.toml", "\nseconds = 1", "\nseconds = 2", frozenset({"first", "second"})),
    ("suite.toml", "seed = 7", 'seed = 7\nisolation = "serializable"', frozenset({"first", "second"})),
]


def changed(folder: Path, name: str, old: str, new: str) -> frozenset[str] | None:
    """What a change of a suite's file changes of its sessions."""
    write(folder)
    (folder / "mine.lua").write_text(SCRIPT)
    (folder / "data").mkdir()
    for file in ("x.sql", "data/x.sql"):
        (folder / file).write_text("SELECT 1;\n")
    before = digests(folder)
    text = (folder / name).read_text()
    assert text.count(old) == 1, f"{old!r} does not name one place of {name}"
    (folder / name).write_text(text.replace(old, new))
    now = digests(folder)
    levels = {step.partition("@")[0]: digest for step, digest in now["steps"].items()}
    return changed_steps(json.dumps(before), json.dumps({**now, "steps": levels}))


@pytest.mark.parametrize(("name", "old", "new"), SAME_WORK)
def test_the_same_work_has_the_same_digests(tmp_path: Path, name: str, old: str, new: str) -> None:
    assert changed(tmp_path, name, old, new) == frozenset()


@pytest.mark.parametrize(("name", "old", "new"), OTHER_DATA)
def test_other_data_have_other_digests(tmp_path: Path, name: str, old: str, new: str) -> None:
    assert changed(tmp_path, name, old, new) is None


@pytest.mark.parametrize(("name", "old", "new", "steps"), OTHER_STEPS)
def test_a_step_has_a_digest_of_its_own(
    tmp_path: Path, name: str, old: str, new: str, steps: frozenset[str]
) -> None:
    assert changed(tmp_path, name, old, new) == steps


def test_the_digests_follow_the_modules_that_scripts_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, module = tmp_path / "mine", tmp_path / "shared.lua"
    folder.mkdir()
    write(folder)
    monkeypatch.setattr(SysbenchSuite, "shared_files", lambda script: (module,))
    seen = set()
    for text in ("return 1", "return 2", "return 2 -- still"):
        module.write_text(text)
        seen.add(digests(folder)["data"])
    assert len(seen) == 2


@pytest.mark.parametrize(
    "change",
    [
        ("slice_seconds = ", "slice_seconds = 1e-9 #"),
        ("repetitions = ", f"repetitions = {'9' * 5000} #"),
        ("repetitions = ", "repetitions = 99999999999999999999 #"),
        ("settle_seconds = ", "settle_seconds = 1e12 #"),
        ("data_to_memory = ", "data_to_memory = 1e300 #"),
        ("seed = ", f"seed = {'[' * 5000} #"),
    ],
    ids=str,
)
def test_numbers_without_measure_are_mistakes(tmp_path: Path, change: tuple[str, str]) -> None:
    write(tmp_path, change)
    with pytest.raises(SuiteError):
        load_suite(f"{tmp_path}/")

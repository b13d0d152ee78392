"""How large the data of a suite are: equal tables, or a scale that the suite's own file defines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.definition import Suite, SuiteError, load_suite
from suites.keys.profile import Profile
from suites.sizing import (
    TABLE_THREADS,
    Hardware,
    Part,
    WalkedRows,
    data_set,
    equal_tables,
    max_transactions,
    sizes,
)

GIB = 1024**3
WRITE_HEAVY = load_suite("write-heavy")
PGBENCH = load_suite("pgbench")

WAREHOUSES = """
name = "order-entry"
title = "Orders in warehouses"
generator = "sysbench"
script = "order_entry.lua"
engines = ["postgres", "mysql"]
seed = 7
growth = 1.5

[scale]
unit = "warehouse"

[scale.tables]
warehouse = { rows = 1, bytes_per_row = 1_000 }
stock = { rows = 1_000, bytes_per_row = 400 }
item = { rows = 500, bytes_per_row = 200, fixed = true }

[profiles.smoke]
title = "short"
seconds = 1
slice_seconds = 0.1
repetitions = 1
data_to_memory = 0.1
scale = [2, 50]
buffer_to_memory = 0.1
settle_seconds = 0

[[steps]]
name = "ship"
title = "a row of stock goes"
most_work_to_rows = 0.5
rows_of = "stock"
"""
UNIT_BYTES, FIXED_BYTES = 401_000, 100_000


@pytest.fixture
def warehouses(tmp_path: Path) -> Suite:
    """A suite in a folder of its own that defines its own scale."""
    (tmp_path / "suite.toml").write_text(WAREHOUSES)
    (tmp_path / "order_entry.lua").write_text("-- nothing\n")
    return load_suite(f"{tmp_path}/")


# --- equal tables

bytes_wanted = st.floats(0, 1e14)
threads_used = st.integers(1, 1000)
profiles = st.sampled_from(list(WRITE_HEAVY.profiles.values()))


@given(profiles, bytes_wanted, threads_used)
def test_equal_tables_of_any_machine(profile: Profile, wanted_bytes: float, threads: int) -> None:
    assert WRITE_HEAVY.bytes_per_row is not None
    assert profile.rows is not None
    data = data_set(WRITE_HEAVY, profile, wanted_bytes, threads)
    least, most = profile.rows
    assert data.tables == max(1, threads // TABLE_THREADS)
    assert least - data.tables < data.rows <= most, "only the division by tables may fall below the least"
    assert data.bytes == int(data.rows * WRITE_HEAVY.bytes_per_row)
    wanted = wanted_bytes / WRITE_HEAVY.bytes_per_row
    if least <= wanted <= most:
        assert wanted - data.tables - 1 <= data.rows <= wanted


@pytest.mark.parametrize(
    ("cores", "tables"), [(1, 1), (2, 1), (4, 1), (5, 1), (8, 1), (12, 2), (48, 8), (96, 16)]
)
def test_tables_of_known_machines(cores: int, tables: int) -> None:
    data = sizes(WRITE_HEAVY, WRITE_HEAVY.profile("short"), Hardware(cores, 128 * GIB)).data
    assert data.tables == tables


def test_what_the_script_of_equal_tables_is_told() -> None:
    data = equal_tables(3, 1000, 0)
    assert data.options == {"tables": 3, "table_size": 1000}
    assert data.stages == [[Part({"table": table}, 1000) for table in (1, 2, 3)]]
    assert data.walked(None) == WalkedRows(3, 1000)
    assert data.facts == {"tables": 3, "rows_per_table": 1000}


# --- a scale


@pytest.mark.parametrize(
    ("wanted_bytes", "scale"),
    [
        (0, 2),
        (FIXED_BYTES + 3 * UNIT_BYTES - 1, 2),
        (FIXED_BYTES + 3 * UNIT_BYTES, 3),
        (FIXED_BYTES + 50 * UNIT_BYTES, 50),
        (1e12, 50),
    ],
)
def test_as_many_units_as_the_bytes_hold_beside_the_fixed_tables(
    warehouses: Suite, wanted_bytes: float, scale: int
) -> None:
    data = data_set(warehouses, warehouses.profile("smoke"), wanted_bytes, threads=1)
    assert (data.scale, data.bytes) == (scale, FIXED_BYTES + scale * UNIT_BYTES)
    assert data.rows_by_table == {"warehouse": scale, "stock": 1000 * scale, "item": 500}
    assert data.rows == 1001 * scale + 500


def test_sizes_follow_from_the_scale(warehouses: Suite) -> None:
    room = sizes(warehouses, warehouses.profile("smoke"), Hardware(48, 100_000_000))
    assert room.data.scale == 24
    assert room.data_bytes == FIXED_BYTES + 24 * UNIT_BYTES
    assert room.disk_bytes == int(1.5 * room.data_bytes) + room.wal_limit_bytes


def test_what_the_script_of_a_scale_is_told(warehouses: Suite) -> None:
    """Unit 0 makes the tables and fills the fixed ones, before any other is loaded."""
    data = data_set(warehouses, warehouses.profile("smoke"), 0, threads=1)
    assert data.options == {"scale": 2}
    assert data.stages == [[Part({"unit": 0}, 500)], [Part({"unit": 1}, 1001), Part({"unit": 2}, 1001)]]
    assert data.facts == {"scale": 2, "unit": "warehouse"}


def test_a_step_uses_up_the_rows_of_the_table_that_it_names(warehouses: Suite) -> None:
    room = sizes(warehouses, warehouses.profile("smoke"), Hardware(2, 1))
    assert room.data.walked("stock") == WalkedRows(1, 2000)
    assert max_transactions(warehouses.steps[0], room) == 1000


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[scale]", "bytes_per_row = 5\n[scale]", "bytes_per_row, scale: a suite needs one of the two"),
        ("scale = [2, 50]", "", "profiles.smoke.scale: required in a suite with scale"),
        (
            "scale = [2, 50]",
            "scale = [2, 50]\nrows = [1, 2]",
            "profiles.smoke.rows: not a key of a suite with",
        ),
        ("scale = [2, 50]", "scale = [50, 2]", "scale = [least, most]: least is larger than most"),
        ("scale = [2, 50]", "scale = [0, 2]", "profiles.smoke.scale.0: Input should be greater than 0"),
        (
            'rows_of = "stock"',
            "",
            "steps.ship.rows_of: most_work_to_rows needs the table whose rows it counts",
        ),
        ('"stock"', '"orders"', "one of warehouse, stock, item"),
        (
            "most_work_to_rows = 0.5",
            "",
            "steps.ship.rows_of: only for most_work_to_rows in a suite with a scale",
        ),
        ("rows = 1_000", "rows = 0", "scale.tables.stock.rows: Input should be greater than 0"),
        ("rows = 1_000", "rows = 1_000, weight = 1", "scale.tables.stock.weight: Extra inputs"),
        ("fixed = true", 'fixed = "yes"', "scale.tables.item.fixed: Input should be a valid boolean"),
        ("bytes_per_row = 200, ", "", "scale.tables.item.bytes_per_row: Field required"),
        ('unit = "warehouse"', "", "scale.unit: Field required"),
        ("stock = {", '"Stock" = {', "scale.tables.Stock.[key]: String should match pattern"),
    ],
)
def test_a_mistake_in_a_scale_is_refused_with_its_key(
    warehouses: Suite, old: str, new: str, said: str
) -> None:
    assert old in WAREHOUSES
    (warehouses.folder / "suite.toml").write_text(WAREHOUSES.replace(old, new))
    with pytest.raises(SuiteError) as caught:
        load_suite(f"{warehouses.folder}/")
    assert said in caught.value.what


def test_a_scale_in_which_nothing_grows(warehouses: Suite) -> None:
    text = WAREHOUSES.replace("400 }", "400, fixed = true }").replace("1_000 }", "1_000, fixed = true }")
    (warehouses.folder / "suite.toml").write_text(text)
    with pytest.raises(SuiteError, match="scale: tables: all of them are fixed"):
        load_suite(f"{warehouses.folder}/")


# --- pgbench's scale factor


@given(st.sampled_from(sorted(PGBENCH.profiles)), st.integers(GIB // 4, 8192 * GIB))
def test_pgbench_gets_a_unit_for_each_hundred_thousand_rows(name: str, memory_bytes: int) -> None:
    """As many rows of 150 bytes as come to the profile's share of the memory, in whole units."""
    profile = PGBENCH.profile(name)
    assert profile.scale is not None
    data = sizes(PGBENCH, profile, Hardware(2, memory_bytes)).data
    least, most = profile.scale
    rows = min(
        max((profile.memory or memory_bytes) * profile.data_to_memory / 150, least * 100_000), most * 100_000
    )
    assert data.scale is not None
    assert rows / 100_000 - 1 < data.scale + 1e-9
    assert data.scale <= rows / 100_000 + 1e-9
    assert data.rows == data.scale * 100_000
    assert data.bytes == data.rows * 150

"""Sizes from the machine: bounds and directions for any machine, and the machines of the studies by name."""

import shutil
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from suites import sizing
from suites.definition import Suite, load_suite, suite_names
from suites.engines import engine_of, own_sizes
from suites.keys.profile import Profile
from suites.sizing import (
    WAL_TO_DATA,
    DiskSpaceError,
    Hardware,
    equal_tables,
    fit_together,
    least_memory,
    require_disk,
    sizes,
    this_machine,
)

MIB, GIB = 1024**2, 1024**3
SUITES = [load_suite(name) for name in ("write-heavy", "pgbench")]

machines = st.builds(Hardware, st.integers(1, 1024), st.integers(GIB // 4, 8192 * GIB))
cases = st.sampled_from(
    [(suite, profile) for suite in SUITES for profile in suite.profiles.values() if profile.memory is None]
)


@given(cases, machines)
def test_sizes_of_any_machine(case: tuple[Suite, Profile], machine: Hardware) -> None:
    suite, profile = case
    room = sizes(suite, profile, machine)
    assert 1 <= room.threads <= machine.cores
    assert 1 <= room.workers <= machine.cores
    assert room.disk_bytes >= room.data_bytes * suite.growth - 1
    assert room.buffer_bytes <= max(machine.memory_bytes * profile.buffer_to_memory, 128 * 1024**2)
    assert GIB <= room.wal_limit_bytes <= 64 * GIB
    assert room.wal_limit_bytes <= max(WAL_TO_DATA * room.data_bytes, GIB), "little data needs little log"
    assert room.disk_bytes >= room.data_bytes * suite.growth + room.wal_limit_bytes - 1


def test_the_profile_io_has_twice_its_memory_on_any_machine() -> None:
    suite = SUITES[0]
    for memory, wal, buffers in ((None, 256 * MIB, 256 * MIB), (384 * MIB, 128 * MIB, 128 * MIB)):
        of_memory = suite.with_declared(memory, None)
        room = sizes(of_memory, of_memory.profile("io"), Hardware(4, 4 * GIB))
        assert room.memory_bytes == (memory or GIB)
        assert room.data_bytes == pytest.approx(2 * room.memory_bytes, rel=1e-3)
        assert (room.wal_limit_bytes, room.buffer_bytes) == (wal, buffers)
        assert room == sizes(of_memory, of_memory.profile("io"), Hardware(4, 4096 * GIB))


@given(cases, machines, st.integers(0, 1024 * GIB))
def test_more_memory_never_means_less(case: tuple[Suite, Profile], machine: Hardware, more: int) -> None:
    suite, profile = case
    small = sizes(suite, profile, machine)
    large = sizes(suite, profile, Hardware(machine.cores, machine.memory_bytes + more))
    for name in ("buffer_bytes", "wal_limit_bytes", "data_bytes", "disk_bytes"):
        assert getattr(large, name) >= getattr(small, name), name
    assert large.data.rows >= small.data.rows
    assert (large.threads, large.workers) == (small.threads, small.workers)


@pytest.mark.parametrize("gib", [16, 64, 1024])
def test_versions_take_turns_in_every_profile(gib: int) -> None:
    """Versions that do not fit into memory together are measured one after the other, without slices."""
    machine = Hardware(16, gib * GIB)
    for suite in map(load_suite, suite_names()):
        for name, profile in suite.profiles.items():
            assert fit_together(2, sizes(suite, profile, machine), machine), (suite.name, name)
            if name == "short":
                assert fit_together(3, sizes(suite, profile, machine), machine), suite.name


@given(cases, st.integers(1, 1024), st.integers(0, 64))
def test_more_cores_never_mean_fewer_threads(case: tuple[Suite, Profile], cores: int, more: int) -> None:
    few, many = (sizes(*case, Hardware(count, 64 * GIB)) for count in (cores, cores + more))
    assert few.threads <= many.threads


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, 1), (2, 1), (4, 1), (5, 4), (8, 6), (12, 10), (48, 40), (96, 80)]
)
def test_threads_of_known_machines(cores: int, threads: int) -> None:
    suite = load_suite("write-heavy")
    assert sizes(suite, suite.profile("short"), Hardware(cores, 128 * GIB)).threads == threads


def test_smoke_on_a_laptop() -> None:
    suite = load_suite("write-heavy")
    room = sizes(suite, suite.profile("smoke"), Hardware(2, 24 * GIB))
    assert (room.threads, room.workers) == (1, 1)
    assert room.data == equal_tables(1, 99_114, 99_114 * 260)
    assert room.buffer_bytes == int(24 * GIB * 0.02)
    assert room.wal_limit_bytes == GIB


@pytest.mark.parametrize(
    ("usable", "bound_to"),
    [((0,), (0,)), ((0, 1), (1,)), ((2, 5, 7), (7,)), ((0, 1, 2, 3), (3,)), ((0, 1, 2, 3, 4), None)],
)
def test_one_client_thread_is_bound_to_the_last_core(
    usable: tuple[int, ...], bound_to: tuple[int, ...] | None
) -> None:
    suite = load_suite("write-heavy")
    room = sizes(suite, suite.profile("short"), Hardware(len(usable), 8 * GIB, usable))
    assert room.bound_to == bound_to
    assert (room.threads == 1) == (bound_to is not None)


def test_nothing_is_bound_where_the_cores_are_not_known() -> None:
    suite = load_suite("write-heavy")
    assert sizes(suite, suite.profile("short"), Hardware(2, 8 * GIB)).bound_to is None


def test_servers_fit_together_while_memory_is_left_for_files() -> None:
    """Two of 4 GiB and a bit take 8.5 of 10.7 GiB, which is just less than 80 %."""
    suite = load_suite("write-heavy")
    room = replace(sizes(suite, suite.profile("short"), Hardware(2, 8 * GIB)), buffer_bytes=4 * GIB)
    assert fit_together(2, room, Hardware(2, int(10.7 * GIB)))
    assert not fit_together(2, room, Hardware(2, int(10.6 * GIB)))
    assert fit_together(1, room, Hardware(2, int(5.4 * GIB)))
    assert not fit_together(3, room, Hardware(2, int(10.7 * GIB)))


def test_the_long_profile_on_the_machine_of_the_study() -> None:
    suite = load_suite("write-heavy")
    room = sizes(suite, suite.profile("long"), Hardware(48, 128 * GIB))
    assert room.data_bytes == pytest.approx(256 * GIB, rel=1e-6)
    assert room.buffer_bytes == 32 * GIB
    assert room.wal_limit_bytes == 32 * GIB
    assert room.disk_bytes == pytest.approx(3 * 256 * GIB + 32 * GIB, rel=1e-6)


def test_a_declared_memory_takes_the_place_of_the_machines() -> None:
    """Twice as much data as memory, on a machine that has much more."""
    suite = load_suite("write-heavy").with_declared(GIB, None)
    room = sizes(suite, suite.profile("long"), Hardware(2, 64 * GIB))
    assert room.memory_bytes == GIB
    assert room.data_bytes == pytest.approx(2 * GIB, rel=1e-6)
    assert (room.buffer_bytes, room.wal_limit_bytes) == (GIB // 4, GIB // 4)
    assert fit_together(51, room, Hardware(2, 64 * GIB)), "80 % of the machine's memory"
    assert not fit_together(52, room, Hardware(2, 64 * GIB))
    plain = load_suite("write-heavy")
    assert plain.with_declared(None, None) is plain
    assert sizes(plain, plain.profile("long"), Hardware(2, 64 * GIB)).memory_bytes is None


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(st.integers(0, 256), st.integers(64, 1024))
def test_the_least_memory_holds_buffers_and_what_is_beside(clients: int, beside: int) -> None:
    suite = load_suite("write-heavy")
    for profile in suite.profiles.values():
        room = replace(sizes(suite, profile, Hardware(2, 64 * GIB)), most_clients=clients)
        least = least_memory(profile, room, beside * MIB)
        needed = (beside + 8 * clients) * MIB
        assert least - max(int(least * profile.buffer_to_memory), 128 * MIB) == pytest.approx(needed, abs=2)


DIRECT: dict[Engine, dict[str, str]] = {
    Engine.MYSQL: {},
    Engine.MARIADB: {},
    Engine.POSTGRES: {"debug_io_direct": "data, wal"},
}
CACHED: dict[Engine, dict[str, str]] = {Engine.MYSQL: {"innodb_flush_method": "fsync"}, Engine.POSTGRES: {}}


@given(st.sampled_from(list(DIRECT)), st.integers(0, 64), st.integers(0, 4096))
def test_buffers_are_what_is_left_where_nothing_else_caches(engine: Engine, clients: int, more: int) -> None:
    """From the least memory on, with room for what is beside them."""
    suite = load_suite("write-heavy")
    beside = engine_of(engine).memory_beside_buffers
    few = replace(sizes(suite, suite.profile("io"), Hardware(2, 64 * GIB)), most_clients=clients)
    memory = least_memory(suite.profile("io"), few, beside) + more * MIB
    profile = suite.with_declared(memory, None).profile("io")
    room = replace(sizes(suite, profile, Hardware(2, 64 * GIB)), most_clients=clients)
    own = own_sizes(engine, room, DIRECT[engine]).buffer_bytes
    needed = beside + clients * 8 * MIB
    assert 128 * MIB <= own <= memory - needed
    assert own >= 0.85 * (memory - needed) - 1


def test_others_keep_their_share_of_the_memory() -> None:
    """Those whose data are in the page cache too, and all that share the machine's memory."""
    suite = load_suite("write-heavy")
    plain, declared = (sizes(suite, suite.profile(name), Hardware(2, 64 * GIB)) for name in ("long", "io"))
    assert [own_sizes(engine, declared, chosen) for engine, chosen in CACHED.items()] == [declared] * 2
    assert [own_sizes(engine, plain, chosen) for engine, chosen in DIRECT.items()] == [plain] * 3


def test_a_limit_above_us_is_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "memory_limit", lambda: 3 * GIB)
    monkeypatch.setattr(sizing, "usable_cores", lambda: (5, 7))
    assert this_machine() == Hardware(2, min(3 * GIB, psutil.virtual_memory().total), (5, 7))


def test_this_machine_is_described() -> None:
    machine = this_machine()
    assert machine.cores == len(machine.usable) >= 1
    assert machine.memory_bytes > GIB // 4


def test_too_little_disk_says_how_much_and_where(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    free = shutil.disk_usage(tmp_path).free
    require_disk(folder, free // 2)
    with pytest.raises(DiskSpaceError) as caught:
        require_disk(folder, 10**18)
    assert caught.value.what.startswith("too little disk space: 1000000000.0 GB needed, ")
    assert caught.value.what.endswith(" GB free")
    assert caught.value.where == str(folder)
    assert "smaller profile" in caught.value.hint
    assert not folder.exists()

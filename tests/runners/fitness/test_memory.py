"""What check says of memory: huge pages, swap, what evicts cached data, and what is available."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.fitness import memory
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import FIX, Level
from tests.runners.fitness.fake_kernel import FakeKernel

THP = "/sys/kernel/mm/transparent_hugepage"


@pytest.mark.parametrize(
    ("file", "text", "level"),
    [
        ("enabled", "[always] madvise never", Level.UNFIT),
        ("enabled", "always madvise [never]", Level.OK),
        ("defrag", "[always] defer madvise never", Level.UNFIT),
        ("defrag", "always [defer+madvise] never", Level.OK),
    ],
)
def test_huge_pages(kernel: FakeKernel, machine: CheckedMachine, file: str, text: str, level: Level) -> None:
    kernel.put(f"{THP}/{file}", text)
    assert memory.huge_pages(machine).level is level


@pytest.mark.parametrize(
    ("used", "swappiness", "level", "remedy"),
    [
        (0, 60, Level.UNFIT, FIX),
        (0, 10, Level.NOTE, "swapoff --all"),
        (524288, 1, Level.UNFIT, "swapoff --all"),
    ],
)
def test_swap(
    kernel: FakeKernel, machine: CheckedMachine, used: int, swappiness: int, level: Level, remedy: str
) -> None:
    kernel.put("/proc/swaps", f"Filename\tType\n/a swap file   file\t2097152\t{used}\t-2\n")
    kernel.put("/proc/sys/vm/swappiness", str(swappiness))
    found = memory.swap(machine)
    assert (found.level, found.remedy) == (level, remedy)
    assert found.text == f"2.0 GiB, {used / 1024**2:.1f} GiB of it used, swappiness {swappiness}"


areas = st.tuples(
    st.text("abc /", min_size=1).filter(str.strip), st.integers(0, 2**40), st.integers(0, 2**40)
)


@given(st.lists(areas))
def test_swaps_add_up(rows: list[tuple[str, int, int]]) -> None:
    text = "".join(f"{name.strip()} partition {size} {used} -2\n" for name, size, used in rows)
    wanted = sum(size for _, size, _ in rows), sum(used for _, _, used in rows)
    assert memory.swaps_kib("Filename Type Size Used Priority\n" + text) == wanted


@pytest.mark.parametrize(
    ("state", "actions", "text"),
    [
        ("on", ("stat", "pageout"), "pageout by kdamond 0"),
        ("on", ("lru_prio", "lru_deprio", "cold"), "cold, lru_deprio by kdamond 0"),
        ("on", ("stat", "lru_prio"), None),
        ("off", ("pageout",), None),
    ],
)
def test_a_kernel_thread_that_evicts_is_found(
    kernel: FakeKernel, machine: CheckedMachine, state: str, actions: tuple[str, ...], text: str | None
) -> None:
    kernel.put("/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1\n")
    kernel.put("/sys/kernel/mm/damon/admin/kdamonds/0/state", f"{state}\n")
    for number, action in enumerate(actions):
        scheme = f"/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/{number}"
        kernel.put(f"{scheme}/action", f"{action}\n")
    found = memory.proactive_reclaim(machine)
    if text is None:
        assert (found.level, found.text) == (Level.OK, "none")
        return
    assert (found.level, found.text) == (Level.UNFIT, text)
    assert found.remedy == "echo off > /sys/kernel/mm/damon/admin/kdamonds/0/state"


def test_modules_that_evict_are_found(kernel: FakeKernel, machine: CheckedMachine) -> None:
    reclaim, lru_sort = (
        f"/sys/module/{module}/parameters/enabled" for module in ("damon_reclaim", "damon_lru_sort")
    )
    kernel.put(reclaim, "N\n")
    assert memory.proactive_reclaim(machine).level is Level.OK
    kernel.put(reclaim, "Y\n")
    kernel.put(lru_sort, "Y\n")
    found = memory.proactive_reclaim(machine)
    assert (found.level, found.text) == (Level.UNFIT, "damon_reclaim; damon_lru_sort")
    assert found.remedy == f"echo N > {reclaim}; echo N > {lru_sort}"


def test_a_kernel_thread_that_only_root_may_look_at_is_a_note(
    kernel: FakeKernel, machine: CheckedMachine
) -> None:
    kernel.path("/sys/kernel/mm/damon/admin/kdamonds/0").mkdir(parents=True)
    found = memory.proactive_reclaim(machine)
    assert (found.level, found.look) == (Level.NOTE, "sudo ./tidemark check")


def test_memory_that_others_hold(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 499 kB\n")
    assert memory.available(machine).level is Level.UNFIT
    kernel.put("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n")
    assert memory.available(machine).level is Level.OK

"""Each check, on machines of files: what is said of a good one, a bad one, and one that shows nothing."""

import argparse
import fcntl
import json
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import Home
from runners.commands import check as command
from runners.fitness import memory, neighbours, processor, profiling
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import CHECKS, examine
from runners.fitness.finding import FIX, NOT_VISIBLE, Level
from runners.fitness.fixes import AppliedChanges, SettingChange
from runners.fitness.kernel import chosen
from suites.accounting.disturbance import Disturbance
from tests.runners.fitness.fake_kernel import CPU, FakeKernel, a_good_machine

CLOCKS = "/sys/devices/system/clocksource/clocksource0"
THP = "/sys/kernel/mm/transparent_hugepage"


# --- the whole


@pytest.mark.usefixtures("quick_disk")
def test_a_good_machine_is_fit(machine: CheckedMachine) -> None:
    findings = list(examine(machine))
    assert {
        finding.check.name: finding.reading.text
        for finding in findings
        if finding.reading.level is not Level.OK
    } == {}
    assert len(findings) == len(CHECKS) == len({finding.check.name for finding in findings})
    assert command.exit_code(findings, AppliedChanges()) == 0


@pytest.mark.usefixtures("quick_disk")
def test_a_machine_that_shows_nothing_is_not_called_unfit(machine: CheckedMachine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    findings = list(examine(replace(machine, kernel=FakeKernel(tmp_path / "empty"))))
    assert {finding.reading.level for finding in findings} == {Level.OK, Level.NOTE}
    said = {
        finding.check.name: finding.reading.text
        for finding in findings
        if finding.reading.level is Level.NOTE
    }
    assert said["governor"] == said["turbo"] == said["clock source"] == NOT_VISIBLE
    assert said["steal"].startswith("cannot be determined: ")
    assert {"memory", "load", "file system", "perf", "SMT", "huge pages"} <= said.keys()


@pytest.mark.usefixtures("quick_disk")
@given(text=st.text(max_size=40))
def test_nonsense_in_any_file_stops_no_check(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("nonsense")
    kernel = a_good_machine(folder)
    for name in list(kernel.tree()):
        kernel.put(name, text)
    machine = CheckedMachine(
        folder, kernel, lambda _: None, lambda _: text, lambda: datetime(2026, 3, 2), False, 0.001
    )
    assert len(list(examine(machine))) == len(CHECKS)


def test_every_check_says_why_in_a_sentence() -> None:
    assert all(check.why.endswith(".") and len(check.why) < 120 for check in CHECKS)


# --- the processor


@pytest.mark.parametrize(
    ("names", "level", "text"),
    [
        (("performance",), Level.OK, "performance on 1 processors"),
        (("powersave", "powersave"), Level.UNFIT, "powersave on 2 processors"),
        (("performance", "schedutil"), Level.UNFIT, "performance on 1 processors, schedutil on 1 processors"),
    ],
)
def test_governor(
    tmp_path: Path, machine: CheckedMachine, names: tuple[str, ...], level: Level, text: str
) -> None:
    kernel = FakeKernel(tmp_path / "other")
    kernel.governors(*names)
    found = processor.governor(replace(machine, kernel=kernel))
    assert (found.level, found.text) == (level, text)
    assert bool(found.remedy) == (level is Level.UNFIT)


@pytest.mark.parametrize(("file", "on"), [("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1")])
def test_turbo(tmp_path: Path, machine: CheckedMachine, file: str, on: str) -> None:
    machine = replace(machine, kernel=FakeKernel(tmp_path / "other"))
    assert isinstance(machine.kernel, FakeKernel)
    for text, level in ((on, Level.UNFIT), ("1" if on == "0" else "0", Level.OK)):
        machine.kernel.put(f"{CPU}/{file}", text)
        assert processor.turbo(machine).level is level


def test_smt_is_a_note_with_the_command(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.put(f"{CPU}/smt/active", "1\n")
    found = processor.smt(machine)
    assert (found.level, found.remedy) == (Level.NOTE, f"echo off > {CPU}/smt/control")


@pytest.mark.parametrize(
    ("now", "offered", "level", "remedy"),
    [
        ("kvm-clock", "kvm-clock", Level.OK, ""),
        ("hpet", "tsc hpet", Level.UNFIT, f"echo tsc > {CLOCKS}/current_clocksource"),
        ("acpi_pm", "hpet acpi_pm", Level.UNFIT, ""),
    ],
)
def test_clock(
    kernel: FakeKernel, machine: CheckedMachine, now: str, offered: str, level: Level, remedy: str
) -> None:
    kernel.put(f"{CLOCKS}/current_clocksource", now)
    kernel.put(f"{CLOCKS}/available_clocksource", offered)
    found = processor.clock(machine)
    assert (found.level, found.text, found.remedy) == (level, now, remedy)


# --- memory


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


words = st.text("abcdefer+-_", min_size=1, max_size=9)


@given(st.lists(words, min_size=1, unique=True), st.data())
def test_the_word_in_brackets(choices: list[str], data: st.DataObject) -> None:
    choice = data.draw(st.sampled_from(choices))
    assert chosen(" ".join(f"[{word}]" if word == choice else word for word in choices) + "\n") == choice
    assert chosen(f" {choice}\n") == choice


# --- company


def sampled(
    machine: CheckedMachine, steal: float = 0.0, others: float = 0.0, culprits: tuple[str, ...] = ()
) -> CheckedMachine:
    machine.__dict__["sample"] = Disturbance(1.0, steal, others, 0, culprits)
    return machine


def test_steal(machine: CheckedMachine) -> None:
    assert neighbours.steal(sampled(machine, steal=0.02)).level is Level.OK
    found = neighbours.steal(sampled(machine, steal=0.021))
    assert (found.level, found.text) == (Level.UNFIT, "2.1 % of the CPU time requested in 1.0 s (limit 2 %)")


def test_others_at_work_are_named(machine: CheckedMachine) -> None:
    found = neighbours.load(sampled(machine, others=0.5, culprits=("cc1", "dpkg")))
    assert found.level is Level.UNFIT
    assert "50.0 % of a core" in found.text
    assert found.text.endswith("most used by cc1, dpkg")


def test_a_minute_that_was_busy_is_a_note(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.put("/proc/loadavg", "1.01 0 0 1/2 3")  # two processors
    assert neighbours.load(sampled(machine)).level is Level.NOTE
    kernel.put("/proc/loadavg", "0.99 0 0 1/2 3")
    assert neighbours.load(sampled(machine)).level is Level.OK


def test_the_sample_keeps_a_core_busy_and_counts_none_of_it(tmp_path: Path) -> None:
    began = _wanted_seconds()
    found = CheckedMachine(tmp_path, sample_seconds=0.3).sample
    assert _wanted_seconds() - began > 0.2
    assert found.seconds == pytest.approx(0.3, abs=0.3)


def _wanted_seconds() -> float:
    """CPU time of this thread, and the time for which it waited for a core that others had."""
    running, waiting, _ = Path("/proc/thread-self/schedstat").read_text().split()
    return (int(running) + int(waiting)) / 1e9


def test_other_databases(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.process(50, "postgres")
    kernel.process(51, "postgres")
    kernel.process(60, "redis-server")
    found = neighbours.databases(machine)
    assert found.level is Level.UNFIT
    assert found.text.startswith("postgres (2 processes), redis-server (1 process): ")
    assert (found.remedy, found.look) == ("", "ps -o pid,user,lstart,args -C postgres,redis-server")
    kernel.path("/run/systemd/system").mkdir(parents=True)
    assert neighbours.databases(machine) == found


# --- profiling


@pytest.mark.parametrize(
    ("paranoid", "pointers", "is_root", "remedy"),
    [
        (0, 0, False, ""),
        (1, 0, False, FIX),
        (2, 0, False, FIX),
        (4, 1, True, ""),
        (1, 1, False, FIX),
        (1, 2, True, FIX),
    ],
)
def test_perf(
    kernel: FakeKernel, machine: CheckedMachine, paranoid: int, pointers: int, is_root: bool, remedy: str
) -> None:
    kernel.put(profiling.PARANOID, str(paranoid))
    kernel.put(profiling.POINTERS, str(pointers))
    found = profiling.profiler(replace(machine, is_root=is_root))
    assert (found.level, found.remedy) == (Level.NOTE if remedy else Level.OK, remedy)


def test_no_perf_and_no_counters(kernel: FakeKernel, machine: CheckedMachine) -> None:
    assert profiling.profiler(replace(machine, which=lambda name: None)).remedy == "./tidemark setup"
    shutil.rmtree(kernel.path("/sys/bus"))
    found = profiling.profiler(machine)
    assert (found.level, "cpu-clock only" in found.text) == (Level.NOTE, True)


# --- the command


@pytest.mark.usefixtures("quick_disk")
def test_what_is_shown(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.governors("powersave", "powersave")
    findings = list(examine(sampled(machine)))
    change = SettingChange("/sys/a", "1", "0")
    shown = command.as_text(findings, AppliedChanges([change]))
    assert "unfit  governor           powersave on 2 processors\n" in shown
    assert f"{' ' * 26}fix: ./tidemark check --fix\n" in shown
    assert "  /sys/a: 1 -> 0\n" in shown
    assert shown.endswith("Unfit for benchmarking: governor.")
    assert all(len(line) <= command.WIDTH or "fix: " in line for line in shown.splitlines())
    said = json.loads(command.as_json(findings, AppliedChanges([change])))
    assert said["fit"] is False
    assert said["changed"] == [{"name": "/sys/a", "before": "1", "after": "0"}]
    first = said["findings"][0]
    assert (first["check"], first["level"], first["mend"]) == ("governor", "unfit", FIX)
    assert command.exit_code(findings, AppliedChanges()) == 1
    assert command.exit_code(findings, AppliedChanges(failures={"/sys/a": "no"})) == 2


@pytest.fixture
def on_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: FakeKernel) -> FakeKernel:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(command, "Kernel", lambda: kernel)
    monkeypatch.setattr(
        command, "CheckedMachine", lambda home, machine: sampled(CheckedMachine(home, machine, is_root=False))
    )
    return kernel


def run(fix: bool = False, restore: bool = False, form: str = "terminal") -> int:
    return command.main(argparse.Namespace(fix=fix, restore=restore, format=form))


@pytest.mark.usefixtures("quick_disk")
def test_fix_and_restore_from_the_command_line(
    on_files: FakeKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_files.governors("powersave", "schedutil")
    before = on_files.tree()
    assert run() == 1
    assert run(fix=True) == 0
    assert "./tidemark check --restore restores" in capsys.readouterr().out
    assert Home(tmp_path / "home").fitness.exists()
    assert run(restore=True, form="json") == 0
    assert len(json.loads(capsys.readouterr().out)["changed"]) == 2
    assert on_files.tree() == before
    assert run(restore=True) == 0
    assert capsys.readouterr().out == "Nothing to restore.\n"
    assert not Home(tmp_path / "home").fitness.exists()


def test_a_measurement_is_not_disturbed(
    on_files: FakeKernel, lock_of_its_own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from runners.cli import main

    on_files.governors("powersave")
    with lock_of_its_own.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["check", "--fix"]) == 2
    assert "the machine is held by process" in capsys.readouterr().err
    assert "powersave" in on_files.tree()["sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"]


def test_sensors_of_processors_only(machine: CheckedMachine, kernel: FakeKernel) -> None:
    kernel.put("/sys/class/hwmon/hwmon1/name", "nvme\n")
    kernel.put("/sys/class/hwmon/hwmon1/temp1_input", "99000\n")
    kernel.put("/sys/class/hwmon/hwmon0/temp2_input", "-1000\n")
    kernel.put("/sys/class/thermal/thermal_zone0/type", "acpitz\n")
    kernel.put("/sys/class/thermal/thermal_zone0/temp", "99000\n")
    assert processor.temperature(machine).text == "41 °C at hwmon/hwmon0/temp1_input (limit 75 °C)"
    kernel.put("/sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    kernel.put("/sys/class/thermal/thermal_zone1/temp", "75500\n")
    found = processor.temperature(machine)
    assert (found.level, found.text) == (
        Level.UNFIT,
        "76 °C at thermal/thermal_zone1/temp (limit 75 °C)",
    )

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

from runners.commands import check as command
from runners.fitness import neighbours, processor, profiling
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import CHECKS, examine
from runners.fitness.finding import FIX, NOT_VISIBLE, Level
from runners.fitness.fixes import AppliedChanges, SettingChange
from runners.fitness.kernel import chosen
from suites.accounting.disturbance import Disturbance
from tests.runners.fitness.fake_kernel import CPU, FakeKernel, a_good_machine

CLOCKS = "/sys/devices/system/clocksource/clocksource0"


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


@pytest.mark.deep("a whole command in a process of its own")
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


# --- the choice that a file of the kernel shows


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
    return command.main(argparse.Namespace(fix=fix, restore=restore, format=form, plan=None))


@pytest.mark.usefixtures("quick_disk")
def test_fix_and_restore_from_the_command_line(
    on_files: FakeKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_files.governors("powersave", "schedutil")
    before = on_files.tree()
    assert run() == 1
    assert run(fix=True) == 0
    assert "./tidemark check --restore restores" in capsys.readouterr().out
    assert (tmp_path / "home" / command.CHANGED_SETTINGS).exists()
    assert run(restore=True, form="json") == 0
    assert len(json.loads(capsys.readouterr().out)["changed"]) == 2
    assert on_files.tree() == before
    assert run(restore=True) == 0
    assert capsys.readouterr().out == "Nothing to restore.\n"
    assert not (tmp_path / "home" / command.CHANGED_SETTINGS).exists()


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

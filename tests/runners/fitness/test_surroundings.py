"""Checks of what a machine will start by itself, and of where Tidemark writes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from runners.fitness import storage, timers
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import examine
from runners.fitness.finding import Level
from tests.runners.fitness.fake_kernel import NOW, FakeKernel, Usage

# --- timers


def with_systemd(kernel: FakeKernel, machine: CheckedMachine, listed: str) -> CheckedMachine:
    kernel.path("/run/systemd/system").mkdir(parents=True)
    return replace(machine, run_program=lambda words: listed)


def row(unit: str, hours: float) -> dict[str, object]:
    return {"next": int((NOW.timestamp() + hours * 3600) * 1e6), "left": 1, "unit": unit, "activates": "x"}


def test_timers_of_systemd(kernel: FakeKernel, machine: CheckedMachine) -> None:
    rows = [
        row("apt-daily.timer", 3.5),
        row("fstrim.timer", 0.25),
        row("man-db.timer", 4.1),
        row("systemd-tmpfiles-clean.timer", 1),
        {"next": None, "unit": "never.timer"},
        {"next": 0, "unit": "inactive.timer"},
        {"next": 2**64 - 1, "unit": "infinite.timer"},
    ]
    found = timers.timers(with_systemd(kernel, machine, json.dumps(rows)))
    assert found.level is Level.UNFIT
    assert found.text == "in the next 4 hours: fstrim.timer at 01:15, apt-daily.timer at 04:30"
    assert (found.remedy, found.look) == ("", "systemctl list-timers")


@pytest.mark.parametrize("listed", ["", "NEXT LEFT\nMon 2026", "{}", '"x"'])
@pytest.mark.usefixtures("quick_disk")
def test_a_systemd_that_does_not_say_is_a_note(
    kernel: FakeKernel, machine: CheckedMachine, listed: str
) -> None:
    findings = examine(with_systemd(kernel, machine, listed))
    (found,) = [finding.reading for finding in findings if finding.check.name == "timers"]
    assert found.level is Level.NOTE


def test_jobs_of_cron_count_where_cron_runs(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.put("/etc/crontab", "SHELL=/bin/sh\n17 * * * * root cd / && run-parts --report /etc/cron.hourly\n")
    kernel.put("/etc/cron.d/backup", "30 3 * * * root /usr/bin/backup --all\n0 9 * * * root late\n")
    kernel.put("/etc/cron.d/.placeholder", "* * * * * root never\n")
    kernel.put("/var/spool/cron/crontabs/ann", "@hourly report\n")
    assert timers.timers(machine).level is Level.OK
    kernel.process(9, "cron")
    found = timers.timers(machine)
    assert found.text == (
        "in the next 4 hours: /var/spool/cron/crontabs/ann (report) at 02:00, "
        "/etc/cron.d/backup (/usr/bin/backup) at 03:30"
    )
    assert (found.remedy, found.look) == ("", "")
    kernel.put("/etc/cron.hourly/job", "#!/bin/sh\n")
    assert "/etc/crontab (cd) at 01:17" in timers.timers(machine).text


def test_jobs_that_leave_it_to_systemd(kernel: FakeKernel, machine: CheckedMachine) -> None:
    kernel.process(9, "cron")
    kernel.put("/etc/cron.d/e2scrub", "10 3 * * * root test -e /run/systemd/system || e2scrub -A\n")
    assert timers.timers(machine).level is Level.UNFIT
    assert timers.timers(with_systemd(kernel, machine, "[]")).level is Level.OK


# --- storage

MOUNTS = """/dev/sda1 / ext4 rw 0 0
tmpfs /run tmpfs rw 0 0
/dev/sdb1 /srv/my\\040data btrfs rw 0 0
old /srv/x nfs rw 0 0
new /srv/x xfs rw,noatime 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home", "ext4"),
        ("/", "ext4"),
        ("/run", "tmpfs"),
        ("/running", "ext4"),
        ("/srv/my data/home", "btrfs"),
        ("/srv/x/y", "xfs"),
    ],
)
def test_the_mount_of_a_folder(path: str, kind: str) -> None:
    found = storage.mount_of(Path(path), storage.mounts(MOUNTS))
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", Level.OK), ("xfs", Level.OK), ("btrfs", Level.NOTE), ("zfs", Level.NOTE)]
    + [(name, Level.UNFIT) for name in ("overlay", "tmpfs", "nfs4", "9p", "fuse.sshfs")],
)
def test_file_systems(kernel: FakeKernel, machine: CheckedMachine, kind: str, level: Level) -> None:
    kernel.put("/proc/self/mounts", f"dev / {kind} rw 0 0\n")
    found = storage.file_system(machine)
    assert found.level is level
    assert found.text.startswith(f"{kind} on dev at /, rw; ")
    assert found.text.endswith("reflink")


def test_flushes_are_measured_and_leave_nothing(tmp_path: Path) -> None:
    spent = storage.flush_seconds(tmp_path, 3)
    assert len(spent) == 3
    assert all(seconds > 0 for seconds in spent)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("usual_ms", "worst_ms", "level"),
    [
        (1, 5, Level.OK),
        (10, 199, Level.OK),
        (11, 12, Level.UNFIT),
        (1, 201, Level.UNFIT),
        (0.001, 1, Level.NOTE),
    ],
)
def test_flushes_are_judged(usual_ms: float, worst_ms: float, level: Level) -> None:
    found = storage.judge_flushes([usual_ms / 1000] * 19 + [worst_ms / 1000])
    assert found.level is level
    assert f"worst {worst_ms:.2f} ms of 20 fsyncs" in found.text


@pytest.mark.parametrize(
    ("free", "level"), [(10**9, Level.UNFIT), (9 * 10**10, Level.NOTE), (10**11, Level.OK)]
)
def test_free_disk(machine: CheckedMachine, monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, free))
    monkeypatch.setattr(storage, "sizes", lambda *given: _Sizes())
    assert storage.free_disk(machine).level is level


class _Sizes:
    disk_bytes = 2 * 10**9

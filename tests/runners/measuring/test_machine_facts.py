"""What identifies a machine, and what is said when it is another one than before."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from build.version import parse_version
from history.comparison.compare import compare
from history.open import open_store
from history.store.records import Machine
from runners.fitness import memory, processor, profiling
from runners.fitness.finding import NOT_VISIBLE
from runners.fitness.settings import settings
from runners.measuring.machine_facts import changes, describe
from runners.measuring.session_description import with_machine_changes
from tests.history.handmade import MACHINE, record_steps, session_start
from tests.runners.fitness.fake_kernel import CPU, FakeKernel, a_good_machine

HOME = Path("/srv/tidemark")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return a_good_machine(tmp_path)


def test_the_settings_of_a_machine(kernel: FakeKernel) -> None:
    assert settings(kernel, HOME) == {
        "governor": "performance",
        "turbo": "off",
        "SMT": "off",
        "huge pages": "madvise, defrag madvise",
        "swap": "off",
        "clock source": "tsc",
        "file system": "ext4",
        "microcode": "0xa101148",
        "mitigations": "spectre_v1: Mitigation: usercopy barriers",
    }


def test_every_setting_is_there_even_if_nothing_is_visible(tmp_path: Path, kernel: FakeKernel) -> None:
    found = settings(FakeKernel(tmp_path / "empty"), HOME)
    assert found.keys() == settings(kernel, HOME).keys()
    assert set(found.values()) == {NOT_VISIBLE, "off"}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            f"{CPU}/cpu1/cpufreq/scaling_governor",
            "powersave",
            "governor: performance -> performance, powersave",
        ),
        (processor.NO_TURBO, "0", "turbo: off -> on"),
        (processor.SMT_ACTIVE, "1", "SMT: off -> on"),
        (processor.CLOCK, "hpet", "clock source: tsc -> hpet"),
        (memory.THP, "[always] madvise", "huge pages: madvise, defrag madvise -> always, defrag madvise"),
        (memory.SWAPS, "head\n/a file 9 0 -2", "swap: off -> on, swappiness 60"),
        ("/proc/self/mounts", "/dev/sda1 / xfs rw", "file system: ext4 -> xfs"),
        ("/proc/cpuinfo", "model name\t: EPYC 9454P\nmicrocode\t: 0x2", "microcode: 0xa101148 -> 0x2"),
        ("/proc/cpuinfo", "model name\t: EPYC 1\nmicrocode\t: 0xa101148", "cpu model: EPYC 9454P -> EPYC 1"),
        (
            f"{CPU}/vulnerabilities/l1tf",
            "Vulnerable",
            "mitigations: spectre_v1: Mitigation: usercopy barriers",
        ),
    ],
)
def test_what_moves_results_makes_another_machine(
    kernel: FakeKernel, file: str, text: str, said: str
) -> None:
    before = describe(HOME, kernel)
    kernel.put(file, text)
    now = describe(HOME, kernel)
    assert now.fingerprint != before.fingerprint
    (change,) = changes(before, now)
    assert change == said or change.startswith(f"{said} -> l1tf: Vulnerable; ")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 1 kB"),
        ("/proc/loadavg", "9 9 9 1/2 3"),
        ("/proc/self/mounts", "/dev/sdb1 / ext4 rw,noatime"),
        (memory.SWAPPINESS, "1"),  # without swap it means nothing
        (profiling.PARANOID, "4"),
    ],
)
def test_what_does_not_move_results_or_varies_by_itself_does_not(
    kernel: FakeKernel, file: str, text: str
) -> None:
    before = describe(HOME, kernel)
    kernel.put(file, text)
    now = describe(HOME, kernel)
    assert now.fingerprint == before.fingerprint
    assert changes(before, now) == []


def test_the_details_say_more_than_the_fingerprint(kernel: FakeKernel) -> None:
    details = describe(HOME, kernel).details
    assert details["settings"] == settings(kernel, HOME)
    assert details["mount"] == {
        "device": "/dev/sda1",
        "folder": "/",
        "kind": "ext4",
        "options": "rw,relatime",
    }
    assert details["perf"] == {"paranoid": 0, "kptr_restrict": 0, "samples_by": "hardware counters"}


def test_this_machine_is_itself() -> None:
    assert describe(HOME).fingerprint == describe(HOME).fingerprint
    assert changes(describe(HOME), describe(HOME)) == []


def machine(fingerprint: str, **settings: str) -> Machine:
    return replace(MACHINE, fingerprint=fingerprint, details={"settings": settings})


def test_the_first_session_has_no_machine_before() -> None:
    assert changes(None, machine("a")) == []


def test_a_history_that_recorded_less() -> None:
    """A Tidemark that looks at more begins a new series; it does not say that a setting was changed."""
    now = replace(machine("b", governor="performance", turbo="on"), kernel="6.9")
    assert changes(MACHINE, now) == ["kernel: 6.8.0-55 -> 6.9", "not recorded before: governor, turbo"]
    assert changes(machine("a"), machine("b")) == ["its fingerprint"]


def test_a_session_on_a_changed_machine_is_marked_once(tmp_path: Path) -> None:
    slow, quick = machine("a", governor="powersave"), machine("b", governor="performance")
    marks = []
    with open_store(Home(tmp_path).history) as store:
        for number, box in enumerate([slow, slow, quick, quick, slow]):
            start = replace(session_start(f"s{number}"), machine=box)
            marked = with_machine_changes(start, changes(store.latest_machine(box.hostname), box))
            store.start_session(marked)
            session = store.latest_session((), uid=f"s{number}")
            assert session is not None
            assert session.options["threads"] == 8
            marks.append(session.options.get("machine_changed"))
    assert marks == [
        None,
        None,
        ["governor: powersave -> performance"],
        None,
        ["governor: performance -> powersave"],
    ]


def test_the_comparison_warns_of_it(tmp_path: Path) -> None:
    base, contender = "postgres@17.11", "postgres@18.6"
    steps = {"insert": {base: [1000.0] * 3, contender: [1000.0] * 3}}
    with open_store(Home(tmp_path).history) as store:
        warned = []
        for uid, changed in (("same", []), ("other", ["turbo: off -> on", "kernel: 6.8 -> 6.9"])):
            record_steps(store, with_machine_changes(session_start(uid), changed), steps)
            (found,) = compare(store, parse_version(base), [parse_version(contender)]).contenders
            warned.append([text for text in found.warnings if "machine has changed" in text])
    assert warned[0] == []
    (warning,) = warned[1]
    assert "since its last session: turbo: off -> on; kernel: 6.8 -> 6.9;" in warning

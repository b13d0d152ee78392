"""A machine of files, whose files of choices behave as the kernel's do."""

from datetime import datetime
from pathlib import Path

from runners.fitness.kernel import Kernel
from suites.accounting.proc import KERNEL_THREAD

CPU = "/sys/devices/system/cpu"
NOW = datetime(2026, 3, 2, 1, 0)


class FakeKernel(Kernel):
    """Writes to `a [b] c` choose a word, and no other word than those that are there."""

    def write(self, name: str, value: str) -> None:
        text = self.path(name).read_text()
        if "[" not in text:
            super().write(name, f"{value}\n")
            return
        words = [word.strip("[]") for word in text.split()]
        if value not in words:
            raise OSError(22, "Invalid argument")
        super().write(name, " ".join(f"[{word}]" if word == value else word for word in words) + "\n")

    def put(self, name: str, text: str) -> None:
        """Make the file, whatever was there."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def governors(self, *names: str) -> None:
        for number, name in enumerate(names):
            self.put(f"{CPU}/cpu{number}/cpufreq/scaling_governor", f"{name}\n")

    def process(self, pid: int, name: str, *, kernel: bool = False) -> None:
        flags = KERNEL_THREAD if kernel else 0
        self.put(
            f"/proc/{pid}/stat",
            f"{pid} ({name}) S 1 1 1 0 -1 {flags} 1 1 1 1 0 0 0 0 20 0 1 0 7 0\n",
        )

    def tree(self) -> dict[str, str]:
        """Every file below the root and its text."""
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_text() for path in files}


def a_good_machine(root: Path) -> FakeKernel:
    """Fit in every respect."""
    kernel = FakeKernel(root)
    kernel.governors("performance", "performance")
    for name, text in {
        f"{CPU}/intel_pstate/no_turbo": "1",
        f"{CPU}/smt/active": "0",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
        "/sys/bus/event_source/devices/cpu/type": "4",
        "/sys/class/hwmon/hwmon0/name": "k10temp",
        "/sys/class/hwmon/hwmon0/temp1_input": "41250",
        "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority",
        "/proc/sys/vm/swappiness": "60",
        "/proc/meminfo": "MemTotal:       32000000 kB\nMemFree: 1 kB\nMemAvailable:   30000000 kB",
        "/proc/stat": "cpu  1 2 3 4 5 6 7 8 9 10",
        "/proc/loadavg": "0.10 0.20 0.30 1/200 4711",
        "/proc/self/mounts": "/dev/sda1 / ext4 rw,relatime 0 0",
        "/proc/sys/kernel/perf_event_paranoid": "0",
        "/proc/sys/kernel/kptr_restrict": "0",
        "/proc/sys/kernel/nmi_watchdog": "0",
        "/proc/cpuinfo": "processor\t: 0\nmodel name\t: EPYC 9454P\nmicrocode\t: 0xa101148",
        f"{CPU}/vulnerabilities/l1tf": "Not affected",
        f"{CPU}/vulnerabilities/spectre_v1": "Mitigation: usercopy barriers",
    }.items():
        kernel.put(name, text + "\n")
    kernel.process(1, "systemd")
    return kernel


class Usage:
    """What shutil.disk_usage returns, as far as it is read."""

    def __init__(self, total: int, free: int) -> None:
        self.total, self.free = total, free

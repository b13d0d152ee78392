"""What this machine is: the facts that a history of measurements hangs on."""

import hashlib
import json
import platform
import re
from pathlib import Path

import psutil

from history.records import Machine
from suites.sizing import this_machine

CPUINFO = Path("/proc/cpuinfo")


def describe() -> Machine:
    """This machine. Equal fingerprints mean that measurements can be compared as far as the machine goes.

    The fingerprint covers host name, processor, cores, memory, kernel and operating system; whatever changes
    them, such as an update of the kernel, makes another machine of it.
    """
    facts = this_machine()
    parts: dict[str, object] = {
        "hostname": platform.node(),
        "cpu_model": _cpu_model(),
        "cores": facts.cores,
        "memory_bytes": facts.memory_bytes,
        "kernel": platform.release(),
        "operating_system": _operating_system(),
    }
    return Machine(
        fingerprint=hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16],
        hostname=str(parts["hostname"]),
        cpu_model=str(parts["cpu_model"]),
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        kernel=str(parts["kernel"]),
        operating_system=str(parts["operating_system"]),
        details={"swap_bytes": psutil.swap_memory().total, "boot_time": psutil.boot_time()},
    )


def _cpu_model() -> str:
    match = re.search(r"^model name\s*: (.+)$", CPUINFO.read_text(), re.MULTILINE)
    return match[1] if match else platform.machine()


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"

"""The limits of a server's control group, as a command line, a profile and a plan write them."""

import re
from dataclasses import dataclass

from build.errors import TidemarkError

MEBIBYTE = 2**20

_UNITS = {"M": MEBIBYTE, "G": 2**30, "T": 2**40}

MIN_MEMORY, MAX_MEMORY = 16 * MEBIBYTE, 1024 * 2**40
"""What can be written, in bytes; a server needs more than the least (suites.sizing.least_memory)."""


class LimitError(TidemarkError):
    """A limit cannot be read, is too small or too large, or cannot be set on this machine."""


@dataclass(frozen=True)
class MemoryUse:
    """How much memory is in use, page cache included, and how much there is."""

    used_bytes: int
    limit_bytes: int


def parse_memory(text: str) -> int:
    """Return the bytes of an amount of memory such as `1G`, `1.5G` or `512M`, in whole MiB.

    Raises LimitError.
    """
    found = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)([MGT])(?:i?B)?", text)
    amount = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not MIN_MEMORY <= amount <= MAX_MEMORY:
        least, most = memory_text(MIN_MEMORY), memory_text(MAX_MEMORY)
        raise LimitError(
            f"'{text[:40]}' is no amount of memory from {least} to {most}",
            hint="write it as 1G or 512M, where G is GiB and M is MiB",
        )
    return int(amount) // MEBIBYTE * MEBIBYTE


def memory_text(amount: int) -> str:
    """Return bytes of memory as they are recorded and shown, rounded up to whole MiB: `1G`, `1536M`."""
    mebibytes = -(-amount // MEBIBYTE)
    for unit in ("T", "G"):
        size = _UNITS[unit] // MEBIBYTE
        if mebibytes and mebibytes % size == 0:
            return f"{mebibytes // size}{unit}"
    return f"{mebibytes}M"

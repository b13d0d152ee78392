"""What a session declares for each server in place of what the machine has, and what is used of it.

That is memory and the speed of the disk, as command lines, profiles, plans and the history write them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from build.errors import TidemarkError


@dataclass(frozen=True)
class Declared:
    """Memory and disk of each server as they are written and recorded; empty for those of the machine.

    A field has the name of its option, on a command line and in a session, and of its key in a profile.
    """

    memory: str = ""
    """Page cache included, such as `1G`."""
    disk: str = ""
    """The most of reads and of writes each, such as `2000iops,100MB/s`."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Declared":
        """Return what the options of a session say."""
        return cls(*(str(options.get(name) or "") for name in DECLARED))

    @property
    def options(self) -> dict[str, str]:
        """What is declared, by name, as options of a session."""
        return {name: value for name in DECLARED if (value := getattr(self, name))}

    def arguments(self, usual: "Declared | None" = None) -> list[str]:
        """Return the words of a command line; without those that are `usual`, as a profile has them."""
        known = {} if usual is None else usual.options
        return [
            word
            for name, value in self.options.items()
            if value != known.get(name)
            for word in (f"--{name}", value)
        ]

    def __str__(self) -> str:
        """Return a phrase: `1G of memory and a disk of 500iops for each server`; empty without any."""
        parts = [f"{self.memory} of memory"] if self.memory else []
        parts += [f"a disk of {self.disk}"] if self.disk else []
        return f"{' and '.join(parts)} for each server" if parts else ""


DECLARED = tuple(field.name for field in fields(Declared))
"""The names, in the order in which they are shown."""


MEGABYTE, MEBIBYTE = 10**6, 2**20

_MEMORY_UNITS = {"M": MEBIBYTE, "G": 2**30, "T": 2**40}

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
    amount = float(found[1]) * _MEMORY_UNITS[found[2]] if found else 0.0
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
        size = _MEMORY_UNITS[unit] // MEBIBYTE
        if mebibytes and mebibytes % size == 0:
            return f"{mebibytes // size}{unit}"
    return f"{mebibytes}M"


_RATE_UNITS = {"MB": MEGABYTE, "GB": 10**9, "MiB": MEBIBYTE, "GiB": 2**30}

MIN_IOPS, MAX_IOPS = 10, 10**7
"""What can be written, in requests per second; with fewer a server does not even start in time."""

MIN_RATE, MAX_RATE = MEGABYTE, 10**11
"""What can be written, in bytes per second."""


@dataclass(frozen=True)
class DiskSpeed:
    """What a disk does at most, of reads and of writes each; at least one of the two is known."""

    iops: int | None = None
    """Requests per second."""
    bytes_per_second: int | None = None

    def __str__(self) -> str:
        """Return it as it is recorded and shown: `2000iops,100MB/s`."""
        parts = [] if self.iops is None else [f"{self.iops}iops"]
        if self.bytes_per_second is not None:
            parts.append(_rate_text(self.bytes_per_second))
        return ",".join(parts)


def _rate_text(rate: int) -> str:
    """Return bytes per second in the unit in which they are whole; else in MB/s, which six digits give."""
    if rate % MEGABYTE and rate % MEBIBYTE == 0:
        return f"{rate // MEBIBYTE}MiB/s"
    return f"{(Decimal(rate) / MEGABYTE).normalize():f}MB/s"


@dataclass(frozen=True)
class DiskUse:
    """What was read and written of a disk so far, beside what is declared for it."""

    speed: DiskSpeed
    requests: tuple[int, int]
    """Reads and writes."""
    amounts: tuple[int, int]
    """Bytes read and written."""

    def share_since(self, before: "DiskUse", seconds: float) -> float:
        """Return the largest share of what is declared that was used in some seconds.

        Of reads and writes, requests and bytes, the one that comes nearest to its limit counts.
        """
        limits = (
            (self.speed.iops, self.requests, before.requests),
            (self.speed.bytes_per_second, self.amounts, before.amounts),
        )
        return max(
            (now - old) / (limit * seconds)
            for limit, used, used_before in limits
            if limit is not None
            for now, old in zip(used, used_before, strict=True)
        )


def parse_disk(text: str) -> DiskSpeed:
    """Return the speed of a disk such as `2000iops`, `100MB/s`, or both by comma in any order.

    Raises LimitError.
    """
    iops: int | None = None
    rate: int | None = None
    for part in text.split(","):
        word = part.strip()
        if iops is None and (found := re.fullmatch(r"([0-9]{1,9})iops", word)):
            iops = int(found[1])
        elif rate is None and (found := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([MG]i?B)/s", word)):
            rate = int(Decimal(found[1]) * _RATE_UNITS[found[2]])
        else:
            iops = rate = None
            break
    if iops is None and rate is None:
        raise LimitError(
            f"'{text[:40]}' is no speed of a disk",
            hint="write it as 2000iops, 100MB/s, or both with a comma between; MB are 10^6 bytes, MiB 2^20",
        )
    if iops is not None and not MIN_IOPS <= iops <= MAX_IOPS:
        raise LimitError(f"{iops}iops is no speed of a disk", hint=f"write {MIN_IOPS}iops to {MAX_IOPS}iops")
    if rate is not None and not MIN_RATE <= rate <= MAX_RATE:
        raise LimitError(
            f"{_rate_text(rate)} is no speed of a disk",
            hint=f"write {_rate_text(MIN_RATE)} to {_rate_text(MAX_RATE)}",
        )
    return DiskSpeed(iops, rate)

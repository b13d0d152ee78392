"""The declared speed of a server's disk, as a command line, a profile and a plan write it."""

import re
from dataclasses import dataclass
from decimal import Decimal

from suites.control_groups.limits import LimitError

MEGABYTE, MEBIBYTE = 10**6, 2**20

_UNITS = {"MB": MEGABYTE, "GB": 10**9, "MiB": MEBIBYTE, "GiB": 2**30}

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
            rate = int(Decimal(found[1]) * _UNITS[found[2]])
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

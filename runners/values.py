"""Argument types for argparse, which report why a text is rejected."""

import argparse
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.installs import recorded_version
from build.version import Version, parse_revision
from history.timestamps import moment_of
from suites.control_groups.declared import DiskSpeed, parse_disk, parse_memory
from suites.keys.levels import MAX_CLIENTS
from suites.slices import LONGEST_BUDGET_MINUTES, LONGEST_SECONDS, MAX_ROUNDS


def version(text: str) -> Version:
    """Parse a version as it was measured, with steps back or not; the path of an install prefix is read."""
    try:
        return recorded_version(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


MAX = 1_000_000
"""The most of anything that can be counted on the command line."""


def revision(text: str) -> Version:
    """Parse a version that may end in steps back, such as `postgres@main~3`, or be an install prefix."""
    try:
        return parse_revision(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def count(text: str, most: int = MAX) -> int:
    """Parse an integer of at least 1 and at most `most`."""
    number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if not 1 <= number <= most:
        raise argparse.ArgumentTypeError(f"must be an integer from 1 to {most}")
    return number


def rounds(text: str) -> int:
    """Parse a number of rounds."""
    return count(text, MAX_ROUNDS)


LAYOUTS_HELP = (
    "link each build N times with its functions in another order, and take the links in turns over the "
    "rounds: verdicts then hold for any order (3 at least, 8 and more for changes of 2 percent)"
)
"""The help of `--layouts`."""


def names(text: str) -> tuple[str, ...]:
    """Parse names that are separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError("must be names, separated by commas")
    return found


def levels(text: str) -> tuple[int, ...]:
    """Parse numbers of clients that are separated by commas, each larger than the one before."""
    found = tuple(count(word.strip(), MAX_CLIENTS) for word in text.split(","))
    if any(fewer >= more for fewer, more in pairwise(found)):
        raise argparse.ArgumentTypeError("every level must have more clients than the one before")
    return found


def date(text: str) -> datetime:
    """Parse a month, a day, or an ISO time."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def memory(text: str) -> int:
    """Parse an amount of memory such as `1G`, into bytes."""
    try:
        return parse_memory(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def disk(text: str) -> DiskSpeed:
    """Parse the speed of a disk such as `2000iops,100MB/s`."""
    try:
        return parse_disk(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def minutes(text: str) -> float:
    """Parse a number of minutes of a budget."""
    return duration(text, "minutes", 0.1, LONGEST_BUDGET_MINUTES)


def duration(text: str, unit: str = "seconds", least: float = 1, most: float = LONGEST_SECONDS) -> float:
    """Parse a number from `least` to `most` of a unit of time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not least <= number <= most:  # also rejects nan
        raise argparse.ArgumentTypeError(f"must be a number of {unit} from {least:g} to {most:g}")
    return number


def history_of(chosen: str | None, home: Home) -> Path | str:
    """Return the path or URL of the history to write to; the folder of a path is created."""
    if chosen and "://" in chosen:
        return chosen
    path = Path(chosen) if chosen else home.history
    path.parent.mkdir(parents=True, exist_ok=True)
    return path

"""Values of the command line, as argparse takes them: each says why it refuses a text."""

import argparse
from datetime import datetime
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.version import Version, parse_version
from history.timestamps import moment_of


def version(text: str) -> Version:
    """Parse a version for argparse, which shows the reason."""
    try:
        return parse_version(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def count(text: str) -> int:
    """A whole number from 1."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return number


def date(text: str) -> datetime:
    """A moment: a month, a day, or an ISO time."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def minutes(text: str) -> float:
    """At least a tenth of one."""
    return duration(text, "minutes", 0.1)


def duration(text: str, unit: str = "seconds", least: float = 1) -> float:
    """At least so many of a unit of time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not least <= number < float("inf"):  # not even nan is
        raise argparse.ArgumentTypeError(f"must be a number of {unit} from {least:g}")
    return number


def history_of(chosen: str | None, home: Home) -> Path | str:
    """The path or URL of the history to store into; the folder of a path is made."""
    if chosen and "://" in chosen:
        return chosen
    path = Path(chosen) if chosen else home.history
    path.parent.mkdir(parents=True, exist_ok=True)
    return path

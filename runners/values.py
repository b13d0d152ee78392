"""Argument types for argparse, which report why a text is rejected."""

import argparse
from datetime import datetime
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.version import Version, parse_revision, parse_version
from history.timestamps import moment_of


def version(text: str) -> Version:
    """Parse a version."""
    try:
        return parse_version(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def revision(text: str) -> Version:
    """Parse a version that may end in steps back, such as `postgres@REL_18_STABLE~3`."""
    try:
        return parse_revision(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def count(text: str) -> int:
    """Parse an integer of at least 1."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be an integer of at least 1")
    return number


def names(text: str) -> tuple[str, ...]:
    """Parse names that are separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError("must be names, separated by commas")
    return found


def date(text: str) -> datetime:
    """Parse a month, a day, or an ISO time."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def minutes(text: str) -> float:
    """Parse a number of minutes of at least 0.1."""
    return duration(text, "minutes", 0.1)


def duration(text: str, unit: str = "seconds", least: float = 1) -> float:
    """Parse a number of at least `least` of a unit of time."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not least <= number < float("inf"):  # also rejects nan
        raise argparse.ArgumentTypeError(f"must be a number of {unit} of at least {least:g}")
    return number


def history_of(chosen: str | None, home: Home) -> Path | str:
    """Return the path or URL of the history to write to; the folder of a path is created."""
    if chosen and "://" in chosen:
        return chosen
    path = Path(chosen) if chosen else home.history
    path.parent.mkdir(parents=True, exist_ok=True)
    return path

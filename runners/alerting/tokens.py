"""Trackers' tokens: where they come from. build.environment keeps them from what is started."""

import os
from pathlib import Path

from build.environment import caller_value
from runners.alerting.tracker import MissingTokenError

STORE = "/etc/credstore"
"""Where systemd looks for credentials; only root may read it."""


def variable(tracker: str) -> str:
    """The environment variable with the token of a tracker, by the name that a plan uses."""
    return f"{tracker.upper()}_TOKEN"


def credential(tracker: str) -> str:
    """What systemd calls a tracker's token (systemd.exec(5), LoadCredential); root keeps it in STORE."""
    return f"tidemark-{tracker}-token"


def required_token(tracker: str) -> str:
    """Its environment variable, else what systemd hands to the unit. Raises MissingTokenError."""
    found = token(variable(tracker), credential(tracker))
    if not found:
        raise MissingTokenError(
            f"{variable(tracker)} is not set, and there is no credential {credential(tracker)}",
            hint=f"set it; on a box, write the token to {STORE}/{credential(tracker)} (docs/hardware.md)",
        )
    return found


def token(name: str, stored: str) -> str | None:
    """The value of an environment variable, else of a systemd credential; None when there is neither."""
    return caller_value(name) or _systemd_credential(stored)


def _systemd_credential(name: str) -> str | None:
    """What systemd hands to a unit; to root, who calls a command by hand, also what the store has."""
    folders = [os.environ.get("CREDENTIALS_DIRECTORY"), STORE]
    for folder in filter(None, folders):
        try:
            found = (Path(folder) / name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return None

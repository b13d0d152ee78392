"""Trackers' tokens: where they come from. build.programs.environment keeps them from what is started."""

import os
from pathlib import Path

from build.programs.environment import caller_value

CREDENTIAL = "tidemark-github-token"
"""What systemd calls GitHub's token (systemd.exec(5), LoadCredential); root keeps it in STORE."""

STORE = "/etc/credstore"
"""Where systemd looks for credentials; only root may read it."""


def token(variable: str, credential: str) -> str | None:
    """The value of an environment variable, else of a systemd credential; None when there is neither."""
    return caller_value(variable) or _systemd_credential(credential)


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

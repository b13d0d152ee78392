"""Trackers' tokens: where they come from. build.programs.environment keeps them from what is started."""

import os
from pathlib import Path

from build.programs.environment import caller_value

CREDENTIAL = "tidemark-github-token"
"""What systemd calls GitHub's token (systemd.exec(5), LoadCredential); root keeps it in /etc/credstore."""


def token(variable: str, credential: str) -> str | None:
    """The value of an environment variable, else of a systemd credential; None when there is neither."""
    return caller_value(variable) or _systemd_credential(credential)


def _systemd_credential(name: str) -> str | None:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    try:
        return (Path(folder) / name).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None

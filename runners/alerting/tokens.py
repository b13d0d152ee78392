"""The tracker's token: from where it comes, and that no server, build or load generator inherits it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GITHUB = "GITHUB_TOKEN"

CREDENTIAL = "tidemark-github-token"
"""What systemd calls it (systemd.exec(5), LoadCredential); root keeps it in /etc/credstore."""

_held: dict[str, str] = {}


@contextmanager
def withheld() -> Iterator[None]:
    """Keep every variable that ends in `_TOKEN` out of the environment of what is started meanwhile.

    What is measured is somebody's commit of today: it has no business with what opens issues, or with what
    GitHub gives a job to sign in with.
    """
    for name in [name for name in os.environ if name.endswith("_TOKEN")]:
        _held[name] = os.environ.pop(name)
    try:
        yield
    finally:
        os.environ.update(_held)
        _held.clear()


def github_token() -> str | None:
    """`$GITHUB_TOKEN`, else what systemd hands to the unit; None when there is neither."""
    told = _held.get(GITHUB) or os.environ.get(GITHUB)
    return told or _credential()


def _credential() -> str | None:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    try:
        return (Path(folder) / CREDENTIAL).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None

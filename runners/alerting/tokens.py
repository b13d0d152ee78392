"""Trackers' tokens: where they come from, and that no server, build or load generator inherits one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CREDENTIAL = "tidemark-github-token"
"""What systemd calls GitHub's token (systemd.exec(5), LoadCredential); root keeps it in /etc/credstore."""

_held: dict[str, str] = {}


@contextmanager
def withheld() -> Iterator[None]:
    """Keep every variable that ends in `_TOKEN` out of the environment of processes started meanwhile.

    What is built and measured is somebody's commit of today: it must not be able to open issues, or to sign
    in as the job that runs it.
    """
    for name in [name for name in os.environ if name.endswith("_TOKEN")]:
        _held[name] = os.environ.pop(name)
    try:
        yield
    finally:
        os.environ.update(_held)
        _held.clear()


def token(variable: str, credential: str) -> str | None:
    """The value of an environment variable, else of a systemd credential; None when there is neither."""
    value = _held.get(variable) or os.environ.get(variable)
    return value or _systemd_credential(credential)


def _systemd_credential(name: str) -> str | None:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    try:
        return (Path(folder) / name).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None

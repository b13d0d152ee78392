"""Which Tidemark this is."""

import subprocess

from build.home import ROOT


def own_version() -> str:
    """Return the commit of this checkout, or `unknown` without git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

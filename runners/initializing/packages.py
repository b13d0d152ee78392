"""The system packages that `./tidemark setup` would install, found as the launcher finds them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from build.home import ROOT
from build.host import why_not

LISTS = ("packages.txt", "packages-profiles.txt", "packages-companions.txt")
"""The lists of `setup`, in `runners/`."""


def missing_packages(folder: Path = ROOT / "runners") -> list[str]:
    """Return the names of the packages whose probes are not present on this machine."""
    return [package for name in LISTS for package, probe in _listed(folder / name) if not _is_present(probe)]


def _listed(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            yield words[0], words[1]


def _is_present(probe: str) -> bool:
    kind, _, name = probe.partition(":")
    if kind == "header":
        headers = Path("/usr/include")
        return (headers / name).exists() or any(headers.glob(f"*/{name}"))
    if kind == "python":
        found = shutil.which("python3")
        words = [found or "python3", "-P", "-c", f"import {name}"]
        return found is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    return program is not None and (kind == "command" or why_not(program) is None)

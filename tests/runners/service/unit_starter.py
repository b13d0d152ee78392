#!/usr/bin/env python3
"""Stands in for systemctl in a root without systemd: starts the night and the report as their units say.

It reads User, Group, Environment, EnvironmentFile, ExecStart, LoadCredential and OnSuccess or OnFailure, and
nothing else: limits and sandboxes of units are systemd's. Units that change the kernel's settings are not
started, because the kernel is that of the machine that tests.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

UNITS, STATE, LOGS = Path("/etc/systemd/system"), Path("/run/systemd/enabled"), Path("/var/log/tidemark")
STARTED = ("tidemark-nightly", "tidemark-report")


def values(unit: str, key: str) -> list[str]:
    lines = (UNITS / unit).read_text().splitlines()
    return [line.partition("=")[2].replace("%%", "%") for line in lines if line.startswith(f"{key}=")]


def start(unit: str) -> int:
    """Run a unit to its end, and then what it leads to; return the exit code of the unit."""
    name = unit.removesuffix(".service")
    if name not in STARTED:
        return 0
    unit = f"{name}.service"
    (user,), (group,), (command,) = (values(unit, key) for key in ("User", "Group", "ExecStart"))
    lines = [word for line in values(unit, "Environment") for word in shlex.split(line)]
    for file in values(unit, "EnvironmentFile"):
        lines += [line for line in Path(file).read_text().splitlines() if not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines)
    kept = {key: os.environ[key] for key in ("PATH", "GITHUB_API_URL") if key in os.environ}
    LOGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, (LOGS / f"{name}.log").open("w") as log:
        for credential in values(unit, "LoadCredential"):
            secret = Path("/etc/credstore") / credential
            if secret.is_file():
                (Path(folder) / credential).write_text(secret.read_text())
        subprocess.run(["chown", "-R", user, folder], check=True)
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups", "--"]
        environment = {**kept, **variables, "CREDENTIALS_DIRECTORY": folder}
        code = subprocess.run(
            [*as_user, *shlex.split(command)], env=environment, cwd="/", stdout=log, stderr=log, check=False
        ).returncode
    for following in values(unit, "OnFailure" if code else "OnSuccess"):
        start(following)
    return code


def main(words: Sequence[str]) -> int:
    verb, *units = [word for word in words if not word.startswith("--")]
    STATE.mkdir(parents=True, exist_ok=True)
    if verb == "enable":
        for unit in units:
            (STATE / unit).touch()
    elif verb in ("is-enabled", "is-active"):
        there = (STATE / units[0]).exists()
        print({"is-enabled": "enabled", "is-active": "active"}[verb] if there else "inactive")
    elif verb == "start":
        return max(map(start, units))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""GitHub's runner on a box: the lines of its `.env` that name our hooks, and how it is registered."""

import shlex
from pathlib import Path, PurePosixPath

from runners.installing.escaping import InstallError
from runners.installing.files import HOOK_COMPLETED, HOOK_STARTED, hook
from runners.installing.machine import TargetMachine
from runners.installing.site import Site

SCRIPTS = ("config.sh", "run.sh")
"""By which its folder is known."""


def require_agent(machine: TargetMachine, folder: Path) -> None:
    """Raise InstallError when that is not a folder of GitHub's runner."""
    missing = [name for name in SCRIPTS if not machine.path(folder / name).is_file()]
    if missing:
        raise InstallError(
            f"this is no folder of GitHub's runner: it has no {' and no '.join(missing)}",
            where=str(machine.path(folder)),
            hint="unpack actions-runner-linux-x64 there first, and name its folder with --actions-runner",
        )


def environment_file(folder: Path) -> PurePosixPath:
    """Where the runner reads variables of its jobs: `NAME=VALUE` lines, without quotes."""
    return PurePosixPath(folder / ".env")


def wanted_lines(site: Site) -> tuple[str, ...]:
    """What the jobs of a box are told."""
    variables = {
        "ACTIONS_RUNNER_HOOK_JOB_STARTED": str(hook(HOOK_STARTED)),
        "ACTIONS_RUNNER_HOOK_JOB_COMPLETED": str(hook(HOOK_COMPLETED)),
        "TIDEMARK_HOME": str(site.home),
        "TIDEMARK_BOX": site.box,
    }
    return tuple(f"{name}={value}" for name, value in variables.items())


def conflicts(text: str, ours: tuple[str, ...], before: tuple[str, ...]) -> list[str]:
    """Lines that a person has written for one of our variables: neither ours of now nor of before."""
    names = [line.partition("=")[0] for line in ours]
    return [
        line
        for line in text.splitlines()
        if line.partition("=")[0] in names and line not in ours and line not in before
    ]


def merged(text: str, ours: tuple[str, ...], before: tuple[str, ...]) -> str:
    """The environment with our lines once, at its end, and all others as they were.

    Lines for one of our variables go, whoever wrote them; ask `conflicts` first.
    """
    names = [line.partition("=")[0] for line in ours]
    kept = [line for line in text.splitlines() if line not in before and line.partition("=")[0] not in names]
    return "".join(f"{line}\n" for line in (*kept, *ours))


def without(text: str, ours: tuple[str, ...]) -> str:
    """The environment without our lines."""
    return "".join(f"{line}\n" for line in text.splitlines() if line not in ours)


def registration(site: Site) -> list[str]:
    """What a person types to register the runner. The token is asked for, and stands in no command line."""
    folder = shlex.quote(str(site.agent)) if site.agent else "ACTIONS_RUNNER_FOLDER"
    url = f"https://github.com/{site.repository or 'OWNER/NAME'}"
    words = f"./config.sh --url {url} --name {site.box} --labels {site.label}"
    return [
        f"cd {folder}",
        f"sudo -u {site.user} {words}    # asks for the token of the registration",
        f"sudo ./svc.sh install {site.user} && sudo ./svc.sh start",
    ]

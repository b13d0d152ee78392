"""GitHub's runner on a box: the lines of its `.env` that name our hooks, and its registration."""

from pathlib import Path, PurePosixPath

from build.errors import shell_line
from runners.installing.escaping import InstallError
from runners.installing.files import HOOK_COMPLETED, HOOK_STARTED, hook
from runners.installing.machine import TargetMachine
from runners.installing.site import Site

SCRIPTS = ("config.sh", "run.sh")
"""The files that identify its folder."""

ENVIRONMENT = "venv"
"""The folder in the home with the Python environment of jobs."""


def require_agent(machine: TargetMachine, folder: Path) -> None:
    """Raise InstallError when a folder does not hold GitHub's runner."""
    missing = [name for name in SCRIPTS if not machine.path(folder / name).is_file()]
    if missing:
        raise InstallError(
            f"this is not the folder of GitHub's runner: it has no {' and no '.join(missing)}",
            where=str(machine.path(folder)),
            hint="unpack actions-runner-linux-x64 there, or name its folder with --actions-runner",
        )


def environment_file(folder: Path) -> PurePosixPath:
    """Return the file with the variables of the runner's jobs: `NAME=VALUE` lines without quotes."""
    return PurePosixPath(folder / ".env")


def wanted_lines(site: Site) -> tuple[str, ...]:
    """Return our lines of the environment of a box's jobs."""
    variables = {
        "ACTIONS_RUNNER_HOOK_JOB_STARTED": str(hook(HOOK_STARTED)),
        "ACTIONS_RUNNER_HOOK_JOB_COMPLETED": str(hook(HOOK_COMPLETED)),
        "TIDEMARK_HOME": str(site.home),
        "TIDEMARK_BOX": site.box,
        # Outside of the checkout of jobs, from which each job deletes what git does not track.
        "TIDEMARK_VENV": str(site.home / ENVIRONMENT),
    }
    return tuple(f"{name}={value}" for name, value in variables.items())


def conflicts(text: str, ours: tuple[str, ...], before: tuple[str, ...]) -> list[str]:
    """Return the lines that set one of our variables but were not written by us, now or before."""
    names = [line.partition("=")[0] for line in ours]
    return [
        line
        for line in text.splitlines()
        if line.partition("=")[0] in names and line not in ours and line not in before
    ]


def merged(text: str, ours: tuple[str, ...], before: tuple[str, ...]) -> str:
    """Return the environment with our lines once, at its end, and all other lines unchanged.

    Lines that set one of our variables are removed, whoever wrote them; check `conflicts` first.
    """
    names = [line.partition("=")[0] for line in ours]
    kept = [line for line in text.splitlines() if line not in before and line.partition("=")[0] not in names]
    return "".join(f"{line}\n" for line in (*kept, *ours))


def without(text: str, ours: tuple[str, ...]) -> str:
    """Return the environment without our lines."""
    return "".join(f"{line}\n" for line in text.splitlines() if line not in ours)


def registration(site: Site) -> list[str]:
    """Return the commands that register the runner; the token is typed at a prompt."""
    folder = shell_line(site.agent) if site.agent else "ACTIONS_RUNNER_FOLDER"
    url = f"https://github.com/{site.repository or 'OWNER/NAME'}"
    command = shell_line("./config.sh", "--url", url, "--name", site.box, "--labels", site.label)
    return [
        f"cd {folder}",
        f"sudo -u {shell_line(site.user)} {command}    # asks for the registration token",
        f"sudo ./svc.sh install {site.user} && sudo ./svc.sh start",
    ]

"""What `runner install` has installed on this machine, read from its files."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from build.home import ROOT
from runners.installing import record
from runners.installing.escaping import InstallError
from runners.installing.files import NIGHT, UNITS
from runners.installing.machine import TargetMachine

PLAN = ROOT / "runners/nightly.toml"
"""The plan of the checkout, by which workflows measure."""


@dataclass(frozen=True)
class Installed:
    """The units of a box that run this checkout."""

    variables: dict[str, str] = field(default_factory=dict)
    """Their environment: home, user and box."""

    plan: Path | None = None
    words: tuple[str, ...] = ()
    """The command that installs them again, which renews what differs; empty if none are installed."""


def installed_units(machine: TargetMachine, checkout: Path = ROOT) -> Installed:
    """Return the units that run a checkout; without any if there are none, or if they run another one.

    Raises InstallError for files that cannot be read.
    """
    service, timer = (machine.read(UNITS / f"{NIGHT}.{kind}") for kind in ("service", "timer"))
    if service is None or timer is None:
        return Installed()
    command = _words(service, "ExecStart")
    if Path(command[0]).parent.resolve() != checkout:
        return Installed()
    variables = dict(pair.split("=", 1) for pair in _words(service, "Environment") if "=" in pair)
    try:
        plan, box = (command[command.index(option) + 1] for option in ("--plan", "--box"))
        words = ["runner", "install", "--plan", plan, "--box", box, "--home", variables["TIDEMARK_HOME"]]
        words += ["--user", variables["TIDEMARK_USER"], "--at", _words(timer, "OnCalendar")[1][:5]]
    except (ValueError, KeyError, IndexError) as error:
        raise InstallError(
            "the unit of the night is not as Tidemark wrote it",
            where=str(machine.path(UNITS / f"{NIGHT}.service")),
            hint="sudo ./tidemark runner install --force writes it anew; then update",
        ) from error
    if agent := record.load(machine).agent_file:
        words += ["--actions-runner", str(Path(agent).parent)]
    return Installed(variables, Path(plan), tuple(words))


def plan_in_use(given: str | None, machine: TargetMachine, checkout: Path = ROOT) -> Path:
    """Return the plan that `--plan` gave, else that of the units that run the checkout, else the checkout's.

    The job of a workflow has a checkout of its own, and so the plan that is committed. Raises InstallError.
    """
    return Path(given) if given is not None else installed_units(machine, checkout).plan or PLAN


def _words(text: str, key: str) -> list[str]:
    """Return the words of a key of a unit file, unescaped (systemd.syntax(7))."""
    line = next((line for line in text.splitlines() if line.startswith(f"{key}=")), f"{key}=")
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line.partition("=")[2])] or [
        ""
    ]

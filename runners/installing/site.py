"""The settings of an installation: a box of a plan, with the folders, user and time it is installed with."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from build.accounts import SERVER_USER, blocked_folder
from build.environment import NO_HOME
from build.errors import shell_line
from build.home import ROOT, SHARED_HOME
from runners.installing.arguments import AT
from runners.installing.escaping import InstallError, require_printable, require_startable
from runners.nightly.plan import find_box, load_plan

USER_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
"""The user names that useradd(8) accepts on all distributions."""

REPORTER = "-report"
"""What the name of the user who reports has behind that of the user who measures."""

TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")

PROTECTED = (Path("/home"), Path("/root"), Path("/run/user"))
"""The folders that ProtectHome of a unit hides."""

TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
"""The folders that PrivateTmp of a unit hides."""


@dataclass(frozen=True)
class Site:
    """A box of a plan on this machine. Folders are absolute and hold no control characters."""

    box: str
    label: str
    budget_minutes: float
    repository: str | None
    """`owner/name` of the issue tracker; None when the plan has none."""

    plan: Path
    checkout: Path
    home: Path
    user: str
    """The user who runs nights, compiles and servers; its group has the same name."""

    at: str = AT
    """When a night begins, as `03:17` in UTC."""

    agent: Path | None = None
    """The folder of GitHub's runner; None where there is none."""

    route_credentials: tuple[str, ...] = ()
    """The systemd credentials with the URLs of the plan's routes."""

    tracker: str = "github"
    """Which issue tracker the plan names."""

    @property
    def program(self) -> Path:
        """The path of the launcher."""
        return self.checkout / "tidemark"

    @property
    def reporter(self) -> str:
        """The user who reports, of the same group: what is measured cannot read what it reads."""
        return f"{self.user}{REPORTER}"

    @property
    def report_environment(self) -> dict[str, str]:
        """The environment of what reports: programs find no settings that the other user may write."""
        return {**self.environment, "HOME": NO_HOME}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of what measures."""
        return {
            "TIDEMARK_HOME": str(self.home),
            "TIDEMARK_USER": self.user,
            "TIDEMARK_BOX": self.box,
            "HOME": str(self.home),
        }

    @property
    def documents(self) -> str:
        """The checkout as a path in a file:// URL."""
        return quote(str(self.checkout))

    @property
    def protect_home(self) -> str:
        """The strictest ProtectHome with which the box can still read its folders."""
        ours = (self.checkout, self.home, self.plan)
        return "read-only" if any(our.is_relative_to(top) for our in ours for top in PROTECTED) else "yes"


def site(
    plan_path: Path,
    box: str | None,
    hostname: str,
    *,
    home: Path | None = None,
    user: str | None = None,
    at: str = AT,
    agent: Path | None = None,
    checkout: Path = ROOT,
) -> Site:
    """Return the checked settings of an installation. Raises PlanError and InstallError.

    The home is the one given, else `$TIDEMARK_HOME`, else the shared one.
    """
    plan = load_plan(plan_path)
    name = find_box(plan, box, hostname)
    chosen = home or Path(os.environ.get("TIDEMARK_HOME") or SHARED_HOME)
    folders = {
        "the plan": plan_path.absolute(),
        "the checkout": checkout,
        "the output folder": Path(os.path.abspath(chosen)),  # noqa: PTH100 # not resolve(): it may not be there
    }
    for what, folder in folders.items():
        require_printable(str(folder), what)
    if agent is not None:
        require_printable(str(agent), "the folder of GitHub's runner")
    require_startable(str(checkout))
    plan_box = plan.boxes[name]
    plan_file, checkout, home = folders.values()
    return Site(
        name,
        plan_box.label,
        plan_box.budget_minutes,
        plan.alerts.repository,
        plan_file,
        checkout,
        home,
        _user(user or os.environ.get("TIDEMARK_USER") or SERVER_USER),
        _time(at),
        None if agent is None else agent.absolute(),
        tuple(route.credential for route in plan.notify if route.needs_credential),
        plan.alerts.tracker,
    )


def require_reachable(found: Site) -> None:
    """Raise InstallError when the user cannot reach what it needs, or others could change what root runs."""
    for path in (found.checkout, found.plan, found.home):
        if any(path.is_relative_to(top) for top in TEMPORARY):
            raise InstallError(
                "units have private temporary folders and cannot see this one",
                where=str(path),
                hint="use a permanent folder, such as /opt/tidemark or /var/lib/tidemark",
            )
    for what, path in (("the checkout", found.checkout), ("the plan", found.plan.parent)):
        blocked = blocked_folder(path)
        if blocked is not None:
            raise InstallError(
                f"the user {found.user} cannot reach {what}",
                where=str(blocked),
                hint="move it where every user can reach it, such as /opt/tidemark, or "
                + shell_line("chmod", "o+x", blocked),
            )
    _require_interpreter(found)
    blocked = blocked_folder(found.home.parent)
    if blocked is not None:
        raise InstallError(
            f"the user {found.user} cannot reach the output folder",
            where=str(blocked),
            hint=f"name another one with --home, or {shell_line('chmod', 'o+x', blocked)}",
        )
    for folder in (found.checkout, found.program, found.checkout / "runners", *found.checkout.parents):
        status = folder.stat()
        shared = bool(status.st_mode & 0o022) and not status.st_mode & 0o1000
        if status.st_uid != 0 or shared:
            raise InstallError(
                "root will run this checkout, but users other than root can change it",
                where=str(folder),
                hint=f"{shell_line('chown', '-R', 'root:root', found.checkout)} && "
                f"{shell_line('chmod', '-R', 'go-w', found.checkout)}, "
                "or clone it to /opt/tidemark as root",
            )


def _require_interpreter(found: Site) -> None:
    """Raise InstallError when the user cannot reach the Python of the environment, as below /root."""
    python = found.checkout / ".venv/bin/python"
    if not python.exists():
        raise InstallError(
            "the checkout has no Python environment", where=str(python), hint="run ./tidemark setup as root"
        )
    blocked = blocked_folder(python.resolve().parent)
    if blocked is not None:
        raise InstallError(
            f"the user {found.user} cannot reach the Python of the checkout",
            where=f"{python} leads to {python.resolve()}, behind {blocked}",
            hint="create the environment with the system's Python: rm -r .venv, then ./tidemark setup",
        )


def _user(name: str) -> str:
    if not USER_NAME.fullmatch(f"{name}{REPORTER}") or name == "root":
        raise InstallError(
            f"{name!r} cannot be the user of the service",
            where="--user or $TIDEMARK_USER",
            hint="use an unprivileged user: lower-case letters, digits, - and _, at most 25",
        )
    return name


def _time(text: str) -> str:
    if not TIME.fullmatch(text):
        raise InstallError(
            f"{text!r} is not a time of day", where="--at", hint=f"use HH:MM in UTC, such as {AT}"
        )
    return text

"""What a box is set up with: from the plan and the folders to everything that the files say."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from build.home import ROOT, SHARED_HOME, blocked_folder
from runners.installing.escaping import InstallError, require_printable, require_startable
from runners.nightly.plan import find_box, load_plan
from suites.processes import SERVER_USER

USER_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
"""What useradd(8) takes everywhere."""

TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")

AT = "03:17"
"""UTC: two hours after GitHub's schedule, which may be late. A night with nothing to do ends at once."""

PROTECTED = (Path("/home"), Path("/root"), Path("/run/user"))
"""What ProtectHome of a unit hides."""

TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
"""What PrivateTmp of a unit hides."""


@dataclass(frozen=True)
class Site:
    """A box of a plan on this machine. Folders are absolute and hold no control characters."""

    box: str
    label: str
    budget_minutes: float
    repository: str | None
    """`owner/name` of the issues; None when the plan has none."""

    plan: Path
    checkout: Path
    home: Path
    user: str
    """Runs nights and servers; its group has the same name."""

    at: str = AT
    """When a night begins, as `03:17` in UTC."""

    agent: Path | None = None
    """The folder of GitHub's runner; None where there is none."""

    @property
    def program(self) -> Path:
        """The launcher."""
        return self.checkout / "tidemark"

    @property
    def environment(self) -> dict[str, str]:
        """What every unit and hook is told. git must not mind that the checkout belongs to root."""
        return {
            "TIDEMARK_HOME": str(self.home),
            "TIDEMARK_USER": self.user,
            "TIDEMARK_BOX": self.box,
            "HOME": str(self.home),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": str(self.checkout),
        }

    @property
    def documents(self) -> str:
        """The checkout in a file:// address."""
        return quote(str(self.checkout))

    @property
    def protect_home(self) -> str:
        """As much of people's folders as the box can do without."""
        ours = (self.checkout, self.home, self.plan)
        return "read-only" if any(each.is_relative_to(top) for each in ours for top in PROTECTED) else "yes"


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
    """Everything that is chosen, checked. Raises PlanError and InstallError.

    The home is the one given, else `$TIDEMARK_HOME`, else the one all users can reach.
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
    require_startable(str(checkout), "the checkout")
    its = plan.boxes[name]
    plan_file, checkout, home = folders.values()
    return Site(
        name,
        its.label,
        its.budget_minutes,
        plan.alerts.repository,
        plan_file,
        checkout,
        home,
        _user(user or os.environ.get("TIDEMARK_USER") or SERVER_USER),
        _time(at),
        None if agent is None else agent.absolute(),
    )


def require_reachable(found: Site) -> None:
    """Raise InstallError when the user could not reach what it needs, or could write what root will run."""
    for path in (found.checkout, found.plan, found.home):
        if any(path.is_relative_to(top) for top in TEMPORARY):
            raise InstallError(
                "units have temporary folders of their own, and do not see this one",
                where=str(path),
                hint="keep it somewhere that lasts, such as /opt/tidemark or /var/lib/tidemark",
            )
    for what, path in (("the checkout", found.checkout), ("the plan", found.plan.parent)):
        blocked = blocked_folder(path)
        if blocked is not None:
            raise InstallError(
                f"the user {found.user} cannot reach {what}",
                where=str(blocked),
                hint=f"keep it where every user may go, such as /opt/tidemark, or chmod o+x {blocked}",
            )
    _require_interpreter(found)
    blocked = blocked_folder(found.home.parent)
    if blocked is not None:
        raise InstallError(
            f"the user {found.user} cannot reach the output folder",
            where=str(blocked),
            hint=f"name another one with --home, or chmod o+x {blocked}",
        )
    for folder in (found.checkout, found.program, found.checkout / "runners", *found.checkout.parents):
        status = folder.stat()
        shared = bool(status.st_mode & 0o022) and not status.st_mode & 0o1000
        if status.st_uid != 0 or shared:
            raise InstallError(
                "root is to run this checkout, and others than root may change it",
                where=str(folder),
                hint=f"chown -R root:root '{found.checkout}' && chmod -R go-w '{found.checkout}', "
                "or clone it to /opt/tidemark as root",
            )


def _require_interpreter(found: Site) -> None:
    """An environment that root made may lead to a Python in root's own folder."""
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
            hint="make the environment with the system's Python: rm -r .venv, then ./tidemark setup",
        )


def _user(name: str) -> str:
    if not USER_NAME.fullmatch(name) or name == "root":
        raise InstallError(
            f"{name!r} cannot be the user of the service",
            where="--user or $TIDEMARK_USER",
            hint="an unprivileged one: small letters, digits, - and _, at most 32",
        )
    return name


def _time(text: str) -> str:
    if not TIME.fullmatch(text):
        raise InstallError(f"{text!r} is no time of the day", where="--at", hint=f"as in {AT}, in UTC")
    return text

"""`./tidemark service install`: users, folders, an environment file, and four units that begin nights.

What a person changes about a unit belongs into a drop-in (`systemctl edit`), which stays when it is written
anew. Nothing is recorded: what is there is compared with what is wanted.
"""

import argparse
import os
import platform
import pwd
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from build.accounts import SERVER_USER, blocked_folder
from build.environment import NO_HOME
from build.errors import TidemarkError, shell_line
from build.files import make_folder, write_atomically
from build.home import ROOT, SHARED_HOME
from runners.alerting.tokens import credential
from runners.alerting.tracker_registry import TRACKERS
from runners.nightly.heartbeat import STALE_MINUTES
from runners.nightly.plan import find_box, load_plan
from runners.service.arguments import AT
from runners.service.installed import CHECKOUT, ENVIRONMENT, PLAN

TEMPLATES = ROOT / "runners/systemd"
UNITS = Path("/etc/systemd/system")
SUDOERS = Path("/etc/sudoers.d/tidemark")

NIGHT, REPORT, TUNE = "tidemark-nightly.service", "tidemark-report.service", "tidemark-tune.service"
TIMER = "tidemark-nightly.timer"
UNIT_NAMES = (NIGHT, TIMER, REPORT, TUNE)

FORMER = ("tidemark-watch.timer", "tidemark-watch.service", "tidemark-restore.service")
"""What earlier versions installed besides."""

TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
PLAIN = re.compile(r"/[A-Za-z0-9_@+=:,./-]*")
"""The paths that unit files and sudo take as they are."""

REPORTER = f"{SERVER_USER}-report"
"""The user who reports, of the group of who measures: what is measured cannot read what it reads."""

FOLDER_MODE = 0o775
"""The mode of the home: its group are who measures and who reports."""

REPORTED = ("backups", "summaries", "spool", "site")
"""The folders in it that both write."""

TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
"""The folders that PrivateTmp of a unit hides."""

NO_LOGIN = ("nologin", "false")
PROGRAM_SECONDS = 120.0


class InstallError(TidemarkError):
    """A box cannot be installed as requested."""


@dataclass(frozen=True)
class Site:
    """A box of a plan on this machine."""

    box: str
    home: Path
    at: str = AT
    """When a night begins, as `03:17` in UTC."""

    credentials: tuple[str, ...] = ()
    """The systemd credentials that the report may read."""

    checkout: Path = ROOT

    def __post_init__(self) -> None:
        """Raise InstallError for what units cannot be told."""
        for what, path in (("the checkout", self.checkout), ("the output folder", self.home)):
            if not PLAIN.fullmatch(str(path)):
                raise InstallError(
                    f"{what} has a character in its path that units do not take",
                    where=repr(str(path)),
                    hint="use a folder of letters and digits, such as /opt/tidemark or /var/lib/tidemark",
                )
        if not TIME.fullmatch(self.at):
            raise InstallError(
                f"{self.at!r} is not a time of day", where="--at", hint=f"use HH:MM in UTC, such as {AT}"
            )


def files(site: Site) -> dict[Path, str]:
    """Return the content of every file of a box, in the order in which they are written."""
    values = {
        "user": SERVER_USER,
        "reporter": REPORTER,
        "checkout": str(site.checkout),
        "home": str(site.home),
        "at": site.at,
        "hang_minutes": f"{STALE_MINUTES:.0f}",
        "credentials": "\n".join(f"LoadCredential={name}" for name in site.credentials),
    }
    variables = {
        "TIDEMARK_HOME": str(site.home),
        "TIDEMARK_USER": SERVER_USER,
        "TIDEMARK_BOX": site.box,
        CHECKOUT: str(site.checkout),
    }
    written = "# Written by ./tidemark service install: what the units of this box set.\n"
    found = {ENVIRONMENT: written + "".join(f"{name}={value}\n" for name, value in variables.items())}
    found |= {UNITS / name: _filled(name, values) for name in UNIT_NAMES}
    return found | {SUDOERS: _filled("sudoers", values)}


class _Text(Template):
    delimiter = "@"


def _filled(name: str, values: Mapping[str, str]) -> str:
    return _Text((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def install(arguments: argparse.Namespace) -> int:
    """Set up this machine as a box, or say that there is nothing to do; return 0. Raises InstallError."""
    plan = load_plan(PLAN)
    box = find_box(plan, arguments.box, platform.node())
    routes = (route.credential for route in plan.notify if route.needs_credential)
    home = Path(arguments.home or os.environ.get("TIDEMARK_HOME") or SHARED_HOME).absolute()
    site = Site(box, home, arguments.at, (*map(credential, TRACKERS), *routes))
    if not Path("/run/systemd/system").is_dir():
        raise InstallError(
            "systemd is not the init of this machine",
            where="/run/systemd/system is missing",
            hint="docs/hardware.md has crontab lines",
        )
    if os.geteuid() != 0:
        raise InstallError("setting up this machine needs root", hint="use sudo ./tidemark service install")
    require_reachable(site)
    require_accounts(home)
    require_own(home)
    done = [*_accounts(home), *_home(home), *_files(site), *_services()]
    print("\n".join(done) if done else "nothing to do")
    return 0


def require_reachable(site: Site) -> None:
    """Raise InstallError when the user cannot reach what it needs, or others could change what root runs."""
    for path in (site.checkout, site.home):
        if any(path.is_relative_to(top) for top in TEMPORARY):
            raise InstallError(
                "units have private temporary folders and cannot see this one",
                where=str(path),
                hint="use a permanent folder, such as /opt/tidemark or /var/lib/tidemark",
            )
    python = site.checkout / ".venv/bin/python"
    if not python.exists():
        raise InstallError(
            "the checkout has no Python environment", where=str(python), hint="run ./tidemark setup as root"
        )
    reached = {
        "the checkout": (site.checkout, "move it where every user can reach it, such as /opt/tidemark"),
        "the Python of the checkout": (
            python.resolve().parent,
            "create the environment with the system's Python: rm -r .venv, then ./tidemark setup",
        ),
        "the plan": (PLAN.parent, shell_line("chmod", "o+x", PLAN.parent)),
        "the output folder": (site.home.parent, "name another one with --home"),
    }
    for what, (folder, hint) in reached.items():
        blocked = blocked_folder(folder)
        if blocked is not None:
            raise InstallError(f"the user {SERVER_USER} cannot reach {what}", where=str(blocked), hint=hint)
    folders = (site.checkout, site.checkout / "tidemark", site.checkout / "runners", *site.checkout.parents)
    for folder in folders:
        status = folder.stat()
        shared = bool(status.st_mode & 0o022) and not status.st_mode & 0o1000
        if status.st_uid != 0 or shared:
            raise InstallError(
                "root will run this checkout, but users other than root can change it",
                where=str(folder),
                hint=f"{shell_line('chown', '-R', 'root:root', site.checkout)} && "
                f"{shell_line('chmod', '-R', 'go-w', site.checkout)}, or clone it to /opt/tidemark as root",
            )


def require_accounts(home: Path) -> None:
    """Raise InstallError when a user of the service belongs to a person, or is root."""
    for name in (SERVER_USER, REPORTER):
        found = account_of(name)
        if found is not None and (found.pw_uid == 0 or not found.pw_shell.endswith(NO_LOGIN)):
            raise InstallError(
                f"the user {name} exists already and may log in: it belongs to somebody",
                where=f"home {found.pw_dir}",
                hint=f"remove its shell, if it does not: usermod -s /usr/sbin/nologin {name}",
            )


def require_own(home: Path) -> None:
    """Raise InstallError when a home that is there is not that of the service."""
    if home.exists() and not home.is_dir():
        raise InstallError("the output folder is a file", where=str(home), hint="use another with --home")
    if home.is_symlink() and home.lstat().st_uid != 0:
        raise InstallError("the output folder is a link of another user", where=str(home))
    owners = {account.pw_uid for name in (SERVER_USER, REPORTER) if (account := account_of(name))}
    # What check --fix saves there belongs to root.
    entries = home.iterdir() if home.is_dir() else ()
    foreign = [path for path in entries if path.lstat().st_uid not in owners and path.name != "fitness.json"]
    if foreign:
        raise InstallError(
            f"{len(foreign)} entries of the output folder do not belong to {SERVER_USER}, who runs nights",
            where=str(foreign[0]),
            hint=f"if they are all Tidemark's: {shell_line('chown', '-R', f'{SERVER_USER}:', home)}",
        )


def account_of(name: str) -> pwd.struct_passwd | None:
    """Return a user account; None without one."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _accounts(home: Path) -> list[str]:
    groups = {SERVER_USER: ["--user-group"], REPORTER: ["--no-user-group", "--gid", SERVER_USER]}
    homes = {SERVER_USER: str(home), REPORTER: NO_HOME}
    done = []
    for name, group in groups.items():
        if account_of(name) is None:
            command = ["useradd", "--system", *group, "--no-create-home", "--home-dir", homes[name]]
            done.append(_run([*command, "--shell", "/usr/sbin/nologin", name]))
    return done


def _home(home: Path) -> list[str]:
    account = pwd.getpwnam(SERVER_USER)
    done = []
    if not home.is_dir():
        make_folder(home)
        done.append(f"create {home}")
    status = home.stat()
    if (status.st_uid, status.st_mode & 0o7777) != (account.pw_uid, FOLDER_MODE):
        os.chown(home, account.pw_uid, account.pw_gid)
        home.chmod(FOLDER_MODE)
        done.append(f"give {home} to {SERVER_USER}, mode {FOLDER_MODE:o}")
    shared = [str(home / name) for name in REPORTED if (home / name).is_dir()]
    if any(not Path(folder).stat().st_mode & 0o020 for folder in shared):
        # As the user who owns them: root would follow the links of others.
        become = ["setpriv", f"--reuid={SERVER_USER}", f"--regid={SERVER_USER}", "--clear-groups"]
        done.append(_run([*become, "chmod", "-R", "g+w", *shared]))
    return done


def _files(site: Site) -> list[str]:
    done = []
    for path, text in files(site).items():
        if path == SUDOERS and not path.parent.is_dir():
            continue  # there is no sudo, which only jobs of GitHub's runner need
        if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
            make_folder(path.parent)
            write_atomically(path, text)
            done.append(f"write {path}")
        if path == SUDOERS:
            path.chmod(0o440)
    for name in FORMER:
        if (UNITS / name).exists():
            _run(["systemctl", "disable", "--now", name])
            (UNITS / name).unlink()
            done.append(f"remove {UNITS / name}")
    if any(str(UNITS) in line for line in done):
        done.append(_run(["systemctl", "daemon-reload"]))
    return done


def _services() -> list[str]:
    done = []
    for unit, action in ((TIMER, ("enable", "--now")), (TUNE, ("enable",))):
        if not _is(unit, "enabled") or (unit == TIMER and not _is(unit, "active")):
            done.append(_run(["systemctl", *action, unit]))
    return done


def _is(unit: str, state: str) -> bool:
    done = subprocess.run(
        ["systemctl", f"is-{state}", unit],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    return done.stdout.strip() == state


def _run(command: Sequence[str]) -> str:
    """Run a command, and return it. Raises InstallError with what it said."""
    line = shell_line(*command)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PROGRAM_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{command[0]} could not be run: {error}", where=line) from None
    if done.returncode != 0:
        raise InstallError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}", where=line)
    return line

"""The files of a box: unit files, job hooks, sudo rules. The templates are in runners/systemd/."""

import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from string import Template

from build.home import ROOT
from runners.alerting.tokens import credential
from runners.alerting.tracker_registry import TRACKERS
from runners.installing.escaping import rest_of_line, word
from runners.installing.site import Site
from runners.nightly.heartbeat import STALE_MINUTES

TEMPLATES = ROOT / "runners/systemd"

UNITS = PurePosixPath("/etc/systemd/system")
HOOKS = PurePosixPath("/usr/local/lib/tidemark")
SUDOERS = PurePosixPath("/etc/sudoers.d/tidemark")

SYSTEMCTL = "/usr/bin/systemctl"
"""The absolute path that sudo compares."""

NIGHT, TUNE, RESTORE = "tidemark-nightly", "tidemark-tune.service", "tidemark-restore.service"
REPORT = "tidemark-report.service"

UNIT_NAMES = (
    f"{NIGHT}.service",
    f"{NIGHT}.timer",
    REPORT,
    TUNE,
    RESTORE,
)

ENABLED = (f"{NIGHT}.timer", TUNE)
"""The units that are enabled."""

OVERTIME_HOURS = 15.0
"""The hours after the budget of its box in which a night has to end: no session takes longer."""

STOP_SECONDS = 300
"""The time for servers to end and their data to be deleted, after which the rest is killed."""

REPORT_SECONDS = 7200
"""For a report an hour, after the hour that it may wait for the machine."""

TUNE_SECONDS = 900
TUNE_WAIT_SECONDS = 300
"""How long what makes the machine fit waits for a report to end."""

OOM_SCORE = 300


@dataclass(frozen=True)
class File:
    """A file to install, owned by root."""

    path: PurePosixPath
    """The path on the machine, independent of --root."""

    text: str
    mode: int = 0o644


class _Text(Template):
    delimiter = "@"


HARDENING = """NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=@{protect_home}
ReadWritePaths=@{home}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service"""
"""For units that do not measure. Without MemoryDenyWriteExecute, because libffi in Python needs such
memory."""


def files(site: Site) -> list[File]:
    """Return every file of a box, in the order in which they are written."""
    values = _values(site)
    installed = [File(UNITS / name, _filled(name, values)) for name in UNIT_NAMES]
    if site.agent is not None:
        installed += [
            File(HOOKS / name, _filled(name, values), 0o755) for name in (HOOK_STARTED, HOOK_COMPLETED)
        ]
        installed.append(File(SUDOERS, _filled("sudoers", values), 0o440))
    return installed


HOOK_STARTED, HOOK_COMPLETED = "job-started.sh", "job-completed.sh"
"""GitHub's runner requires this suffix of hooks."""


def runtime_seconds(budget_minutes: float) -> int:
    """Return the seconds after which systemd ends a night."""
    return round(60 * budget_minutes + 3600 * OVERTIME_HOURS)


def _filled(name: str, values: dict[str, str]) -> str:
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return _Text(text).substitute(values)


def _values(site: Site) -> dict[str, str]:
    protect = {"protect_home": site.protect_home, "home": word(str(site.home))}
    environment = site.environment
    credentials = (*map(credential, TRACKERS), *site.route_credentials)
    return {
        **protect,
        "box": site.box,
        "user": site.user,
        "group": site.user,
        "reporter": site.reporter,
        "at": site.at,
        "documents": rest_of_line(site.documents),
        "environment": _assignments(environment),
        "report_environment": _assignments(site.report_environment),
        "tidemark": word(str(site.program)),
        "plan": word(str(site.plan), is_argument=True),
        "trimmed": word(str(site.home), is_argument=True),
        "credentials": "\n".join(f"LoadCredential={name}" for name in credentials),
        "stop_seconds": str(STOP_SECONDS),
        "runtime_seconds": str(runtime_seconds(site.budget_minutes)),
        "report_seconds": str(REPORT_SECONDS),
        "hang_minutes": f"{STALE_MINUTES:.0f}",
        "tune_seconds": str(TUNE_SECONDS),
        "tune_wait_seconds": str(TUNE_WAIT_SECONDS),
        "oom_score": str(OOM_SCORE),
        "hardening": HARDENING.replace("@{protect_home}", protect["protect_home"]).replace(
            "@{home}", protect["home"]
        ),
        "shell_environment": shlex.join(f"{name}={value}" for name, value in environment.items()),
        "shell_tidemark": shlex.quote(str(site.program)),
        "tune_command": f"{SYSTEMCTL} start {TUNE}",
        "restore_command": f"{SYSTEMCTL} start {RESTORE}",
        "report_command": f"{SYSTEMCTL} start {REPORT}",
    }


def _assignments(variables: dict[str, str]) -> str:
    return " ".join(word(f"{name}={value}") for name, value in variables.items())


def hook(name: str) -> Path:
    """Return the path of a hook on the machine."""
    return Path(HOOKS / name)

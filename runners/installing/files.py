"""The files of a box: unit files, job hooks, what sudo allows. Templates lie in runners/systemd/."""

import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from string import Template

from build.home import ROOT
from runners.alerting.tokens import CREDENTIAL
from runners.installing.escaping import rest_of_line, word
from runners.installing.site import Site

TEMPLATES = ROOT / "runners/systemd"

UNITS = PurePosixPath("/etc/systemd/system")
HOOKS = PurePosixPath("/usr/local/lib/tidemark")
SUDOERS = PurePosixPath("/etc/sudoers.d/tidemark")

SYSTEMCTL = "/usr/bin/systemctl"
"""As sudo compares it: a whole path."""

NIGHT, TUNE, RESTORE = "tidemark-nightly", "tidemark-tune.service", "tidemark-restore.service"

UNIT_NAMES = (
    f"{NIGHT}.service",
    f"{NIGHT}.timer",
    "tidemark-report.service",
    "tidemark-watch.service",
    "tidemark-watch.timer",
    TUNE,
    RESTORE,
)

ENABLED = (f"{NIGHT}.timer", "tidemark-watch.timer", TUNE)
"""What begins by itself."""

OVERTIME_HOURS = 15.0
"""A night ends so long after its box's budget at the latest: the session that began last takes no longer."""

STOP_SECONDS = 300
"""For servers to end and their data to be deleted; what is left then is killed."""

REPORT_SECONDS = 3600
WATCH_SECONDS = 600
TUNE_SECONDS = 600

OOM_SCORE = 300


@dataclass(frozen=True)
class File:
    """A file to be written, owned by root."""

    path: PurePosixPath
    """On the machine, whatever the root it is installed below."""

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
"""Of units that measure nothing. Not MemoryDenyWriteExecute: libffi, which Python uses, wants such memory."""


def files(site: Site) -> list[File]:
    """Every file of a box, in the order in which they are written."""
    values = _values(site)
    found = [File(UNITS / name, _filled(name, values)) for name in UNIT_NAMES]
    if site.agent is not None:
        found += [File(HOOKS / name, _filled(name, values), 0o755) for name in (HOOK_STARTED, HOOK_COMPLETED)]
        found.append(File(SUDOERS, _filled("sudoers", values), 0o440))
    return found


HOOK_STARTED, HOOK_COMPLETED = "job-started.sh", "job-completed.sh"
"""GitHub's runner takes no hook without such an ending."""


def runtime_seconds(budget_minutes: float) -> int:
    """When systemd ends a night, whatever it does."""
    return round(60 * budget_minutes + 3600 * OVERTIME_HOURS)


def _filled(name: str, values: dict[str, str]) -> str:
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return _Text(text).substitute(values)


def _values(site: Site) -> dict[str, str]:
    protect = {"protect_home": site.protect_home, "home": word(str(site.home))}
    environment = site.environment
    return {
        **protect,
        "box": site.box,
        "user": site.user,
        "group": site.user,
        "at": site.at,
        "documents": rest_of_line(site.documents),
        "environment": " ".join(word(f"{name}={value}") for name, value in environment.items()),
        "tidemark": word(str(site.program)),
        "plan": word(str(site.plan), told=True),
        "trimmed": word(str(site.home), told=True),
        "credential": CREDENTIAL,
        "stop_seconds": str(STOP_SECONDS),
        "runtime_seconds": str(runtime_seconds(site.budget_minutes)),
        "report_seconds": str(REPORT_SECONDS),
        "watch_seconds": str(WATCH_SECONDS),
        "tune_seconds": str(TUNE_SECONDS),
        "oom_score": str(OOM_SCORE),
        "hardening": HARDENING.replace("@{protect_home}", protect["protect_home"]).replace(
            "@{home}", protect["home"]
        ),
        "shell_environment": shlex.join(f"{name}={value}" for name, value in environment.items()),
        "shell_tidemark": shlex.quote(str(site.program)),
        "tune_command": f"{SYSTEMCTL} start {TUNE}",
        "restore_command": f"{SYSTEMCTL} start {RESTORE}",
    }


def hook(name: str) -> Path:
    """Where a hook lies on the machine."""
    return Path(HOOKS / name)

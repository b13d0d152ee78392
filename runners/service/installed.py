"""Where an installed box has its plan and its settings, for whoever needs to know. Reads without packages."""

from pathlib import Path

from build.home import ROOT

PLAN = Path("/etc/tidemark/nightly.toml")
"""The plan of a box: outside of the checkout, in which an update refuses local edits."""

ENVIRONMENT = Path("/etc/tidemark/environment")
"""What the units of a box set: `NAME=VALUE` lines without quotes."""

CHECKOUT = "TIDEMARK_CHECKOUT"
"""The variable with the folder of the checkout that they run."""

OWN_PLAN = ROOT / "runners/nightly.toml"
"""The plan of a checkout, by which jobs of workflows measure."""


def installed_variables() -> dict[str, str]:
    """Return what the units of this machine set; empty unless they run this checkout."""
    try:
        lines = ENVIRONMENT.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return found if Path(found.get(CHECKOUT, "/")).resolve() == ROOT else {}


def plan_in_use(given: str | None) -> Path:
    """Return the plan that `--plan` gave, else that of the units that run this checkout, else the checkout's.

    The job of a workflow has a checkout of its own, and so the plan that is committed.
    """
    if given is not None:
        return Path(given)
    return PLAN if installed_variables() else OWN_PLAN

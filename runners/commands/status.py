"""`./tidemark status`: what the nightly service is doing, and whether its results arrive."""

import argparse
import platform
from datetime import UTC, datetime
from pathlib import Path

from build.home import Home, locate
from history.escaping.json_strings import json_text
from runners.nightly.heartbeat import read
from runners.nightly.plan import find_box, load_plan
from runners.nightly.releases.new_releases import with_followed
from runners.nightly.status import ServiceStatus, prometheus_text, service_status, status_json, status_lines


def main(arguments: argparse.Namespace) -> int:
    """Print the status; return 0 when nobody has to act, 1 when somebody has, or when nothing ever ran."""
    known = _known(arguments, locate(), datetime.now(UTC))
    if arguments.format == "json":
        print(json_text(status_json(known), indent=1))
    elif arguments.format == "prometheus":
        print(prometheus_text(known), end="")
    else:
        print("\n".join(status_lines(known)))
    return 0 if known.is_well else 1


def _known(arguments: argparse.Namespace, home: Home, now: datetime) -> ServiceStatus:
    """Return what is known of the box of this machine, or of the one that was named."""
    beat = read(home.heartbeat)
    named = arguments.plan or (beat.plan if beat else "")
    if not named:  # nothing ever ran, or an older Tidemark did
        return service_status(None, beat.box if beat else "", home, now)
    plan = with_followed(load_plan(Path(named)), home)
    box = arguments.box or (beat.box if beat and beat.box in plan.boxes else None)
    return service_status(plan, find_box(plan, box, platform.node()), home, now)

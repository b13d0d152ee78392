"""What is left for a person when a plan is written: commands, in the order in which they are called."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from build.errors import shell_line
from build.home import ROOT, SHARED_HOME
from runners.initializing.needs import Need, NeedState
from runners.installing.arguments import AT
from runners.installing.machine import TargetMachine
from runners.installing.units import installed_units
from runners.nightly.plan import Plan

LABELS = ROOT / ".github/actionlint.yaml"
"""Names the labels of all boxes, of which workflows are checked to use no others."""


@dataclass(frozen=True)
class LeftStep:
    """One thing that a person does."""

    why: str
    command: str


def left_steps(
    plan: Plan, path: Path, box: str, home: Path, found: Iterable[Need], machine: TargetMachine
) -> Iterator[LeftStep]:
    """Yield what a person does until nights begin by themselves."""
    program, chosen = shell_line(ROOT / "tidemark"), shell_line("--plan", path, "--box", box)
    secrets = [need for need in found if need.state is NeedState.LEFT]
    for need in secrets:
        yield LeftStep(f"{need.name}: type {need.secret}, then Ctrl-D", need.to_do)
    if secrets:
        yield LeftStep("see that people are reached", f"sudo {program} runner test-alert {chosen}")
    label = plan.boxes[box].label
    if path.is_relative_to(ROOT) and LABELS.is_file() and f"- {label}\n" not in LABELS.read_text():
        yield LeftStep(
            f"workflows read what is committed: add the label {label} to .github/actionlint.yaml, and commit",
            shell_line("git", "-C", ROOT, "commit", "--all", "--message", f"Box {box}"),
        )
    if not machine.has_systemd:
        yield LeftStep(
            f"this machine has no systemd: cron begins nights (docs/hardware.md); the first one now, as the "
            f"user whom {home} belongs to",
            f"TIDEMARK_HOME={shell_line(home)} {program} nightly {chosen}",
        )
        return
    installed = installed_units(machine)
    if installed.plan != path or installed.variables.get("TIDEMARK_BOX") != box:
        elsewhere = "" if home == SHARED_HOME else f" --home {shell_line(home)}"
        yield LeftStep(
            "user, home, services and timers", f"sudo {program} runner install {chosen}{elsewhere}"
        )
    yield LeftStep(f"the first night now, instead of at {AT} UTC", "sudo systemctl start tidemark-nightly")

"""`./tidemark check`: check that this machine is fit for benchmarking."""

import argparse
import sys
import textwrap
from collections.abc import Sequence

from build.home import locate
from history.escaping.json_strings import json_text
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import CHECKS, examine
from runners.fitness.finding import CheckFinding, Level
from runners.fitness.fixes import AppliedChanges, fix, restore
from runners.fitness.kernel import Kernel
from runners.measuring.machine_lock import measuring_alone

CHANGED_SETTINGS = "fitness.json"
"""The file in the output folder with the machine's settings before `--fix` changed them, until they are
restored."""

WIDTH = 110


def main(arguments: argparse.Namespace) -> int:
    """Check the machine, or all that a plan needs.

    Return 0 when it is fit, 1 when it is not, 2 when a setting could not be changed.
    Raises BusyError while a session measures, which checks and changes would disturb.
    """
    if arguments.plan is not None:
        from runners.service.plan_check import check_plan  # much is imported that a check does not need

        return check_plan(arguments)
    home, kernel = locate(), Kernel()
    with measuring_alone(home):
        if arguments.restore:
            return _restored(restore(kernel, home.path / CHANGED_SETTINGS), arguments.format)
        applied = fix(kernel, home.path / CHANGED_SETTINGS) if arguments.fix else AppliedChanges()
        findings = list(examine(CheckedMachine(home.path, kernel)))
    shown = as_json(findings, applied) if arguments.format == "json" else as_text(findings, applied)
    print(shown)
    _complain(applied)
    return exit_code(findings, applied)


def exit_code(findings: Sequence[CheckFinding], applied: AppliedChanges) -> int:
    """Return 2 when a setting could not be changed, else 1 when a check is unfit, else 0."""
    if applied.failures:
        return 2
    return 1 if any(finding.reading.level is Level.UNFIT for finding in findings) else 0


def as_text(findings: Sequence[CheckFinding], applied: AppliedChanges) -> str:
    """Render a paragraph per finding, with its reading, reason and fix, and the verdict at the end."""
    parts = [_paragraph(finding) for finding in findings]
    bad = [finding.check.name for finding in findings if finding.reading.level is Level.UNFIT]
    verdict = f"Unfit for benchmarking: {', '.join(bad)}." if bad else "Fit for benchmarking."
    changed = _changes(applied)
    if changed:
        changed = ["Changed settings, which ./tidemark check --restore restores:", *changed, ""]
    return "\n".join([*parts, "", *changed, verdict])


def as_json(findings: Sequence[CheckFinding], applied: AppliedChanges) -> str:
    """Render an object with `fit`, the `findings`, and the settings that were `changed` or `failed`."""
    return json_text(
        {
            "fit": all(finding.reading.level is not Level.UNFIT for finding in findings),
            "findings": [finding.as_json() for finding in findings],
            **_as_object(applied),
        },
        indent=2,
    )


def _as_object(applied: AppliedChanges) -> dict[str, object]:
    return {"changed": [vars(change) for change in applied.changes], "failed": applied.failures}


def _restored(applied: AppliedChanges, form: str) -> int:
    if form == "json":
        print(json_text(_as_object(applied), indent=2))
    else:
        print("\n".join(["Restored:", *_changes(applied)] if applied.changes else ["Nothing to restore."]))
    _complain(applied)
    return 2 if applied.failures else 0


def _changes(applied: AppliedChanges) -> list[str]:
    return [f"  {change.name}: {change.before} -> {change.after}" for change in applied.changes]


def _complain(applied: AppliedChanges) -> None:
    for name, why in applied.failures.items():
        print(f"tidemark: {name} {why}", file=sys.stderr)


def _paragraph(finding: CheckFinding) -> str:
    """Render level, name and reading in columns, and below the reading its reason and fix."""
    reading, check = finding.reading, finding.check
    name_width = max(len(listed.name) for listed in CHECKS)
    head = f"{reading.level:<5}  {check.name:<{name_width}}  "
    indent = " " * len(head)
    lines = textwrap.wrap(reading.text, WIDTH, initial_indent=head, subsequent_indent=indent)
    lines += textwrap.wrap(check.why, WIDTH, initial_indent=indent, subsequent_indent=indent)
    # Never wrapped, so that they can be copied.
    if reading.remedy:
        lines.append(f"{indent}fix: {reading.remedy}")
    if reading.look:
        lines.append(f"{indent}see: {reading.look}")
    return "\n".join(lines)

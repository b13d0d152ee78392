"""`./tidemark check`: is this machine fit to measure on?"""

import argparse
import json
import sys
import textwrap
from collections.abc import Sequence

from build.home import locate
from runners.fitness.checks import CHECKS, examine
from runners.fitness.finding import Finding, Level
from runners.fitness.fixes import Mended, fix, restore
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place
from runners.measuring.machine_lock import measuring_alone

WIDTH = 110


def main(arguments: argparse.Namespace) -> int:
    """Look at the machine; 0 when it is fit, 1 when it is not, 2 when something could not be set.

    Nothing is looked at or changed while a session measures: both would disturb it. Raises BusyError.
    """
    home, kernel = locate(), Kernel()
    with measuring_alone(home):
        if arguments.restore:
            return _restored(restore(kernel, home.fitness), arguments.format)
        mended = fix(kernel, home.fitness) if arguments.fix else Mended()
        findings = list(examine(Place(home.path, kernel)))
    shown = as_json(findings, mended) if arguments.format == "json" else as_text(findings, mended)
    print(shown)
    _complain(mended)
    return exit_code(findings, mended)


def exit_code(findings: Sequence[Finding], mended: Mended) -> int:
    """2 when something could not be set, else 1 when a check says unfit, else 0."""
    if mended.failures:
        return 2
    return 1 if any(each.found.level is Level.UNFIT for each in findings) else 0


def as_text(findings: Sequence[Finding], mended: Mended) -> str:
    """A paragraph for each finding: what was found, why it matters, what mends it; the verdict at the end."""
    parts = [_paragraph(each) for each in findings]
    bad = [each.check.name for each in findings if each.found.level is Level.UNFIT]
    verdict = f"Unfit to measure on: {', '.join(bad)}." if bad else "Fit to measure on."
    changed = _changes(mended)
    if changed:
        changed = ["Changed; ./tidemark check --restore puts it back:", *changed, ""]
    return "\n".join([*parts, "", *changed, verdict])


def as_json(findings: Sequence[Finding], mended: Mended) -> str:
    """An object: `fit`, the `findings`, and what was `changed` or `failed` to be."""
    return json.dumps(
        {
            "fit": all(each.found.level is not Level.UNFIT for each in findings),
            "findings": [each.as_json() for each in findings],
            **_as_object(mended),
        },
        indent=2,
    )


def _as_object(mended: Mended) -> dict[str, object]:
    return {"changed": [vars(change) for change in mended.changes], "failed": mended.failures}


def _restored(mended: Mended, form: str) -> int:
    if form == "json":
        print(json.dumps(_as_object(mended), indent=2))
    else:
        print("\n".join(["Put back:", *_changes(mended)] if mended.changes else ["Nothing to put back."]))
    _complain(mended)
    return 2 if mended.failures else 0


def _changes(mended: Mended) -> list[str]:
    return [f"  {each.name}: {each.before} -> {each.after}" for each in mended.changes]


def _complain(mended: Mended) -> None:
    for name, why in mended.failures.items():
        print(f"tidemark: {name} {why}", file=sys.stderr)


def _paragraph(finding: Finding) -> str:
    """Level and name in columns; below them, where the text begins, why and the command."""
    found, check = finding.found, finding.check
    name_width = max(len(each.name) for each in CHECKS)
    head = f"{found.level:<5}  {check.name:<{name_width}}  "
    indent = " " * len(head)
    lines = textwrap.wrap(found.text, WIDTH, initial_indent=head, subsequent_indent=indent)
    lines += textwrap.wrap(check.why, WIDTH, initial_indent=indent, subsequent_indent=indent)
    if found.mend:
        # Never wrapped: it is there to be copied.
        lines.append(f"{indent}mend: {found.mend}")
    return "\n".join(lines)

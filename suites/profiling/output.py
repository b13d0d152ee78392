"""What perf says when it fails: one sentence is shown, the rest is in a log."""

import contextlib
from datetime import UTC, datetime

from build.addresses import redacted
from build.files import make_folder
from build.home import locate

LOG = "profiles.log"
"""The file below the home's logs in which the whole output is kept."""

MAX_CHARACTERS = 200


def in_a_sentence(program: str, output: str) -> str:
    """Return the line of a program's output that says what was wrong; all of it goes to LOG."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return f"{program} said nothing"
    shown = "".join(character if character.isprintable() else "?" for character in redacted(lines[0]))
    if len(shown) > MAX_CHARACTERS:
        shown = shown[: MAX_CHARACTERS - 1] + "…"
    return shown if len(lines) == 1 or not _kept(program, output) else f"{shown} (more in logs/{LOG})"


def _kept(program: str, output: str) -> bool:
    """Append the output to LOG; return whether that was possible, for which no measurement fails."""
    with contextlib.suppress(OSError):
        path = make_folder(locate().logs) / LOG
        with path.open("a", encoding="utf-8", errors="replace") as log:
            log.write(
                f"--- {program}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n{redacted(output).rstrip()}\n"
            )
        return True
    return False

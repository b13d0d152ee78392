"""`./tidemark status`: what the nightly service is doing, since and until when, and whether it is healthy."""

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime

from build.home import locate
from history.spool.journal import waiting_in
from runners.nightly.heartbeat import WELL, Beat, State, Status, status
from runners.occupancy.pause import Pause, last_pause


def main(arguments: argparse.Namespace) -> int:
    """Print the status; return 1 when a night failed, hangs, died or was missed, else 0."""
    now, home = datetime.now(UTC), locate()
    pause = last_pause(home)
    found = status(home.heartbeat, now, None if pause is None else pause.until)
    paused = pause if pause is not None and pause.is_in_force(now) else None
    waits = [str(waiting) for waiting in waiting_in(home.spool)]
    if arguments.format == "json":
        beat = asdict(found.beat) if found.beat else {}
        of_pause = paused.as_json() if paused else None
        print(json.dumps({"state": found.state, **beat, "paused": of_pause, "waiting": waits}, indent=1))
    else:
        print("\n".join([status_text(found, now, paused), *waits]))
    return 0 if found.state in WELL else 1


def status_text(found: Status, now: datetime, paused: Pause | None = None) -> str:
    """Render the status in a few lines, of which the first is about a pause that is in force."""
    beat = found.beat
    first = [] if paused is None else [str(paused)]
    if beat is None:
        return "\n".join([*first, f"{found.state}: no night has started with this output folder"])
    lines = [*first, f"{found.state}: box {beat.box}, night of {_moment(beat.began_at)}"]
    if beat.ended_at is not None:
        lines.append(f"ended {_moment(beat.ended_at)}: {beat.outcome}")
    else:
        lines.append(f"{beat.what}, since {_moment(beat.since)}{_left(beat)}")
        ago = (now - datetime.fromisoformat(beat.beat_at)).total_seconds() / 60
        lines.append(f"last heartbeat {ago:.0f} minutes ago, process {beat.process_id}")
        if found.state is State.DEAD:
            lines.append("the next ./tidemark nightly resumes at its first unfinished step")
    if beat.late:
        lines.append(f"the last report was not made: {beat.late}")
    return "\n".join([*lines, *(f"machine: {note}" for note in beat.notes)])


def _left(beat: Beat) -> str:
    return f", until about {beat.ends_at:%H:%M} UTC" if beat.ends_at is not None else ""


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"

"""The state of a box in lines for people: what it does, since and until when, and whether results arrive."""

from datetime import datetime

from runners.nightly.health import BoxHealth
from runners.nightly.heartbeat import Beat, State, Status
from runners.occupancy.pause import Pause


def heard_of(found: Status, pause: Pause | None) -> dict[str, datetime]:
    """Return by box when this machine was last heard of; as long as it is paused, nobody expects anything."""
    if found.beat is None:
        return {}
    last = datetime.fromisoformat(found.beat.beat_at)
    return {found.beat.box: last if pause is None else max(last, pause.until)}


def task_lines(health: BoxHealth, now: datetime) -> list[str]:
    """Render the tasks of a box, a line each; those whose results are overdue are marked, and come first."""
    tasks = sorted(health.tasks, key=lambda task: not task.is_overdue)
    return [f"{'overdue' if task.is_overdue else 'ok':<8} {task.line(now)}" for task in tasks]


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

"""Settings of the kernel that make a machine fit, and putting back what was there before."""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from build.errors import TidemarkError
from build.files import write_atomically
from runners.fitness import memory, processor, profiling
from runners.fitness.kernel import Kernel


class MendingError(TidemarkError):
    """The file that holds the previous settings cannot be read or written."""


@dataclass(frozen=True)
class SettingChange:
    """One setting."""

    name: str
    """Of the kernel's file."""

    before: str
    after: str


@dataclass
class Mended:
    """What was changed, and what could not be."""

    changes: list[SettingChange] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    """Name of the file to why."""


def plan(kernel: Kernel) -> list[SettingChange]:
    """What --fix would change now.

    All is read before anything is written: processors may share one clock, and the second of them would show
    what was set for the first.
    """
    changes = []
    for pattern, wanted in RULES.items():
        for name in kernel.names(pattern):
            before = kernel.choice(name)
            after = None if before is None else wanted(kernel, name, before)
            if before is not None and after is not None and after != before:
                changes.append(SettingChange(name, before, after))
    return changes


def fix(kernel: Kernel, state: Path) -> Mended:
    """Change what makes the machine unfit; `state` keeps what was there first, whatever is fixed later.

    Raises MendingError, before anything is changed, when `state` is damaged or cannot be written.
    """
    changes, known = plan(kernel), _load(state)
    if not changes:
        return Mended()
    # On disk before the first change: whatever happens then, the way back is known.
    _save(state, {change.name: change.before for change in changes} | known)
    mended = Mended()
    for change in changes:
        failure = _put(kernel, change.name, change.after)
        if failure is None:
            mended.changes.append(change)
        else:
            mended.failures[change.name] = failure
    _save(state, {change.name: change.before for change in mended.changes} | known)
    return mended


def restore(kernel: Kernel, state: Path) -> Mended:
    """Put back what was there before the first --fix. What fails stays in `state`; else that is removed.

    A file that is no longer there has nothing to be put back. Raises MendingError when `state` is damaged.
    """
    mended, left = Mended(), {}
    for name, before in _load(state).items():
        now = kernel.choice(name)
        if now is None and not kernel.path(name).exists():
            mended.failures[name] = "is no longer there"
        if now == before or name in mended.failures:
            continue
        failure = _put(kernel, name, before)
        if failure is None:
            mended.changes.append(SettingChange(name, now or "", before))
        else:
            left[name] = before
            mended.failures[name] = failure
    _save(state, left)
    return mended


def _put(kernel: Kernel, name: str, value: str) -> str | None:
    """Set and look whether it is so. None, or why it is not."""
    try:
        kernel.write(name, value)
    except PermissionError:
        return f"may not be set to {value}: run it as root"
    except OSError as error:
        return f"cannot be set to {value}: {error.strerror}"
    now = kernel.choice(name)
    return None if now == value else f"was set to {value}, but stays {now}"


def _load(state: Path) -> dict[str, str]:
    """Name of the file to its setting before the first --fix. Only names that --fix changes are believed."""
    try:
        kept = json.loads(state.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _damaged(state, str(error)) from error
    if not isinstance(kept, dict) or not all(_is_ours(name, kept[name]) for name in kept):
        raise _damaged(state, "it names what --fix never changes")
    return kept


def _is_ours(name: str, value: object) -> bool:
    # Written by root later: a file that somebody else could put there must not name any file of the machine.
    return isinstance(value, str) and any(PurePosixPath(name).match(pattern) for pattern in RULES)


def _damaged(state: Path, why: str) -> MendingError:
    return MendingError(
        f"what was there before --fix cannot be read: {why}",
        where=str(state),
        hint="put the settings back by hand or restart the machine, then remove the file",
    )


def _save(state: Path, before: Mapping[str, str]) -> None:
    """Keep `before`; nothing to keep leaves no file."""
    try:
        if before:
            write_atomically(state, json.dumps(before, indent=1, sort_keys=True) + "\n")
        else:
            state.unlink(missing_ok=True)
    except OSError as error:
        raise MendingError(f"what was there before cannot be kept: {error}", where=str(state)) from error


# --- what is set to what

Rule = Callable[[Kernel, str, str], str | None]
"""Kernel, name of the file and its setting to the setting that is wanted; None leaves it."""


def _performance(kernel: Kernel, name: str, before: str) -> str | None:
    offered = kernel.read(str(PurePosixPath(name).with_name("scaling_available_governors")))
    return "performance" if offered is None or "performance" in offered.split() else None


def _on_request(kernel: Kernel, name: str, before: str) -> str | None:
    return "madvise" if before == "always" else None


def _hardly_swapping(kernel: Kernel, name: str, before: str) -> str | None:
    above = _number(before) > memory.MOST_SWAPPINESS
    return "1" if above and memory.swap_setting(kernel) != "off" else None


def _at_most(most: int) -> Rule:
    def rule(kernel: Kernel, name: str, before: str) -> str | None:
        return str(most) if _number(before) > most else None

    return rule


def _number(text: str) -> int:
    with contextlib.suppress(ValueError):
        return int(text)
    return 0


def _always(value: str) -> Rule:
    return lambda kernel, name, before: value


RULES: Mapping[str, Rule] = {
    processor.GOVERNORS: _performance,
    processor.NO_TURBO: _always("1"),
    processor.BOOST: _always("0"),
    memory.THP: _on_request,
    memory.THP_DEFRAG: _on_request,
    memory.SWAPPINESS: _hardly_swapping,
    profiling.PARANOID: _at_most(profiling.MOST_PARANOID),
    profiling.POINTERS: _at_most(0),
    profiling.NMI_WATCHDOG: _at_most(0),
}
"""Everything that --fix may write. SMT, swap areas, services and timers are left to a person: they change the
size of a session, may not fit back, or belong to others (docs/decisions/0013-fit-machine.md)."""

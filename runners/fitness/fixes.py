"""Changing kernel settings so that a machine is fit, and restoring the previous settings."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from build.errors import TidemarkError
from build.files import json_value, open_checked, write_atomically
from runners.fitness import memory, processor, profiling
from runners.fitness.kernel import Kernel


class SavedSettingsError(TidemarkError):
    """The file with the previous settings cannot be read or written."""


@dataclass(frozen=True)
class SettingChange:
    """The change of one kernel setting."""

    name: str
    """The name of the kernel's file."""

    before: str
    after: str


@dataclass
class AppliedChanges:
    """The settings that were changed, and those that could not be."""

    changes: list[SettingChange] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    """The reason of every failure, by the name of the file."""


def plan(kernel: Kernel) -> list[SettingChange]:
    """Return the changes that --fix would make now.

    All settings are read before any is written: processors may share a setting, and the second one would show
    the value that was written for the first.
    """
    changes = []
    for pattern, wanted in RULES.items():
        for name in kernel.names(pattern):
            before = kernel.choice(name)
            after = None if before is None else wanted(kernel, name, before)
            if before is not None and after is not None and after != before:
                changes.append(SettingChange(name, before, after))
    return changes


def fix(kernel: Kernel, state: Path) -> AppliedChanges:
    """Change the settings that make the machine unfit; `state` keeps the values before the first change.

    Raises SavedSettingsError, before anything is changed, when `state` is damaged or cannot be written.
    """
    changes, known = plan(kernel), saved_settings(state)
    if not changes:
        return AppliedChanges()
    # Saved before the first change, so that the previous values are known whatever happens.
    _save(state, {change.name: change.before for change in changes} | known)
    applied = AppliedChanges()
    for change in changes:
        failure = _put(kernel, change.name, change.after)
        if failure is None:
            applied.changes.append(change)
        else:
            applied.failures[change.name] = failure
    _save(state, {change.name: change.before for change in applied.changes} | known)
    return applied


def restore(kernel: Kernel, state: Path) -> AppliedChanges:
    """Restore the settings before the first --fix. Failed ones stay in `state`, which is removed otherwise.

    A file that no longer exists is skipped. Raises SavedSettingsError when `state` is damaged.
    """
    applied, left = AppliedChanges(), {}
    for name, before in saved_settings(state).items():
        now = kernel.choice(name)
        if now is None and not kernel.path(name).exists():
            applied.failures[name] = "no longer exists"
        if now == before or name in applied.failures:
            continue
        failure = _put(kernel, name, before)
        if failure is None:
            applied.changes.append(SettingChange(name, now or "", before))
        else:
            left[name] = before
            applied.failures[name] = failure
    _save(state, left)
    return applied


def _put(kernel: Kernel, name: str, value: str) -> str | None:
    """Write a setting and read it back. Return None, or why it could not be set."""
    try:
        kernel.write(name, value)
    except PermissionError:
        return f"cannot be set to {value}: permission denied, run it as root"
    except OSError as error:
        return f"cannot be set to {value}: {error.strerror}"
    now = kernel.choice(name)
    return None if now == value else f"was set to {value}, but is still {now}"


def saved_settings(state: Path) -> dict[str, str]:
    """Return the settings before the first --fix by file name.

    Root writes these later, and the folder may be another user's. Therefore a link is refused, a file of a
    user other than root and this one, and a name that --fix never changes.
    """
    try:
        descriptor = open_checked(state)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _damaged(state, error.strerror or str(error)) from error
    with os.fdopen(descriptor, encoding="utf-8") as file:
        owner = os.fstat(descriptor).st_uid
        if owner not in (0, os.geteuid()):
            raise _damaged(state, f"it belongs to the user {owner}, who could have it restore anything")
        try:
            kept = json_value(file.read())
        except (OSError, ValueError) as error:
            raise _damaged(state, str(error)) from error
    if not isinstance(kept, dict) or not all(_is_ours(name, kept[name]) for name in kept):
        raise _damaged(state, "it names a file that --fix never changes")
    return kept


def _is_ours(name: str, value: object) -> bool:
    return isinstance(value, str) and any(PurePosixPath(name).match(pattern) for pattern in RULES)


def _damaged(state: Path, why: str) -> SavedSettingsError:
    return SavedSettingsError(
        f"the settings before --fix cannot be read: {why}",
        where=str(state),
        hint="restore the settings by hand or reboot, then remove the file",
    )


def _save(state: Path, before: Mapping[str, str]) -> None:
    """Save `before`; remove the file when there is nothing to save."""
    try:
        if before:
            write_atomically(state, json.dumps(before, indent=1, sort_keys=True) + "\n")
        else:
            state.unlink(missing_ok=True)
    except OSError as error:
        raise SavedSettingsError(
            f"the settings before --fix cannot be saved: {error}", where=str(state)
        ) from error


# --- rules

Rule = Callable[[Kernel, str, str], str | None]
"""Returns the new value for a kernel, the name of a file and its current value; None keeps the value."""


def _performance(kernel: Kernel, name: str, before: str) -> str | None:
    offered = kernel.read(str(PurePosixPath(name).with_name("scaling_available_governors")))
    return "performance" if offered is None or "performance" in offered.split() else None


def _madvise(kernel: Kernel, name: str, before: str) -> str | None:
    return "madvise" if before == "always" else None


def _low_swappiness(kernel: Kernel, name: str, before: str) -> str | None:
    above = _number(before) > memory.MAX_SWAPPINESS
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
    memory.THP: _madvise,
    memory.THP_DEFRAG: _madvise,
    memory.SWAPPINESS: _low_swappiness,
    profiling.PARANOID: _at_most(profiling.MAX_PARANOID),
    profiling.POINTERS: _at_most(0),
    profiling.NMI_WATCHDOG: _at_most(0),
}
"""Everything that --fix may write. SMT, swap areas, services and timers are left to the administrator: they
change the size of a session, may not be restorable, or belong to others
(docs/decisions/0013-fit-machine.md)."""

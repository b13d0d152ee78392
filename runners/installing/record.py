"""What was written on a machine: by it our files are told from those that a person has changed since."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from runners.installing.escaping import InstallError
from runners.installing.machine import TargetMachine

PATH = PurePosixPath("/etc/tidemark/installed.json")


@dataclass(frozen=True)
class Record:
    """Of one installation."""

    digests: dict[str, str] = field(default_factory=dict)
    """File to the SHA-256 of what was written."""

    agent_lines: tuple[str, ...] = ()
    """Lines that were added to the environment of GitHub's runner."""

    agent_file: str = ""
    installed_at: str = ""
    """ISO-8601 in UTC: since when nights are expected."""

    def wrote(self, name: PurePosixPath, text: str) -> bool:
        """Whether a file is as it was written."""
        return self.digests.get(str(name)) == digest(text)

    def with_file(self, name: PurePosixPath, text: str) -> "Record":
        """With one more file."""
        return replace(self, digests={**self.digests, str(name): digest(text)})

    def without_file(self, name: PurePosixPath) -> "Record":
        """With one file less."""
        return replace(self, digests={each: it for each, it in self.digests.items() if each != str(name)})


def digest(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def load(machine: TargetMachine) -> Record:
    """The record; empty where nothing is installed. Raises InstallError when it is damaged."""
    text = machine.read(PATH)
    if text is None:
        return Record()
    try:
        found = json.loads(text)
        return Record(**{**found, "agent_lines": tuple(found["agent_lines"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InstallError(
            f"the record of what was installed is damaged: {error}",
            where=str(machine.path(PATH)),
            hint="remove it and install again: files that were changed are kept and shown",
        ) from error


def save(machine: TargetMachine, record: Record) -> None:
    """Keep it; nothing to keep leaves no file."""
    if not record.digests and not record.agent_lines:
        machine.remove(PATH)
        return
    since = record.installed_at or datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps(vars(replace(record, installed_at=since)), indent=1, sort_keys=True) + "\n"
    if text != machine.read(PATH):
        machine.write(PATH, text, 0o644)

"""The record of what was installed, by which modified files are recognised."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from build.files import json_value
from runners.installing.escaping import InstallError
from runners.installing.machine import TargetMachine

PATH = PurePosixPath("/etc/tidemark/installed.json")


@dataclass(frozen=True)
class Record:
    """What one installation wrote."""

    digests: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of what was written, by file."""

    agent_lines: tuple[str, ...] = ()
    """Lines that were added to the environment of GitHub's runner."""

    agent_file: str = ""
    installed_at: str = ""
    """The time of the installation in UTC, as ISO-8601: nights are expected since then."""

    def wrote(self, name: PurePosixPath, text: str) -> bool:
        """Return whether a file is as it was written."""
        return self.digests.get(str(name)) == digest(text)

    def with_file(self, name: PurePosixPath, text: str) -> "Record":
        """Return the record with one more file."""
        return replace(self, digests={**self.digests, str(name): digest(text)})

    def without_file(self, name: PurePosixPath) -> "Record":
        """Return the record without a file."""
        return replace(self, digests={file: text for file, text in self.digests.items() if file != str(name)})


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def load(machine: TargetMachine) -> Record:
    """Read the record; empty when nothing is installed. Raises InstallError when it is damaged."""
    text = machine.read(PATH)
    if text is None:
        return Record()
    try:
        found = json_value(text)
        return Record(**{**found, "agent_lines": tuple(found["agent_lines"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InstallError(
            f"the record of what was installed is damaged: {error}",
            where=str(machine.path(PATH)),
            hint="remove it and install again: modified files are kept and shown",
        ) from error


def save(machine: TargetMachine, record: Record) -> None:
    """Write the record; remove the file when the record is empty."""
    if not record.digests and not record.agent_lines:
        machine.remove(PATH)
        return
    since = record.installed_at or datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps(vars(replace(record, installed_at=since)), indent=1, sort_keys=True) + "\n"
    if text != machine.read(PATH):
        machine.write(PATH, text, 0o644)

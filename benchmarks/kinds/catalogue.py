"""The kinds of regression in kinds.toml, and the commands by which each must be seen."""

import hashlib
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from build.errors import TidemarkError

FOLDER = Path(__file__).parent
KINDS = FOLDER / "kinds.toml"

PLANTED = "planted"
"""The variant that the version with the regression is called in a session of `run`."""


class AttemptCommand(StrEnum):
    """The command that measures a kind."""

    TRY = "try"
    RUN = "run"


@dataclass(frozen=True)
class Attempt:
    """A command as a user gives it, and what it must tell."""

    command: AttemptCommand
    options: tuple[str, ...]
    expected: str
    """A regular expression: of a difference for the worse, with its metric, or else of the printed text."""

    is_seen: bool = True
    """Whether the kind must be told, with exit code 1; otherwise the text must say why it cannot be seen."""


@dataclass(frozen=True)
class PlantedKind:
    """One kind of regression: a patch to a version, or settings of one side of a session."""

    name: str
    title: str
    version: str
    attempts: tuple[Attempt, ...]
    patch: Path | None = None
    settings: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """The hex digest of the definition, with the text of the patch and of the files that options name."""
        texts = [self.name, self.version, *self.settings, *(repr(attempt) for attempt in self.attempts)]
        words = {word for attempt in self.attempts for word in attempt.options}
        files = [FOLDER / word for word in sorted(words) if (FOLDER / word).is_file()]
        texts += [file.read_text(encoding="utf-8") for file in (self.patch, *files) if file is not None]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]

    @property
    def contender(self) -> dict[AttemptCommand, str]:
        """The name of the version with the regression, by command."""
        return {
            AttemptCommand.TRY: f"{self.version}#try",
            AttemptCommand.RUN: f"{self.version}#{PLANTED}",
        }

    def words(self, attempt: Attempt) -> list[str]:
        """Return the command line of an attempt, without `./tidemark`."""
        if attempt.command is AttemptCommand.TRY:
            return ["try", str(self.patch), "--against", self.version, *attempt.options]
        planted = [word for setting in self.settings for word in ("--with", f"{PLANTED}:setting.{setting}")]
        if self.patch is not None:
            planted += ["--with", f"{PLANTED}:patch={self.patch}"]
        contender = self.contender[AttemptCommand.RUN]
        return ["run", *planted, *attempt.options, self.version, contender]


class KindsError(TidemarkError):
    """kinds.toml has a kind that could not be tried."""


def kinds() -> tuple[PlantedKind, ...]:
    """Return the kinds in the order of the file. Raises KindsError."""
    table = tomllib.loads(KINDS.read_text(encoding="utf-8"))
    return tuple(parsed(fields) for fields in table["kinds"])


def parsed(fields: Mapping[str, Any]) -> PlantedKind:
    """Return a kind from a table of kinds.toml. Raises KindsError."""
    known = {"name", "title", "version", "patch", "settings", "attempts"}
    name = fields.get("name", "a kind without a name")
    unknown, missing = fields.keys() - known, {"name", "title", "version", "attempts"} - fields.keys()
    if unknown or missing:
        wrong = ", ".join(sorted(unknown | missing))
        raise KindsError(f"{name} has no use for, or lacks: {wrong}", where=str(KINDS))
    patch = FOLDER / fields["patch"] if "patch" in fields else None
    if (patch is None) is ("settings" not in fields) or (patch and not patch.is_file()):
        raise KindsError(f"{name} needs either settings or a patch that is there", where=str(KINDS))
    attempts = tuple(_attempt(name, attempt) for attempt in fields["attempts"])
    if patch is None and any(attempt.command is AttemptCommand.TRY for attempt in attempts):
        raise KindsError(f"{name} has settings, which only run takes", where=str(KINDS))
    if not any(attempt.is_seen for attempt in attempts):
        raise KindsError(f"{name} is never told", where=str(KINDS))
    settings = tuple(fields.get("settings", ()))
    return PlantedKind(name, fields["title"], fields["version"], attempts, patch, settings)


def _attempt(name: str, fields: Mapping[str, Any]) -> Attempt:
    expected = fields.keys() & {"told", "reason"}
    if len(expected) != 1 or fields.keys() != {"command", "options"} | expected:
        raise KindsError(f"an attempt of {name} needs command, options, and told or reason", where=str(KINDS))
    (key,) = expected
    options = tuple(shlex.split(fields["options"]))
    return Attempt(AttemptCommand(fields["command"]), options, fields[key], is_seen=key == "told")

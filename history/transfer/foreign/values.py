"""What a foreign table holds: single values, each with what it was measured on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from build.version import Engine
from history.transfer.row_source import TransferError

NAMED = 12
"""The names that a refusal lists at most."""

PROFILE = "imported"
"""The profile of a table that names none."""


@dataclass(frozen=True)
class Location:
    """Where a value stood, for people."""

    file: str
    row: str

    def __str__(self) -> str:
        """`results.csv, row 3`."""
        return f"{self.file}, {self.row}"


@dataclass(frozen=True)
class Occasion:
    """What makes values belong to one session."""

    machine: str
    suite: str
    when: datetime
    profile: str = PROFILE


@dataclass(frozen=True)
class Value:
    """One number in the unit of its metric."""

    occasion: Occasion
    version: str
    step: str
    metric: str
    number: float
    place: Location
    repetition: int = 1
    commit: str = ""
    """The commit that was measured of a branch; empty when it is not known."""

    configuration: str = ""
    """What the table says of the server's configuration; empty when it says nothing."""


@dataclass(frozen=True)
class Given:
    """What the command line says of tables that do not say it themselves."""

    machine: str | None = None
    suite: str | None = None
    when: datetime | None = None
    cores: int | None = None
    """Of the machine; for costs that are shares of it."""

    columns: tuple[str, ...] = ()
    """The versions of the columns, for a table without a head."""

    version: str | None = None
    step: str | None = None
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What the numbers of a column are, by its name: metric and unit, which is empty for the metric's own."""

    base: str | None = None
    """The branch or version that the others are compared with, as a person writes it."""


@dataclass
class Read:
    """A table that was read."""

    values: list[Value] = field(default_factory=list)
    results: list[tuple[Value, ...]] = field(default_factory=list)
    """The values of each run of a benchmark, which are rounds whose numbers follow from their order."""

    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""

    unknown: dict[str, None] = field(default_factory=dict)
    """Versions that were left out because their engine is unknown, in the order of the table."""

    unreadable: dict[str, str] = field(default_factory=dict)
    """Names that were left out because they name no version, and why, in the order of the table."""

    def note_left_out(self, file: str) -> None:
        """Note the versions that were left out, if there are any."""
        if self.unknown:
            names = ", ".join(self.unknown)
            self.notes.append(
                f"{file}: left out, of an engine that this Tidemark does not know: {names}; it knows "
                f"{', '.join(Engine)}"
            )
        short = [name for name in self.unreadable if "@" not in name]
        if short:
            self.notes.append(
                f"{file}: left out, because the name says no version: {', '.join(short)}; "
                "write engine@ref instead, such as mariadb@git:c944cd6e"
            )
        self.notes += [
            f"{file}: '{name}' is left out: {why}" for name, why in self.unreadable.items() if "@" in name
        ]


def refuse(place: Location, what: str, hint: str = "mend the row; nothing was taken") -> TransferError:
    """The error for a row that cannot be taken."""
    return TransferError(what, where=str(place), hint=hint)

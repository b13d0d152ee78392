"""What is declared for each server of a session in place of what the machine has, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Declared:
    """Memory and disk of each server as they are written and recorded; empty for those of the machine.

    A field has the name of its option, on a command line and in a session, and of its key in a profile.
    """

    memory: str = ""
    """Page cache included, such as `1G`."""
    disk: str = ""
    """The most of reads and of writes each, such as `2000iops,100MB/s`."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Declared":
        """Return what the options of a session say."""
        return cls(*(str(options.get(name) or "") for name in DECLARED))

    @property
    def options(self) -> dict[str, str]:
        """What is declared, by name, as options of a session."""
        return {name: value for name in DECLARED if (value := getattr(self, name))}

    def arguments(self, usual: "Declared | None" = None) -> list[str]:
        """Return the words of a command line; without those that are `usual`, as a profile has them."""
        known = {} if usual is None else usual.options
        return [
            word
            for name, value in self.options.items()
            if value != known.get(name)
            for word in (f"--{name}", value)
        ]

    def __str__(self) -> str:
        """Return a phrase: `1G of memory and a disk of 500iops for each server`; empty without any."""
        parts = [f"{self.memory} of memory"] if self.memory else []
        parts += [f"a disk of {self.disk}"] if self.disk else []
        return f"{' and '.join(parts)} for each server" if parts else ""


DECLARED = tuple(field.name for field in fields(Declared))
"""The names, in the order in which they are shown."""

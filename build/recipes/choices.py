"""What a variant compiles differently from the recipe of its version: compiler, flags, configure options."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from build.errors import TidemarkError

MAX_OPTIONS = 20
"""The most configure options of one variant."""

_FLAGS = re.compile(r"-[A-Za-z0-9_+=.,:/-]+( +-[A-Za-z0-9_+=.,:/-]+)*")


class ChoiceError(TidemarkError):
    """A choice of how to compile is not one, or is not well-formed."""


@dataclass(frozen=True)
class BuildChoices:
    """How a build differs from the recipe of its version. Without any choice it is the recipe's build."""

    compiler: str = ""
    """The command of the C compiler, such as `clang`; empty for `$CC` or gcc."""

    flags: str = ""
    """Compiler flags after those of the recipe, so that `-O3` replaces its `-O2`."""

    linker_flags: str = ""
    """Flags of the linker."""

    options: tuple[str, ...] = ()
    """Options of configure or CMake, after those of the recipe."""

    def to_json(self) -> dict[str, Any]:
        """Return the choices as a manifest and a session record them, by key; empty without any."""
        values: dict[str, Any] = {
            "CC": self.compiler,
            "CFLAGS": self.flags,
            "LDFLAGS": self.linker_flags,
            "configure": list(self.options),
        }
        return {key: value for key, value in values.items() if value}

    def with_(self, other: "BuildChoices") -> "BuildChoices":
        """Return these choices with those of `other`, which come later and so take precedence."""
        return BuildChoices(
            other.compiler or self.compiler,
            f"{self.flags} {other.flags}".strip(),
            f"{self.linker_flags} {other.linker_flags}".strip(),
            (*self.options, *other.options),
        )

    def with_options(self, options: Sequence[str]) -> "BuildChoices":
        """Return these choices with options of configure that they do not have yet, before their own."""
        return replace(self, options=(*(new for new in options if new not in self.options), *self.options))

    def plus(self, key: str, value: str) -> "BuildChoices":
        """Return these choices with one more; `configure` and flags add to what is there.

        Raises ChoiceError if there is no such key, or if its value is not well-formed.
        """
        if key not in KEYS:
            raise ChoiceError(
                f"'{key[:40]}' is not a choice of a build", hint=f"it is one of: {', '.join(KEYS)}"
            )
        if not KEYS[key].pattern.fullmatch(value):
            raise ChoiceError(f"'{value[:80]}' cannot be the {key} of a build", hint=KEYS[key].hint)
        if len(self.options) >= MAX_OPTIONS:
            raise ChoiceError(f"more than {MAX_OPTIONS} configure options")
        return self.with_(KEYS[key].read(value))


@dataclass(frozen=True)
class ChoiceKey:
    """One key of `--build NAME:KEY=VALUE`."""

    pattern: re.Pattern[str]
    """What its values look like."""

    read: Callable[[str], BuildChoices]
    """Makes the choice of a value."""

    hint: str
    """What to write, for error messages."""


KEYS = {
    "CC": ChoiceKey(
        re.compile(r"[A-Za-z0-9/][A-Za-z0-9/._+-]*"),
        lambda value: BuildChoices(compiler=value),
        "name a command, such as clang",
    ),
    "CFLAGS": ChoiceKey(
        _FLAGS,
        lambda value: BuildChoices(flags=value),
        "write flags separated by spaces, such as '-O3 -march=native'",
    ),
    "LDFLAGS": ChoiceKey(
        _FLAGS,
        lambda value: BuildChoices(linker_flags=value),
        "write flags separated by spaces, such as -Wl,-O1",
    ),
    "configure": ChoiceKey(
        re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_+=.,:/-]*"),
        lambda value: BuildChoices(options=(value,)),
        "write one option, such as --with-llvm or -DWITH_LTO=ON; repeat --build for another",
    ),
}
"""The keys of choices, by what a command line and a plan call them."""

PLAIN = BuildChoices()
"""No choice: the recipe's own build."""

"""What the versions of a session got besides their source: the definitions that the session recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

from build.version import Version
from suites.additions.variant import EXTENSIONS, described

VARIANTS = "variants"
"""The option of a session with the definitions of its variants, by name."""

TWIN = "twin"
"""The variant that needs no definition: the same build a second time, which shows the noise."""


def definition_notes(options: Mapping[str, Any], versions: Sequence[Version]) -> list[str]:
    """Return a sentence for each of the versions that is a variant with a recorded definition.

    Another one gives the extensions of every version, if there are any.
    """
    named = [version for version in versions if version.variant]
    definitions = [(version, definition_in(options, version.variant)) for version in named]
    every = described({EXTENSIONS: options.get(EXTENSIONS)})
    return [
        *([f"every version: {every}"] if every else []),
        *(f"{version}: {described(definition)}" for version, definition in definitions if definition),
    ]


def definition_in(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the definition of the variant called `name` in the options of a session; empty without one."""
    definitions = options.get(VARIANTS)
    definition = definitions.get(name) if isinstance(definitions, dict) else None
    return definition if isinstance(definition, dict) else {}

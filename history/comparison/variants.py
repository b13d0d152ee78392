"""What the versions of a session got besides their source: the definitions that the session recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

from build.version import Version

VARIANTS = "variants"
"""The option of a session with the definitions of its variants, by name."""


def definition_notes(options: Mapping[str, Any], versions: Sequence[Version]) -> list[str]:
    """Return a sentence for each of the versions that is a variant with a recorded definition."""
    definitions = options.get(VARIANTS)
    if not isinstance(definitions, dict):
        return []
    texts = []
    for version in versions:
        definition = definitions.get(version.variant)
        if version.variant and isinstance(definition, dict):
            texts.append(f"{version}: {described(definition)}")
    return texts


def described(definition: Mapping[str, Any]) -> str:
    """Return a definition in words: `work_mem = 8MB; compiled with CFLAGS=-O3; patched with fix.patch`.

    It has `settings` and `build` by name, and `patches` as file names; what else stands there is left out.
    """
    parts = []
    settings, build, patches = (definition.get(key) for key in ("settings", "build", "patches"))
    if isinstance(settings, dict) and settings:
        parts.append(", ".join(f"{name} = {value}" for name, value in settings.items()))
    if isinstance(build, dict) and build:
        words = (f"{key}={_text(value)}" for key, value in build.items())
        parts.append(f"compiled with {', '.join(words)}")
    if isinstance(patches, list) and patches:
        parts.append(f"patched with {_text(patches, ', ')}")
    return "; ".join(parts)


def _text(value: object, separator: str = " ") -> str:
    return separator.join(map(str, value)) if isinstance(value, list) else str(value)

"""What the versions of a session got besides their source: the definitions that the session recorded."""

from collections.abc import Mapping, Sequence
from typing import Any

from build.extension import EXTENSION_DIGITS, described_extension
from build.version import Version

VARIANTS = "variants"
"""The option of a session with the definitions of its variants, by name."""

TWIN = "twin"
"""The variant that needs no definition: the same build a second time, which shows the noise."""

EXTENSIONS = "extensions"
"""The key of a definition, and the option of a session for every version, with extensions of Postgres."""

PLURALS = {"index": "indexes", "companion": "companions"}
"""Option of a command line -> key of a definition with all that it was given."""


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


def option_words(name: str, definition: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that define a variant, such as `--set mem:work_mem=8MB`.

    An empty name defines what every version gets.
    """
    words: list[str] = []
    of = f"{name}:" if name else ""
    settings, build, patches = (definition.get(key) for key in ("settings", "build", "patches"))
    for option, named in (
        ("--set", settings),
        ("--layer", definition.get("layers")),
        ("--initdb", definition.get("initdb")),
    ):
        if isinstance(named, dict):
            words += [word for key, value in named.items() for word in (option, f"{of}{key}={value}")]
    if isinstance(build, dict):
        for key, value in build.items():
            for choice in value if isinstance(value, list) else [value]:
                words += ["--build", f"{of}{key}={choice}"]
    for option, key in PLURALS.items():
        listed = definition.get(key)
        if isinstance(listed, list):
            words += [word for entry in listed for word in (f"--{option}", f"{of}{entry}")]
    words += [word for made in _extensions(definition) for word in ("--extension", f"{of}{_word(made)}")]
    if isinstance(patches, list):
        words += [word for patch in patches for word in ("--patch", f"{name}={patch}")]
    return words


def described(definition: Mapping[str, Any]) -> str:
    """Return a definition in words: `work_mem = 8MB; compiled with CFLAGS=-O3; beside pgbouncer`.

    It has `settings`, `build` and `layers` by name, `patches` as file names, `indexes`, `companions` and
    `extensions`; what else stands there is left out.
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
    if extensions := _extensions(definition):
        parts.append(f"with {_text([described_extension(made) for made in extensions], ' and ')}")
    layers = definition.get("layers")
    if isinstance(layers, dict) and layers:
        parts.append(f"clients with {', '.join(f'{name}={value}' for name, value in layers.items())}")
    initdb = definition.get("initdb")
    if isinstance(initdb, dict) and initdb:
        parts.append(f"initdb with {', '.join(f'{name}={value}' for name, value in initdb.items())}")
    for key, text in (("indexes", "with indexes on"), ("companions", "beside")):
        listed = definition.get(key)
        if isinstance(listed, list) and listed:
            parts.append(f"{text} {_text(listed, ' and ')}")
    return "; ".join(parts)


def _extensions(definition: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = definition.get(EXTENSIONS)
    return [made for made in listed if isinstance(made, dict)] if isinstance(listed, list) else []


def _word(made: Mapping[str, Any]) -> str:
    """Return what `--extension` takes for a recorded one: its commit, for a branch is another tomorrow."""
    commit = str(made.get("commit", ""))[:EXTENSION_DIGITS] or made.get("ref")
    return f"{made.get('name')}={made.get('repository')}@{commit}"


def _text(value: object, separator: str = " ") -> str:
    return separator.join(map(str, value)) if isinstance(value, list) else str(value)

"""Variants: `postgres@18.6#NAME` with settings, patches, extensions and so on of its own."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from build import host
from build.errors import TidemarkError, shell_line
from build.extension import (
    Extension,
    ExtensionError,
    parse_extension,
    pinned,
    require_extensible,
)
from build.home import Home
from build.progress import Progress
from build.recipes.recipe import PLAIN, BuildChoices
from build.request import RECIPES
from build.version import Engine, Version, is_variant
from history.series.variants import TWIN
from suites.additions.indexes import parse_index
from suites.additions.registry import require_companions
from suites.layers.choice import layers_of, require_value
from suites.postgres.initdb_options import require_option


class VariantError(TidemarkError):
    """A variant is not defined, is the same as another one, or its definition is not well-formed."""


@dataclass(frozen=True)
class Variant:
    """What distinguishes a variant from its version; without anything it is the version itself."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that override those of the session; `postgres.NAME` is for one engine."""

    choices: BuildChoices = PLAIN
    """How it is compiled differently."""

    patches: tuple[Path, ...] = ()
    """The patches of its source, in order."""

    indexes: tuple[str, ...] = ()
    """The indexes that its loaded tables get, as suites.additions.indexes describes them."""

    companions: tuple[str, ...] = ()
    """The companions of its server, by the names of suites.additions.registry."""

    extensions: tuple[Extension, ...] = ()
    """The extensions of Postgres that are compiled for it and created in its database, in order."""
    layers: Mapping[str, str] = field(default_factory=dict)
    """How clients reach its server, by the names of suites.layers.choice."""
    initdb: Mapping[str, str] = field(default_factory=dict)
    """What its initdb is told, by the names of suites.postgres.initdb_options."""

    def to_json(self) -> dict[str, Any]:
        """Return the definition as a session records it: patches by the names of their files."""
        values: dict[str, Any] = {
            "settings": dict(self.settings),
            "build": self.choices.to_json(),
            "patches": [patch.name for patch in self.patches],
            "indexes": list(self.indexes),
            "companions": list(self.companions),
            "extensions": [extension.to_json() for extension in self.extensions],
            "layers": dict(self.layers),
            "initdb": dict(self.initdb),
        }
        return {key: value for key, value in values.items() if value}


UNCHANGED = Variant()
"""The definition of a plain version."""

Variants = Mapping[str, Variant]
"""The variants of a session by name; the empty name is what every version of the session gets."""

EVERY = ""
"""The name of the variant that every version is."""


def read_variants(
    settings: Sequence[str],
    choices: Sequence[str],
    patches: Sequence[str],
    indexes: Sequence[str] = (),
    companions: Sequence[str] = (),
    extensions: Sequence[str] = (),
    layers: Sequence[str] = (),
    initdb: Sequence[str] = (),
) -> Variants:
    """Return the variants that the words of the options `--set`, `--build`, `--patch` and so on define.

    `--set`, `--build`, `--extension`, `--layer` and `--initdb` take `KEY=VALUE` for every version and
    `NAME:KEY=VALUE` for a variant, `--index` and `--companion` a single word in the same way, `--patch` takes
    `NAME=FILE`. Raises VariantError, ChoiceError, ExtraIndexError, ExtensionError, LayerError, InitdbError or
    GitError.
    """
    found: dict[str, Variant] = {}
    for text in settings:
        name, key, value = _named(text, "--set")
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, settings={**known.settings, key: value})
    for text in choices:
        name, key, value = _named(text, "--build")
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, choices=known.choices.plus(key, value))
    for text in patches:
        _, name, file = _named(text, "--patch")
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, patches=(*known.patches, Path(file)))
    for text in indexes:
        name, index = _of_variant(text, "--index")
        parse_index(index)
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, indexes=(*known.indexes, index))
    for text in companions:
        name, companion = _of_variant(text, "--companion")
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, companions=(*known.companions, companion))
    for text in extensions:
        name, extension, address = _named(text, "--extension")
        known, new = found.get(name, UNCHANGED), parse_extension(f"{extension}={address}")
        if new.name in {other.name for other in known.extensions}:
            raise ExtensionError(f"{new.name} is named twice", where="--extension")
        found[name] = replace(known, extensions=(*known.extensions, new))
    for text in layers:
        name, key, value = _named(text, "--layer")
        require_value(key, value)
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, layers={**known.layers, key: value})
    for text in initdb:
        name, key, value = _named(text, "--initdb")
        require_option(key, value)
        known = found.get(name, UNCHANGED)
        found[name] = replace(known, initdb={**known.initdb, key: value})
    return found


def variants_of(arguments: argparse.Namespace) -> Variants:
    """Return the variants that a command line defines; the options are in runners.variant_arguments."""
    words = (arguments.set, arguments.build, arguments.patch, arguments.index, arguments.companion)
    return read_variants(*words, arguments.extension, arguments.layer, arguments.initdb)


def with_commits(variants: Variants, home: Home, progress: Progress) -> Variants:
    """Return the variants with the commits of their extensions. Raises GitError for a ref that is none."""
    return {
        name: replace(
            variant, extensions=tuple(pinned(extension, home, progress) for extension in variant.extensions)
        )
        for name, variant in variants.items()
    }


def definition_of(version: Version, variants: Variants) -> Variant:
    """Return what a version gets: what every version gets, and then what its variant adds or replaces."""
    every, own = variants.get(EVERY, UNCHANGED), variants.get(version.variant or EVERY, UNCHANGED)
    if own is every:
        return every
    replaced = {extension.name for extension in own.extensions}
    return Variant(
        {**every.settings, **own.settings},
        every.choices.with_(own.choices),
        (*every.patches, *own.patches),
        (*every.indexes, *own.indexes),
        (*every.companions, *own.companions),
        (*(other for other in every.extensions if other.name not in replaced), *own.extensions),
        {**every.layers, **own.layers},
        {**every.initdb, **own.initdb},
    )


def compiled_for_layers(definition: Variant, engine: Engine, of_suite: Mapping[str, str]) -> Variant:
    """Return a definition that is compiled with TLS if its layers, or those of its suite, have it."""
    if not layers_of({**of_suite, **definition.layers}).tls:
        return definition
    return replace(definition, choices=definition.choices.with_options(RECIPES[engine].TLS_OPTIONS))


def require_defined(versions: Sequence[Version], variants: Variants) -> None:
    """Raise VariantError unless versions and variants belong together.

    Every variant has a definition, except TWIN; every definition has a version; no two versions are the same.
    Patches are files that exist. Raises HostError for a compiler that is not installed.
    """
    for version in versions:
        if version.variant not in {EVERY, TWIN, *variants}:
            raise _not_defined(version, variants)
        definition = definition_of(version, variants)
        require_companions(definition.companions, version.engine)
        require_extensible(version, definition.extensions)
    for name in variants.keys() - {EVERY, *(version.variant for version in versions)}:
        plain = versions[0].plain
        raise VariantError(
            f"no version is called {plain}#{name}",
            where=_option_of(variants[name]),
            hint=f"name the variant among the versions, such as: {plain} '{plain}#{name}'",
        )
    for command in {variant.choices.compiler for variant in variants.values()} - {""}:
        host.compiler(command)
    for file in (file for variant in variants.values() for file in variant.patches):
        if not file.is_file():
            raise VariantError(f"there is no file {file}", where="--patch")
    _require_different(versions, variants)


def _require_different(versions: Sequence[Version], variants: Variants) -> None:
    seen: dict[tuple[Engine, str, str], Version] = {}
    for version in versions:
        if version.variant == TWIN:
            continue
        built = (version.engine, version.installed or version.ref)
        key = (*built, repr(definition_of(version, variants).to_json()))
        if key in seen and version.install_name != seen[key].install_name:
            raise VariantError(
                f"{seen[key]} and {version} have the same programs: there is nothing to compare",
                hint="check that both are what you mean; to measure how much identical servers differ, use "
                f"{shell_line('./tidemark', 'calibrate', version)}",
            )
        if key in seen:
            raise VariantError(
                f"{seen[key]} and {version} are the same: same version, settings and build",
                hint="to measure how much identical servers differ, use ./tidemark calibrate, or "
                f"{version.plain}#{TWIN}",
            )
        seen[key] = version


def recorded(variants: Variants, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the definitions of the variants called `names`, as a session records them."""
    return {name: variants[name].to_json() for name in sorted({*names} & variants.keys() - {EVERY})}


def _named(text: str, option: str) -> tuple[str, str, str]:
    """Return variant, key and value of `[VARIANT:]KEY=VALUE`. Raises VariantError."""
    head, equals, value = text.partition("=")
    name, colon, key = head.strip().rpartition(":")
    if not equals or not key or "\n" in text:
        raise VariantError(f"'{text[:80]}' is not of the form NAME=VALUE", where=option)
    if colon or option == "--patch":
        _require_variant(name if colon else key, f"{option} {text[:80]}")
    return name, key.strip(), value.strip()


def _of_variant(text: str, option: str) -> tuple[str, str]:
    """Return variant and word of `[VARIANT:]WORD`. Raises VariantError."""
    name, colon, word = text.strip().rpartition(":")
    if colon:
        _require_variant(name, f"{option} {text[:80]}")
    return name, word.strip()


def _require_variant(name: str, where: str) -> None:
    if not is_variant(name):
        raise VariantError(
            f"'{name[:40]}' is not a valid variant",
            where=where,
            hint="use letters, digits, dots, hyphens and underscores, beginning with a letter or digit",
        )


def _not_defined(version: Version, variants: Variants) -> VariantError:
    names = ", ".join(sorted(variants.keys() - {EVERY}))
    name = version.variant
    return VariantError(
        f"{version} is not defined" + (f"; the variants are: {names}" if names else ""),
        hint=f"define it with --set {name}:SETTING=VALUE, --build {name}:CFLAGS=-O3, --patch {name}=FILE "
        f"or --extension {name}:EXTENSION=REPO@REF; "
        f"the same build a second time is called #{TWIN}",
    )


def _option_of(variant: Variant) -> str:
    given = {
        "--set": variant.settings,
        "--build": variant.choices != PLAIN,
        "--index": variant.indexes,
        "--companion": variant.companions,
        "--extension": variant.extensions,
        "--layer": variant.layers,
        "--initdb": variant.initdb,
        "--patch": variant.patches,
    }
    return next((option for option, values in given.items() if values), "--set")

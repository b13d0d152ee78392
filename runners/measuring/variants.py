"""The variants of a session: `postgres@18.6#NAME` with settings, patches, extensions and so on of its own."""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from build import host
from build.errors import did_you_mean, shell_line
from build.extension import pinned, require_extensible
from build.home import Home
from build.progress import Progress
from build.request import RECIPES
from build.version import Engine, Version, is_variant
from history.series.variants import TWIN
from suites.additions.registry import require_companions
from suites.additions.variant import KEYS, OPTION, SETTING, UNCHANGED, Variant, VariantError
from suites.layers.choice import layers_of

Variants = Mapping[str, Variant]
"""The variants of a session by name; the empty name is what every version of the session gets."""

EVERY = ""
"""The name of the variant that every version is."""


def read_variants(words: Sequence[str], known: Collection[str] = tuple(KEYS)) -> Variants:
    """Return the variants that words such as `mem:setting.work_mem=8MB` define; `known` keys can be named.

    Without `NAME:` they are for every version. Raises VariantError, and what the table of keys raises:
    ChoiceError, ExtraIndexError, ExtensionError, LayerError, InitdbError or GitError.
    """
    found: dict[str, Variant] = {}
    for word in words:
        where = f"{OPTION} {word[:80]}"
        head, equals, value = word.partition("=")
        name, colon, path = head.strip().rpartition(":")
        kind, _, within = path.partition(".")
        if not equals or not path or "\n" in word:
            raise VariantError(
                f"'{word[:80]}' is not of the form [VARIANT:]KEY=VALUE",
                where=OPTION,
                hint=f"write a server setting as {SETTING.name}.work_mem=8MB",
            )
        if colon and not is_variant(name):
            raise VariantError(
                f"'{name[:40]}' is not a valid variant",
                where=where,
                hint="use letters, digits, dots, hyphens and underscores, beginning with a letter or digit",
            )
        if kind not in known or bool(within) is not bool(KEYS[kind].names):
            forms = ", ".join(KEYS[key].form for key in known)
            raise VariantError(
                f"'{path[:40]}' is no key here",
                where=where,
                hint=f"{did_you_mean(kind, known)} the keys are: {forms}".strip(),
            )
        found[name] = found.get(name, UNCHANGED).plus(KEYS[kind], within, value.strip())
    return found


def variants_of(arguments: argparse.Namespace) -> Variants:
    """Return the variants that the command line of something measured defines.

    Raises what `read_variants` raises, and VariantError for a key that a plain version cannot have.
    """
    variants = read_variants(arguments.variants)
    every = variants.get(EVERY, UNCHANGED)
    for key in KEYS.values():
        if key.needs_variant and getattr(every, key.field):
            raise VariantError(
                f"{key.name} is for a variant, so that results of plain versions stay those of their source",
                where=f"{OPTION} {key.name}",
                hint=f"write {OPTION} NAME:{key.form}, and name the version VERSION#NAME",
            )
    return variants


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
    return every if own is every else every.with_(own)


def compiled_for_layers(definition: Variant, engine: Engine, of_suite: Mapping[str, str]) -> Variant:
    """Return a definition that is compiled with TLS if its layers, or those of its suite, have it."""
    if not layers_of({**of_suite, **definition.layers}).tls:
        return definition
    return replace(definition, build=definition.build.with_options(RECIPES[engine].TLS_OPTIONS))


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
            where=f"{OPTION} {name}:",
            hint=f"name the variant among the versions, such as: {plain} '{plain}#{name}'",
        )
    for command in {variant.build.compiler for variant in variants.values()} - {""}:
        host.compiler(command)
    for file in (file for variant in variants.values() for file in variant.patches):
        if not file.is_file():
            raise VariantError(f"there is no file {file}", where=f"{OPTION} patch")
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


def _not_defined(version: Version, variants: Variants) -> VariantError:
    names = ", ".join(sorted(variants.keys() - {EVERY}))
    name = version.variant
    return VariantError(
        f"{version} is not defined" + (f"; the variants are: {names}" if names else ""),
        hint=f"define it with {OPTION} {name}:KEY=VALUE, such as {name}:{SETTING.name}.work_mem=8MB; "
        f"the same build a second time is called #{TWIN}",
    )

"""What a plan says of a variant of the versions that it follows."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic import ConfigDict, create_model

from build.addresses import without_secrets
from build.errors import TidemarkError
from build.extension import EXTENSION_DIGITS
from build.home import ROOT
from build.version import Version
from runners.measuring.variants import Variants
from suites.additions.variant import KEYS, UNCHANGED, Variant, VariantKey
from suites.layers.choice import layers_of


def _form(key: VariantKey[Any]) -> Any:
    """Return the type of what a plan has at a key; choices of a build alone add up by name."""
    if not key.is_table:
        return list[str]
    return dict[str, str | list[str]] if key.field == "build" else dict[str, str]


_FORMS: dict[str, Any] = {key.field: (_form(key), None) for key in KEYS.values()}

_Table = create_model("_Table", __config__=ConfigDict(extra="forbid"), **_FORMS)
"""A table `[variants.NAME]`, whose keys are the fields of Variant."""


def planned(table: object) -> Variant:
    """Return the variant that a table `[variants.NAME]` defines; its patches are relative to this checkout.

    Raises ValueError, or pydantic's ValidationError, which is one.
    """
    kept, variant = _Table.model_validate(table).model_dump(exclude_unset=True), UNCHANGED
    for key in KEYS.values():
        for name, value in key.entries(kept.get(key.field)):
            try:
                variant = variant.plus(key, name, value)
            except TidemarkError as error:
                raise ValueError(f"{key.field}{name and '.'}{name}: {error.what}") from error
    if variant == UNCHANGED:
        raise ValueError(f"it has none of: {', '.join(_FORMS)}")
    try:
        layers_of(variant.layers)
    except TidemarkError as error:
        raise ValueError(f"layers: {error.what}") from error
    if len(variant.extensions) > 1:
        raise ValueError("extensions: a variant follows one of them; define another variant")
    for extension in variant.extensions:
        if without_secrets(extension.repository) != extension.repository:
            raise ValueError("extensions: the address holds a user name, password or token")
    return replace(variant, patches=tuple(ROOT / patch for patch in variant.patches))


def at_commit(name: str, commit: str) -> str:
    """Return the name of the variant `name` at a commit of its extension: `vec-5bf748b86b12`."""
    return f"{name}-{commit[:EXTENSION_DIGITS]}"


def with_versions(defined: Variants, versions: Iterable[Version]) -> Variants:
    """Return definitions with those of the versions that are called as `at_commit` calls them."""
    found = dict(defined)
    for version in versions:
        name, _, commit = version.variant.rpartition("-")
        followed = defined.get(name)
        if version.variant not in defined and followed is not None and followed.extensions:
            (extension,) = followed.extensions
            found[version.variant] = replace(followed, extensions=(replace(extension, ref=commit),))
    return found

"""What a plan says of a variant of the versions that it follows."""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, model_validator

from build.addresses import without_secrets
from build.errors import TidemarkError
from build.extension import EXTENSION_DIGITS, parse_extension
from build.home import ROOT
from build.recipes.recipe import PLAIN, ChoiceError
from build.version import Version
from runners.measuring.variants import Variant, Variants
from suites.additions.indexes import parse_index
from suites.additions.names import CompanionName
from suites.layers.choice import layers_of
from suites.postgres.initdb_options import require_option


class VariantPlan(BaseModel):
    """What distinguishes the versions that are called `#NAME`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, str] = {}
    """Server settings; `postgres.NAME` is for one engine."""

    build: dict[str, str | tuple[str, ...]] = {}
    """How they are compiled differently: by the keys of build.recipes.choices.KEYS."""

    patches: tuple[str, ...] = ()
    """Paths of patches on the box, relative to this checkout."""

    indexes: tuple[str, ...] = ()
    """Indexes on the loaded tables, as `--index` takes them."""

    companions: tuple[CompanionName, ...] = ()
    """Companion processes of the server."""

    extensions: tuple[str, ...] = ()
    """An extension of Postgres, as `--extension` takes it, which is followed from commit to commit."""

    layers: dict[str, str] = {}
    """How clients reach the server, as `--layer` takes them."""

    initdb: dict[str, str] = {}
    """What the initdb of Postgres is told, as `--initdb` takes it."""

    @model_validator(mode="after")
    def _well_formed(self) -> "VariantPlan":
        additions = (self.indexes, self.companions, self.extensions, self.layers, self.initdb)
        if not any((self.settings, self.build, self.patches, *additions)):
            raise ValueError(
                "it has neither settings nor build, patches, indexes, companions, extensions, layers or "
                "initdb"
            )
        if len(self.extensions) > 1:
            raise ValueError("extensions: a variant follows one of them; define another variant")
        for text in self.extensions:
            if without_secrets(text.partition("=")[2]) != text.partition("=")[2]:
                raise ValueError("extensions: the address holds a user name, password or token")
        self.definition()
        return self

    def definition(self) -> Variant:
        """Return the definition as sessions take it. Raises ValueError."""
        choices = PLAIN
        try:
            for key, values in self.build.items():
                for value in (values,) if isinstance(values, str) else values:
                    choices = choices.plus(key, value)
        except ChoiceError as error:
            raise ValueError(f"build.{key}: {error.what}") from error
        try:
            for index in self.indexes:
                parse_index(index)
        except TidemarkError as error:
            raise ValueError(f"indexes: {error.what}") from error
        try:
            extensions = tuple(map(parse_extension, self.extensions))
        except TidemarkError as error:
            raise ValueError(f"extensions: {error.what}") from error
        try:
            layers_of(self.layers)
        except TidemarkError as error:
            raise ValueError(f"layers: {error.what}") from error
        try:
            for name, value in self.initdb.items():
                require_option(name, value)
        except TidemarkError as error:
            raise ValueError(f"initdb: {error.what}") from error
        patches = tuple(ROOT / patch for patch in self.patches)
        return Variant(
            self.settings,
            choices,
            patches,
            self.indexes,
            self.companions,
            extensions,
            self.layers,
            self.initdb,
        )


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

"""What a plan says of a variant of the versions that it follows."""

from pydantic import BaseModel, ConfigDict, model_validator

from build.errors import TidemarkError
from build.home import ROOT
from build.recipes.choices import PLAIN, ChoiceError
from runners.measuring.variants import Variant
from suites.additions.indexes import parse_index
from suites.additions.names import CompanionName


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

    @model_validator(mode="after")
    def _well_formed(self) -> "VariantPlan":
        if not any((self.settings, self.build, self.patches, self.indexes, self.companions)):
            raise ValueError("it has neither settings nor build, patches, indexes or companions")
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
        patches = tuple(ROOT / patch for patch in self.patches)
        return Variant(self.settings, choices, patches, self.indexes, self.companions)

"""The specification of a build, and the key that identifies compiles with the same binaries."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from build import host
from build.recipes import relinking
from build.recipes.choices import PLAIN, BuildChoices
from build.recipes.engines import RECIPES
from build.recipes.recipe import Recipe, with_words
from build.sources import git
from build.sources.patching import PatchError
from build.sources.source import Source
from build.version import Version

FORMAT = 1
"""Incremented if builds change in a way that recipe, source and compiler do not show."""


@dataclass(frozen=True)
class Patch:
    """A patch file, applied to the source before it is configured."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class BuildSpec:
    """Everything that determines the result of a compile."""

    source: Source
    recipe: Recipe
    patches: tuple[Patch, ...]
    compiler: host.Compiler
    choices: BuildChoices = PLAIN
    """What a variant chose; recipe and compiler, and so the key, follow from it."""

    @property
    def version(self) -> Version:
        """The version as the user wrote it."""
        return self.source.version

    @cached_property
    def key(self) -> str:
        """Hex SHA-256 of the canonical JSON of source digest, recipe, patches, compiler and FORMAT."""
        content = {
            "format": FORMAT,
            "engine": self.recipe.engine,
            "source": self.source.digest,
            "recipe": self.recipe.identity(),
            "patches": [patch.sha256 for patch in self.patches],
            "compiler": asdict(self.compiler),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def build_spec(
    source: Source,
    patches: Sequence[Patch],
    choices: BuildChoices = PLAIN,
    slim: Sequence[str] | None = None,
    *,
    relinks: bool = False,
) -> BuildSpec:
    """Return the specification for compiling a source on this machine, with its recipe and compiler.

    `choices` are those of a variant. `slim` are the programs that a slim build needs besides the server; None
    for a whole build, which is also returned where an engine has no slim one. With `relinks` the build keeps
    what its server is linked from.

    Raises RecipeError if the release is older than the recipes of its engine, HostError without the compiler.
    """
    recipes, release = RECIPES[source.version.engine], release_of(source)
    slim_recipe = None if slim is None else recipes.slim_recipe
    if slim is None or slim_recipe is None:
        recipe = recipes.recipe(release, host.has_library)
    else:
        recipe = slim_recipe(release, host.has_library, slim)
    chosen = choices.with_(relinking.CHOICES) if relinks else choices
    recipe = with_words(recipe, recipes.configure_words(chosen, recipe.flags))
    if relinks:
        recipe = relinking.relinkable(recipe, recipes.LINK)
    return BuildSpec(source, recipe, tuple(patches), host.compiler(choices.compiler), choices)


def release_of(source: Source) -> str:
    """Return the release of a source: that of the tarball, or the one that a commit's tree names."""
    if source.commit is None:
        return source.version.ref
    module = RECIPES[source.version.engine]
    text = git.Mirror(source.location, source.commit.mirror).read(source.commit, module.VERSION_FILE)
    return module.release_of(text)


def read_patches(paths: Sequence[Path]) -> tuple[Patch, ...]:
    """Read and hash the patch files. Raises PatchError if one cannot be read."""
    return tuple(_read_patch(path) for path in paths)


def _read_patch(path: Path) -> Patch:
    try:
        return Patch(path.resolve(), hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise PatchError(f"the patch {path} cannot be read", where=str(error)) from error

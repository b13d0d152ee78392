"""Which build is asked for, its specification, and the key of compiles with the same binaries."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from build import host
from build.engines import EngineRegistry
from build.extension import Extension
from build.recipes import mariadb, mysql, postgres
from build.recipes.recipe import PLAIN, BuildChoices, Recipe, RecipeModule, with_words
from build.relink import RELINKED, relinkable
from build.sources import git
from build.sources.patching import PatchError
from build.sources.source import Source
from build.version import Engine, Version

RECIPES: EngineRegistry[RecipeModule] = EngineRegistry(
    "recipes", __name__, {Engine.POSTGRES: postgres, Engine.MYSQL: mysql, Engine.MARIADB: mariadb}
)
"""The module with the recipes of each engine."""

FORMAT = 1
"""Incremented if builds change in a way that recipe, source and compiler do not show."""


@dataclass(frozen=True)
class Patch:
    """A patch file, applied to the source before it is configured."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class BuildRequest:
    """Which build is asked for."""

    version: Version

    patches: tuple[Path, ...] = ()
    """The patch files, in the order in which they are applied."""

    choices: BuildChoices = PLAIN
    """What a variant compiles differently."""

    git_source: str | None = None
    """The URL or path of a git repository that is tried before upstream; None for the engine's variable, such
    as `$TIDEMARK_GIT_POSTGRES`."""

    slim: tuple[str, ...] | None = None
    """The programs that are needed besides the server, where a slim build will do: a whole one is taken if it
    is there, but not compiled. None where only a whole one will do."""

    relinks: bool = False
    """Whether the build keeps what its server is linked from, which an imported one does not."""

    extensions: tuple[Extension, ...] = ()
    """What is compiled for it and installed into it; the server is then a whole build."""

    @property
    def server(self) -> "BuildRequest":
        """The build that is asked for without its extensions."""
        return replace(self, extensions=(), slim=None)

    @property
    def is_plain(self) -> bool:
        """Whether it is compiled as its recipe says, from the source as it is."""
        return not (self.patches or self.relinks) and self.choices == PLAIN

    @cached_property
    def read_patches(self) -> tuple[Patch, ...]:
        """The patches with their digests. Raises PatchError if one cannot be read."""
        return tuple(_read_patch(path) for path in self.patches)


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


def build_spec(source: Source, request: BuildRequest) -> BuildSpec:
    """Return the specification for compiling a source on this machine, with its recipe and compiler.

    It is that of a whole build where an engine has no slim one. Raises RecipeError if the release is older
    than the recipes of its engine, HostError without the compiler, and PatchError.
    """
    recipes, release = RECIPES[source.version.engine], release_of(source)
    if request.slim is None or recipes.slim_recipe is None:
        recipe = recipes.recipe(release, host.has_library)
    else:
        recipe = recipes.slim_recipe(release, host.has_library, request.slim)
    choices = request.choices
    chosen = choices.with_(RELINKED) if request.relinks else choices
    recipe = with_words(recipe, recipes.configure_words(chosen, recipe.flags))
    if request.relinks:
        recipe = relinkable(recipe, recipes.LINK)
    return BuildSpec(source, recipe, request.read_patches, host.compiler(choices.compiler), choices)


def release_of(source: Source) -> str:
    """Return the release of a source: that of the tarball, or the one that a commit's tree names."""
    if source.commit is None:
        return source.version.ref
    module = RECIPES[source.version.engine]
    text = git.Mirror(source.location, source.commit.mirror).read(source.commit, module.VERSION_FILE)
    return module.release_of(text)


def _read_patch(path: Path) -> Patch:
    try:
        return Patch(path.resolve(), hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise PatchError(f"the patch {path} cannot be read", where=str(error)) from error

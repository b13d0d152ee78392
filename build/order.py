"""What is to be compiled, and the key that says whether two compiles give the same binaries."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from build import host
from build.errors import TidemarkError
from build.recipes.engines import RECIPES
from build.recipes.recipe import Recipe
from build.sources import git
from build.sources.source import Source
from build.version import Version

FORMAT = 1
"""Raised when the way builds are made changes without a trace in recipe, source or compiler."""


class PatchError(TidemarkError):
    """A patch cannot be read, or does not apply."""


@dataclass(frozen=True)
class Patch:
    """A change to the source, applied before it is configured."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Order:
    """All that decides what a compile gives."""

    source: Source
    recipe: Recipe
    patches: tuple[Patch, ...]
    compiler: host.Compiler

    @property
    def version(self) -> Version:
        """As it was asked for."""
        return self.source.version

    @cached_property
    def key(self) -> str:
        """Hex SHA-256 over source digest, recipe, patches, compiler and FORMAT, as canonical JSON."""
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


def order(source: Source, patches: Sequence[Patch]) -> Order:
    """Resolve recipe and compiler for a source on this machine.

    Raises RecipeError when the release is too old for its engine's recipes, HostError without a compiler.
    """
    recipe = RECIPES[source.version.engine].recipe(release_of(source), host.has_library)
    return Order(source, recipe, tuple(patches), host.compiler())


def release_of(source: Source) -> str:
    """What the source calls itself: of a tarball its release, of a commit what is written in its tree."""
    if source.commit is None:
        return source.version.ref
    module = RECIPES[source.version.engine]
    text = git.Mirror(source.location, source.commit.mirror).read(source.commit, module.VERSION_FILE)
    return module.release_of(text)


def read_patches(paths: Sequence[Path]) -> tuple[Patch, ...]:
    """Hash the patch files. Raises PatchError when one cannot be read."""
    return tuple(_read_patch(path) for path in paths)


def _read_patch(path: Path) -> Patch:
    try:
        return Patch(path.resolve(), hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        raise PatchError(f"the patch {path} cannot be read", where=str(error)) from error

"""Builds whose server can be linked again in seconds, with its functions in another order.

Where functions lie in memory decides which of them share cache lines, and which branches share entries of the
processor's predictors. Two links of the same objects are therefore not equally fast (Mytkowicz et al.,
Producing Wrong Data Without Doing Anything Obviously Wrong, ASPLOS 2009).
"""

from dataclasses import replace

from build.engines import ENGINES
from build.recipes.choices import BuildChoices
from build.recipes.recipe import Recipe, RecipeError, ServerLink, Stage

LINKER = "ld.lld"
"""The linker that can shuffle sections."""

CHOICES = BuildChoices(flags="-ffunction-sections", linker_flags="-fuse-ld=lld")
"""Every function gets a section of its own, the unit that the linker moves."""

FOLDER = "relink"
"""The folder below the prefix with all that the server is linked from."""

INPUTS = "inputs"
"""The folder below FOLDER that the linker's own archive of its inputs is unpacked to."""

RESPONSE = "response.txt"
"""The file in it with the words of the linker's command line; the paths in it are relative to the folder."""

# The linker writes an archive of what it reads, with paths and options that no longer name the build tree.
_KEEP = f"""set -e
output="$1"; into="{{staging}}$2/{FOLDER}"; shift 2
mkdir -p "$into"
rm -f "$output"
LLD_REPRODUCE="$into/{INPUTS}.tar" "$@"
tar -xf "$into/{INPUTS}.tar" -C "$into"
rm "$into/{INPUTS}.tar"
chmod -R go+rX "$into"
"""


def relinkable(recipe: Recipe, link: ServerLink | None) -> Recipe:
    """Return the recipe of a build that keeps what its server is linked from.

    It is configured with CHOICES. A last stage links the server once more, while the linker records what it
    reads. Raises RecipeError for an engine without a `link`.
    """
    if link is None:
        raise RecipeError(
            f"linking a server of {ENGINES[recipe.engine].title} once more has not been tried",
            where="--layouts",
            hint="omit --layouts",
        )
    keep = Stage(
        "keep what the server is linked from",
        ("sh", "-c", _KEEP, "keep", link.output, recipe.prefix, *link.command),
    )
    return replace(recipe, stages=(*recipe.stages, keep))

"""The parts of a benchmark, of which `$TIDEMARK_BENCH_PARTS` selects some."""

import os
from collections.abc import Collection

from build.errors import TidemarkError

VARIABLE = "TIDEMARK_BENCH_PARTS"


def chosen_parts(
    bench: str, parts: Collection[str], on_request: Collection[str] = (), *, modifiers: Collection[str] = ()
) -> list[str]:
    """Return the parts of a benchmark to run, in order: `parts`, unless the variable selects others.

    `on_request` are parts that only run when named; `modifiers` are words that change how others run.
    Raises TidemarkError for a word that is none of them, because a benchmark without a part would pass.
    """
    known = dict.fromkeys((*parts, *on_request, *modifiers))
    words = os.environ.get(VARIABLE, " ".join(parts)).split()
    unknown = [f"part '{word}'" for word in words if word not in known]
    if unknown or not set(words) - set(modifiers):
        raise TidemarkError(
            f"bench {bench} has no {unknown[0] if unknown else 'part to run'}",
            where=f"${VARIABLE}",
            hint=f"the parts are: {', '.join(known)}",
        )
    return words

"""What a search is going to take, said in one line before it begins, from what this machine has recorded."""

import math

from build.cache.store import compile_seconds
from build.home import Home
from build.progress import in_words
from build.version import Engine
from history.counts import counted
from runners.bisect.domain.question import CandidateRange


def compiles_of(candidates: int, built: int) -> int:
    """Return about how many of the candidates and good are compiled, of which `built` are there already.

    Both ends are, and each further one halves what is left.
    """
    return min(candidates + 1 - built, 2 + math.ceil(math.log2(candidates)))


def expected_search(
    span: CandidateRange, engine: Engine, built: int, home: Home, budget_seconds: float, extension: str = ""
) -> str:
    """Return the line: candidates, and compiles with their minutes, of the server or of an extension."""
    compiles = compiles_of(span.length, built)
    parts = [counted(span.length, "candidate")]
    if compiles:
        seconds = compile_seconds(home, engine, slim=not extension, extension=extension)
        took = "not known yet how long" if seconds is None else f"about {in_words(compiles * seconds)}"
        parts.append(f"about {counted(compiles, 'compile')} ({took})")
    within = "" if math.isinf(budget_seconds) else f"; within a budget of {in_words(budget_seconds)}"
    return f"expected: {', '.join(parts)}, measured until one is certain{within}"

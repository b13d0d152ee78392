"""The commits between good and bad as a graph, in which only those that can change the server are left."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lineage:
    """A commit after good with its parents."""

    commit: str
    parents: tuple[str, ...]
    """In git's order; those that are not after good have good's server, as far as the search knows."""

    same: str | None
    """The parent whose server the commit has, when it differs from that one in nothing that can matter."""


@dataclass(frozen=True)
class CommitGraph:
    """The commits that can matter."""

    commits: tuple[str, ...]
    """Ancestors first; the last one is bad, or the commit whose server bad has."""

    parents: tuple[tuple[int, ...], ...]
    """The parents of each commit, in git's order, as places counted from 1; 0 is good, or older than good. A
    parent from which another parent descends is left out."""

    @property
    def is_linear(self) -> bool:
        """Whether every commit has the one before it as its only parent."""
        return all(ups == (place,) for place, ups in enumerate(self.parents))


def simplify(lineages: Sequence[Lineage], bad: str) -> CommitGraph:
    """Return the graph of the commits that can matter to `bad`; `lineages` have ancestors first.

    As in git's own simplified histories, a merge that has the server of one parent stands for that parent, so
    that what it does not take from the others is left out.
    """
    stands: dict[str, int] = {}
    names, parents, ancestors = [""], [()], [0]  # type: list[str], list[tuple[int, ...]], list[int]
    for lineage in lineages:
        if lineage.same is not None:
            stands[lineage.commit] = stands.get(lineage.same, 0)
            continue
        ups = tuple(dict.fromkeys(stands.get(parent, 0) for parent in lineage.parents))
        kept = tuple(
            up for up in ups if not any(_holds(ancestors[other], up) for other in ups if other != up)
        )
        place = stands[lineage.commit] = len(names)
        names.append(lineage.commit)
        parents.append(kept)
        ancestors.append(1 << place | _union(ancestors[up] for up in kept))
    needed = [place for place in range(1, len(names)) if ancestors[stands[bad]] >> place & 1]
    places = {0: 0} | {place: new for new, place in enumerate(needed, 1)}
    return CommitGraph(
        tuple(names[place] for place in needed),
        tuple(tuple(places[up] for up in parents[place]) for place in needed),
    )


def _union(sets: Iterator[int]) -> int:
    union = 0
    for commits in sets:
        union |= commits
    return union


def _holds(ancestors: int, place: int) -> bool:
    """Whether a place is among these ancestors; good is an ancestor of everything but itself."""
    return bool(ancestors >> place & 1) if place else bool(ancestors)


def merged_by(lineages: Sequence[Lineage], bad: str) -> Mapping[str, str]:
    """Return commit -> the merge among the first parents of `bad` that brought it, for all others."""
    ups = {lineage.commit: lineage.parents for lineage in lineages}
    line: list[str] = []
    at: str | None = bad
    while at in ups:
        line.append(at)
        at = next(iter(ups[at]), None)
    known, found = set(line), dict[str, str]()
    for merge in reversed(line):
        waiting = list(ups[merge][1:])
        while waiting:
            commit = waiting.pop()
            if commit in ups and commit not in known:
                known.add(commit)
                found[commit] = merge
                waiting += ups[commit]
    return found

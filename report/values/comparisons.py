"""Comparisons within one session, each computed once for all pages that show it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from build.version import Version
from history.comparison.compare import as_judged, compare
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison, ContenderComparison
from history.errors import ComparisonError, stored_version
from history.store.reader import Reader
from report.values.catalog import SessionEntry


def base_of(contender: Version, versions: Sequence[Version]) -> Version:
    """Return what a contender is compared with: itself without its patch, else the first version.

    `versions` are those of the session, in its order.
    """
    own = replace(contender, variant="")
    return own if own in versions and own != contender else versions[0]


class Comparisons:
    """Compares two versions of a session; it remembers what it found."""

    def __init__(self, history: Reader) -> None:
        self.history = history
        self._found: dict[tuple[str, str, str], ContenderComparison | None] = {}

    def of(self, entry: SessionEntry, base: str, contender: str) -> ContenderComparison | None:
        """Return a contender against the base in a session; None when its rounds were pruned, or are none."""
        key = (entry.uid, base, contender)
        if key not in self._found:
            self._found[key] = compared(self.history, entry, base, contender)
        return self._found[key]

    def of_session(self, entry: SessionEntry, versions: Sequence[Version], most: int) -> Comparison:
        """Return the contenders of a session, at most so many, each against its base.

        They are not remembered. `versions` are two or more, the base first. Raises ComparisonError.
        """
        uid, options = entry.uid, options_of(entry)
        found: list[ContenderComparison] = []
        for base, group in groupby(versions[1 : most + 1], lambda contender: base_of(contender, versions)):
            contenders = list(group)
            known = [self._found.get((uid, str(base), str(contender))) for contender in contenders]
            missing = [contender for contender, made in zip(contenders, known, strict=True) if not made]
            made = iter(compare(self.history, base, missing, options).contenders) if missing else iter(())
            found += [comparison or next(made) for comparison in known]
        return Comparison(versions[0], tuple(found), as_judged(options, found), self.history.where)


def options_of(entry: SessionEntry, metric: str = "", steps: tuple[str, ...] = ()) -> CompareOptions:
    """Return how a session is compared: by the threshold that it was to confirm a change with, if it was.

    Without a metric it is that of the session, and without steps all.
    """
    usual = CompareOptions()
    return CompareOptions(
        session=entry.uid,
        steps=steps,
        metric=metric or usual.metric,
        threshold_percent=usual.threshold_percent if entry.threshold is None else 100 * entry.threshold,
    )


def compared(
    history: Reader,
    entry: SessionEntry,
    base: str,
    contender: str,
    metric: str = "",
    steps: tuple[str, ...] = (),
) -> ContenderComparison | None:
    """Return a contender against the base in a session; None when its rounds were pruned, or are none."""
    options = options_of(entry, metric, steps)
    try:
        (found,) = compare(history, stored_version(base), [stored_version(contender)], options).contenders
    except ComparisonError:
        return None
    return found

"""Comparisons within one session, each computed once for all pages that show it."""

from collections.abc import Sequence

from build.version import Version
from history.comparison.compare import CompareOptions, ComparisonError, as_judged, compare
from history.comparison.result import Comparison, ContenderComparison
from history.errors import stored_version
from history.store.reader import Reader


class Comparisons:
    """Compares two versions of a session; it remembers what it found."""

    def __init__(self, history: Reader) -> None:
        self.history = history
        self._found: dict[tuple[str, str, str], ContenderComparison | None] = {}

    def of(self, uid: str, base: str, contender: str) -> ContenderComparison | None:
        """Return a contender against the base in a session; None when its rounds were pruned, or are none."""
        key = (uid, base, contender)
        if key not in self._found:
            try:
                (self._found[key],) = self._compare(uid, stored_version(base), [stored_version(contender)])
            except ComparisonError:
                self._found[key] = None
        return self._found[key]

    def of_session(self, uid: str, base: Version, contenders: Sequence[Version]) -> Comparison:
        """Return several contenders of a session, which are not remembered. Raises ComparisonError."""
        missing = [one for one in contenders if not self._found.get((uid, str(base), str(one)))]
        made = iter(self._compare(uid, base, missing)) if missing else iter(())
        found = tuple(self._found.get((uid, str(base), str(one))) or next(made) for one in contenders)
        options = as_judged(CompareOptions(session=uid), found)
        return Comparison(base, found, options, self.history.where)

    def _compare(
        self, uid: str, base: Version, contenders: Sequence[Version]
    ) -> tuple[ContenderComparison, ...]:
        return compare(self.history, base, contenders, CompareOptions(session=uid)).contenders

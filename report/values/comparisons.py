"""Comparisons within one session, each computed once for all pages that show it."""

from build.version import parse_version
from history.comparison.compare import CompareOptions, ComparisonError, compare
from history.comparison.result import ContenderComparison
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
            self._found[key] = self._compared(*key)
        return self._found[key]

    def _compared(self, uid: str, base: str, contender: str) -> ContenderComparison | None:
        options = CompareOptions(session=uid)
        try:
            (found,) = compare(
                self.history, parse_version(base), [parse_version(contender)], options
            ).contenders
        except ComparisonError:
            return None
        return found

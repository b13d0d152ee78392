"""Whose a change is, by the rules of a plan: the last rule that matches counts, as in a CODEOWNERS file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from history.changes.repository import Change
from history.changes.rules.path_globs import matches
from history.changes.stored_rules import Owner

MAX_RULES = 3
"""The rules by which one change has owners at most: a commit that touches everything is not everybody's."""


@dataclass(frozen=True)
class OwnerRule:
    """Whose changes in some suites and steps are, or those of commits that touch some files."""

    paths: tuple[str, ...] = ()
    """Patterns of `path_globs`; empty for a rule that matches whatever the commit is."""

    suites: tuple[str, ...] = ()
    """Empty for all."""

    steps: tuple[str, ...] = ()
    """Of which one is among the steps that the change is told by; empty for all."""

    assignee: str = ""
    """The account to which issues are assigned; empty for none."""

    mentions: tuple[str, ...] = ()
    """The accounts and teams that issues mention."""

    def __str__(self) -> str:
        """Return such as `paths src/backend/access/**; suites write-heavy`."""
        parts = (("paths", self.paths), ("suites", self.suites), ("steps", self.steps))
        return "; ".join(f"{name} {', '.join(values)}" for name, values in parts if values) or "all changes"

    def matches(self, change: Change, path: str | None) -> bool:
        """Return whether it is about a change in a file; None where its files are not known."""
        steps = {member.key.step for member in change.leading}
        if (self.suites and change.suite not in self.suites) or (self.steps and steps.isdisjoint(self.steps)):
            return False
        if not self.paths:
            return True
        return path is not None and any(matches(pattern, path) for pattern in self.paths)

    def owners(self) -> Iterator[Owner]:
        """Yield whom it names, the assignee first."""
        if self.assignee:
            yield Owner(self.assignee, True, str(self))
        yield from (Owner(account, False, str(self)) for account in self.mentions)


def owners_of(rules: Sequence[OwnerRule], change: Change, paths: Sequence[str] | None) -> tuple[Owner, ...]:
    """Return the owners of a change, each once; of several assignees the first is it.

    `paths` are the files of the one commit that it comes from; None if that is not known: no rule with paths
    matches then. Each file has the owners of the last rule that matches. The rule of most files comes first.
    """
    files: Sequence[str | None] = paths or [None]
    found = (next((rule for rule in reversed(rules) if rule.matches(change, path)), None) for path in files)
    counts = Counter(rule for rule in found if rule is not None)
    owners: dict[str, Owner] = {}
    for rule, _ in counts.most_common(MAX_RULES):
        for owner in rule.owners():
            has_assignee = any(other.is_assignee for other in owners.values())
            mentioned = Owner(owner.account, owner.is_assignee and not has_assignee, owner.rule)
            owners.setdefault(owner.account, mentioned)
    return tuple(owners.values())

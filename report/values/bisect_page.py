"""What the page of a bisect shows. The search lives to the right of this room, which fills it in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class BisectPosition:
    """One commit or release between good and bad."""

    position: int
    """0 is good."""

    commit: str
    """Abbreviated, or the release."""

    subject: str
    author: str
    date: str
    probability: float
    ratio: float | None
    """The ratio to good, where it was measured."""

    low: float | None
    high: float | None
    rounds: int
    excluded: str
    """Why it could not be measured; empty for one that could."""

    address: str
    """Upstream's page of the commit; empty when there is none."""


@dataclass(frozen=True)
class BisectRound:
    """One measured round: good, and other positions beside it."""

    session: str
    number: int
    ratios: Mapping[int, float]
    """The ratio to good by position."""


@dataclass(frozen=True)
class CommitCosts:
    """The costs of a query that moved with a commit."""

    commit: str
    rows: tuple[tuple[str, str, str, str, str, str], ...]
    """Cost, unit, what a query costs before and after, the ratio and its interval."""


@dataclass(frozen=True)
class CommitFunctions:
    """The functions that changed most in a commit, against the one before it."""

    commit: str
    is_exact: bool
    """Whether they are counts of instructions per query, which are µs otherwise."""

    rows: tuple[tuple[str, float, float, float], ...]
    """Function, its figures before and after, and the change; the first row is of all functions."""


@dataclass(frozen=True)
class CommitMessage:
    """What a commit says of itself."""

    commit: str
    author: str
    date: str
    message: str


@dataclass(frozen=True)
class BisectPage:
    """A bisect."""

    uid: str
    question: str
    step: str
    source: str
    """The git source of its commits; empty for releases."""

    headline: str
    """Its verdict in one line, or that there is none yet."""

    box: str
    began_at: datetime
    updated_at: datetime
    change: str | None
    """The fingerprint of the change that it looks for."""

    is_decided: bool
    culprit: BisectPosition | None
    """The commit that its verdict names; None without a verdict, or if that names none or several."""

    confidence: float
    nobody: float | None
    """The posterior probability of no single culprit; None if the verdict names several."""

    positions: tuple[BisectPosition, ...]
    rounds: tuple[BisectRound, ...]
    round_name: str
    """What one of `rounds` is called: `pass` where instructions are counted, else `round`."""

    counted: tuple[tuple[str, str, float, int], ...]
    """Commit, subject, ratio of instructions per query to good, and passes, of what was counted first."""

    collapsed: tuple[tuple[str, str, str], ...]
    """Commit, subject and reason of commits that cannot change a server."""

    log: tuple[tuple[datetime, str, str], ...]
    """Time, kind and session of its events."""

    hints: tuple[str, ...]
    steps: tuple[tuple[str, str, str], ...]
    """Commit, subject and change of the steps that make up the difference, and the sum; empty if the search
    ended with its first answer."""

    commands: tuple[str, ...]
    """How to measure the change again."""

    costs: tuple[CommitCosts, ...]
    """Of each commit that its verdict names and with which costs moved for certain."""

    functions: tuple[CommitFunctions, ...]
    """Of each commit that its verdict names; empty without profiles."""

    messages: tuple[CommitMessage, ...]
    """Of each commit that its verdict names; empty for releases."""

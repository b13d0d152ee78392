"""Whether a word has a pull request tried: who said it, and whether the commit is the one at that time.

A label is a word, too. Who set it, and when, is asked of GitHub, as that of a comment.

Dates in commits are whatever their author wrote. When a commit became the head of a pull request is known
from the activity of its branch, which has GitHub's own clock.
"""

from dataclasses import dataclass
from datetime import datetime

from build.version import Engine
from runners.nightly.inputs import TryInputs, box_for_try
from runners.nightly.plan import Plan, PlanError
from runners.own_workload.arguments import USUAL_SUITE
from runners.pull_requests.source import (
    Account,
    Comment,
    PullRequest,
    PullRequestError,
    Push,
    SourceRepository,
    is_before,
)
from runners.pull_requests.word import LABEL, TRY, WORD, TryWord, WordError

TRUSTED = ("admin", "write")
"""The rights of people whose word counts. GitHub says `write` of who may maintain, and `read` of triage."""

PROFILE = "smoke"


class NoWordError(PullRequestError):
    """There is no word of somebody who may write. It is not answered: anybody could have comments written."""


@dataclass(frozen=True)
class SaidWord:
    """What somebody who may write asks for, in a comment or by the label."""

    word: TryWord
    author: str
    said_at: datetime
    head: str = ""
    """The head of the pull request in the event of the label; empty for a comment, whose event has none."""

    @property
    def again(self) -> str:
        """How it is said again."""
        return f"set the label {LABEL} again" if self.head else "say the word again"


@dataclass(frozen=True)
class AcceptedTry:
    """What is to be tried."""

    number: int
    """Of the pull request."""

    commit: str
    """40 hex digits."""

    against: str
    """The branch that it would be merged into."""

    engine: Engine
    box: str
    label: str
    """Of the box's runner."""

    suite: str
    profile: str
    asked_by: str


def engine_of(plan: Plan, repository: str) -> Engine:
    """Return the engine whose pull requests are those of a repository. Raises PlanError if there is none."""
    for engine, tracked in plan.engines.items():
        if (tracked.pull_requests or "").lower() == repository.lower():
            return engine
    raise PlanError(
        f"the plan tries no pull requests of {repository}",
        hint=f'add pull_requests = "{repository}" to the engine in the plan',
    )


def require_word(github: SourceRepository, number: int, comment: Comment) -> SaidWord:
    """Return what a comment asks for.

    Raises NoWordError unless it is a word in this pull request, of a person who may write in the repository,
    and WordError for a word of such a person that is not understood.
    """
    if not comment.issue_url.lower().endswith(f"/repos/{github.name}/issues/{number}".lower()):
        raise NoWordError(
            f"the comment {comment.id} is not about {github.name}#{number}", where=comment.issue_url
        )
    author = _trusted(github, comment.user, f"the comment {comment.id} was not written", comment.html_url)
    word = TryWord.parse(comment.body)
    if word is None:
        raise NoWordError(f"the comment {comment.id} has no word for Tidemark", where=comment.html_url)
    return SaidWord(word, author, comment.created_at)


def require_label(github: SourceRepository, number: int, head: str) -> SaidWord:
    """Return what the label asks for; `head` is that of the pull request in the event that it was set.

    Raises NoWordError unless it is set, and a person set it last who may write in the repository.
    """
    where = f"{github.name}#{number}"
    last = github.last_labelling(number, LABEL)
    if last is None or last.event != "labeled":
        raise NoWordError(f"the label {LABEL} is not set", where=where)
    author = _trusted(github, last.actor, f"the label {LABEL} was not set", where)
    return SaidWord(TryWord(), author, last.created_at, head)


def _trusted(github: SourceRepository, account: Account | None, what: str, where: str) -> str:
    """Return the login of a person who may write. Raises NoWordError for any other account."""
    if account is None or account.type != "User":
        raise NoWordError(f"{what} by a person", where=where)
    permission = github.permission(account.login)
    if permission not in TRUSTED:
        raise NoWordError(
            f"{account.login} may not write in {github.name}", where=f"their permission is '{permission}'"
        )
    return account.login


def reviewed_commit(said: SaidWord, pull: PullRequest, push: Push | None) -> str:
    """Return the commit that the word is about. Raises PullRequestError if it is not the head any more.

    It is the one that the word names, else the head at the time of the word. `push` is what changed the
    branch of the head last.
    """
    if pull.state != "open":
        raise PullRequestError(f"the pull request is {pull.state}", hint="open it again first")
    if said.word.commit:
        if said.word.commit != pull.head.sha:
            raise PullRequestError(
                f"{said.word.commit[:12]} is not the head of the pull request",
                hint="review its head, and name that one",
            )
        return said.word.commit
    if said.head and said.head != pull.head.sha:
        raise PullRequestError(
            f"the head is no longer {said.head[:12]}, as when the label was set",
            hint=f"review it, and {said.again}",
        )
    if push is None or push.after != pull.head.sha:
        raise PullRequestError(
            "when the head of the pull request was pushed cannot be seen",
            hint=f"name the commit that you have reviewed, with all of its 40 digits: {WORD} {TRY} COMMIT",
        )
    if not is_before(push, said.said_at):
        raise PullRequestError(
            f"the head was pushed after the word, at {push.timestamp:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"review it, and {said.again}",
        )
    return pull.head.sha


def decide(plan: Plan, github: SourceRepository, number: int, said: SaidWord) -> AcceptedTry:
    """Return what a word has tried. Raises TidemarkError for one that cannot be followed."""
    word = said.word
    engine = engine_of(plan, github.name)
    pull = github.pull_request(number)
    commit = reviewed_commit(said, pull, None if word.commit else github.last_push(pull.head))
    box = word.box or next(iter(plan.boxes))
    suite, profile = word.suite or USUAL_SUITE, word.profile or PROFILE
    inputs = TryInputs(engine, commit, pull.base.ref, suite, profile, ())
    if box not in plan.boxes:
        raise WordError(f"the plan has no box '{box[:40]}'", hint=f"its boxes are: {', '.join(plan.boxes)}")
    label = box_for_try(plan, box, inputs).label
    return AcceptedTry(number, commit, pull.base.ref, engine, box, label, suite, profile, said.author)

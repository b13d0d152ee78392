"""Whether a word has a pull request tried: who said it, and whether the commit is the one at that time.

Dates in commits are whatever their author wrote. When a commit became the head of a pull request is known
from the activity of its branch, which has GitHub's own clock.
"""

from dataclasses import dataclass

from build.version import Engine
from runners.nightly.inputs import TryInputs, box_for_try
from runners.nightly.plan import Plan, PlanError
from runners.own_workload.arguments import USUAL_SUITE
from runners.pull_requests.source import (
    Comment,
    PullRequest,
    PullRequestError,
    Push,
    SourceRepository,
    is_before,
)
from runners.pull_requests.word import TryWord, WordError

TRUSTED = ("admin", "write")
"""The rights of people whose word counts. GitHub says `write` of who may maintain, and `read` of triage."""

PROFILE = "smoke"


class NoWordError(PullRequestError):
    """There is no word of somebody who may write. It is not answered: anybody could have comments written."""


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


def require_word(github: SourceRepository, number: int, comment: Comment) -> tuple[TryWord, str]:
    """Return what a comment asks for, and who wrote it.

    Raises NoWordError unless it is a word in this pull request, of a person who may write in the repository,
    and WordError for a word of such a person that is not understood.
    """
    if not comment.issue_url.lower().endswith(f"/repos/{github.name}/issues/{number}".lower()):
        raise NoWordError(
            f"the comment {comment.id} is not about {github.name}#{number}", where=comment.issue_url
        )
    author = comment.user
    if author is None or author.type != "User":
        raise NoWordError(f"the comment {comment.id} was not written by a person", where=comment.html_url)
    permission = github.permission(author.login)
    if permission not in TRUSTED:
        raise NoWordError(
            f"{author.login} may not write in {github.name}", where=f"their permission is '{permission}'"
        )
    word = TryWord.parse(comment.body)
    if word is None:
        raise NoWordError(f"the comment {comment.id} has no word for Tidemark", where=comment.html_url)
    return word, author.login


def reviewed_commit(word: TryWord, pull: PullRequest, push: Push | None, comment: Comment) -> str:
    """Return the commit that the word is about. Raises PullRequestError if it is not the head any more.

    It is the one that the word names, else the head at the time of the word. `push` is what changed the
    branch of the head last.
    """
    if pull.state != "open":
        raise PullRequestError(f"the pull request is {pull.state}", hint="open it again first")
    if word.commit:
        if word.commit != pull.head.sha:
            raise PullRequestError(
                f"{word.commit[:12]} is not the head of the pull request",
                hint="review its head, and name that one",
            )
        return word.commit
    if push is None or push.after != pull.head.sha:
        raise PullRequestError(
            "when the head of the pull request was pushed cannot be seen",
            hint="name the commit that you have reviewed, with all of its 40 digits",
        )
    if not is_before(push, comment.created_at):
        raise PullRequestError(
            f"the head was pushed after the word, at {push.timestamp:%Y-%m-%d %H:%M:%S} UTC",
            hint="review it, and say the word again",
        )
    return pull.head.sha


def decide(plan: Plan, github: SourceRepository, number: int, comment: Comment) -> AcceptedTry:
    """Return what a comment has tried.

    Raises NoWordError, which is not answered, and TidemarkError for the word of a trusted person
    that cannot be followed: what is wrong with it may be told in the pull request.
    """
    word, author = require_word(github, number, comment)
    engine = engine_of(plan, github.name)
    pull = github.pull_request(number)
    commit = reviewed_commit(word, pull, None if word.commit else github.last_push(pull.head), comment)
    box = word.box or next(iter(plan.boxes))
    suite, profile = word.suite or USUAL_SUITE, word.profile or PROFILE
    inputs = TryInputs(engine, commit, pull.base.ref, suite, profile, ())
    if box not in plan.boxes:
        raise WordError(f"the plan has no box '{box[:40]}'", hint=f"its boxes are: {', '.join(plan.boxes)}")
    label = box_for_try(plan, box, inputs).label
    return AcceptedTry(number, commit, pull.base.ref, engine, box, label, suite, profile, author)

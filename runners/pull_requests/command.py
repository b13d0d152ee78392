"""`./tidemark runner pull-request`: the jobs of pull-request.yml before and after the one that measures."""

import sys
from pathlib import Path

from build.errors import TidemarkError
from runners.alerting.tracker import TrackerError
from runners.console import set_job_output
from runners.nightly.plan import load_plan
from runners.pull_requests.decision import NoWordError, SaidWord, decide, require_label, require_word
from runners.pull_requests.source import PullRequestError, SourceRepository, connect, parse_pull
from runners.pull_requests.telling import tell_answer, tell_begun, tell_refused
from runners.pull_requests.word import COMMIT, LABEL

REFUSED = 1

LONGEST_INPUT = 1 << 20


def follow_word(plan: Path, pull: str, comment: int | None, labelled: str) -> int:
    """Decide on the word in a comment, or on the label if it was set on a commit, `labelled`.

    Return 0 and set the outputs of the job, or 1 if it is refused. A person whose word counts is told why.
    The label is taken away whatever comes of it, so that it can be set again. Raises TrackerError when GitHub
    does not say, and NoWordError.
    """
    name, number = parse_pull(pull)
    if (comment is None) is (not labelled):
        raise PullRequestError("the word is in a comment, or is a label", where="--comment, --labelled")
    if labelled:
        require_commit(labelled, "--labelled")
    github = connect(name)
    try:
        said = _said(github, number, comment, labelled)
        asked = decide(load_plan(plan), github, number, said)
    except (TrackerError, NoWordError):
        raise
    except TidemarkError as error:
        tell_refused(github, number, error)
        print(f"tidemark: {error}", file=sys.stderr)
        return REFUSED
    tell_begun(github, asked)
    print(f"{asked.commit} of {pull} is tried on box {asked.box}, asked for by {asked.asked_by}")
    outputs = {
        "label": asked.label,
        "box": asked.box,
        "engine": asked.engine,
        "number": str(asked.number),
        "commit": asked.commit,
        "against": asked.against,
        "suite": asked.suite,
        "profile": asked.profile,
    }
    for key, value in outputs.items():
        set_job_output(key, value)
    return 0


def _said(github: SourceRepository, number: int, comment: int | None, labelled: str) -> SaidWord:
    if comment is not None:
        return require_word(github, number, github.comment(comment))
    try:
        return require_label(github, number, labelled)
    finally:
        github.remove_label(number, LABEL)


def require_commit(text: str, where: str) -> None:
    """Raise PullRequestError unless a text is the whole name of a commit."""
    if not COMMIT.fullmatch(text):
        raise PullRequestError(f"'{text}' is not a whole name of a commit", where=where)


def tell(pull: str, commit: str, code: str) -> int:
    """Tell the answer on standard input, of a try that ended with an exit code; return 0."""
    name, number = parse_pull(pull)
    require_commit(commit, "--commit")
    answer = sys.stdin.read(LONGEST_INPUT)
    tell_answer(connect(name), number, commit, code, answer.strip())
    return 0

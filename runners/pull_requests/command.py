"""`./tidemark runner pull-request`: the jobs of pull-request.yml before and after the one that measures."""

import sys
from pathlib import Path

from build.errors import TidemarkError
from runners.alerting.tracker import TrackerError
from runners.console import set_job_output
from runners.nightly.plan import load_plan
from runners.pull_requests.decision import NoWordError, decide
from runners.pull_requests.source import PullRequestError, connect, parse_pull
from runners.pull_requests.telling import tell_answer, tell_begun, tell_refused
from runners.pull_requests.word import COMMIT

REFUSED = 1

LONGEST_INPUT = 1 << 20


def follow_word(plan: Path, pull: str, comment: int) -> int:
    """Decide on the word in a comment; return 0 and set the outputs of the job, or 1 if it is refused.

    A person whose word counts is told why it was refused. Raises TrackerError when GitHub does not say.
    """
    name, number = parse_pull(pull)
    github = connect(name)
    try:
        asked = decide(load_plan(plan), github, number, github.comment(comment))
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


def tell(pull: str, commit: str, code: str) -> int:
    """Tell the answer on standard input, of a try that ended with an exit code; return 0."""
    name, number = parse_pull(pull)
    if not COMMIT.fullmatch(commit):
        raise PullRequestError(f"'{commit}' is not a whole name of a commit", where="--commit")
    answer = sys.stdin.read(LONGEST_INPUT)
    tell_answer(connect(name), number, commit, code, answer.strip())
    return 0

"""The one comment of a pull request, written anew for each try, and the status of the commit."""

import os
import re
from collections.abc import Mapping

from build.errors import TidemarkError
from history.escaping.characters import one_line
from history.escaping.markdown import Markdown, document, link, md
from runners.pull_requests.decision import AcceptedTry
from runners.pull_requests.source import Comment, SourceRepository

CONTEXT = "tidemark"
"""The name of the check."""

LONGEST_STATUS = 140
"""The most characters of a description that GitHub takes."""

LONGEST_ANSWER = 60_000
"""The most characters of an answer in a comment, of which GitHub takes 65,536."""

STATES = {"0": "success", "1": "failure", "2": "error"}
"""The state of the check by the exit code of `try`; `error` also for a try without one."""

_MARKER = re.compile(r"<!-- tidemark-try run=(\d{1,19}) -->")
_HEADLINE = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)


def tell_begun(github: SourceRepository, asked: AcceptedTry) -> None:
    """Say in the pull request that a try of it waits for its box. Raises TrackerError."""
    text = document(
        [
            md(
                "Tidemark tries {} against {} on box **{}**: {}, {}, asked for by {}.",
                asked.commit,
                asked.against,
                asked.box,
                asked.suite,
                asked.profile,
                asked.asked_by,
            ),
            "",
            *_run_line(),
        ]
    )
    github.set_status(asked.commit, _status("pending", f"is tried on box {asked.box}"))
    renew(github, asked.number, text)


def tell_refused(github: SourceRepository, number: int, error: TidemarkError) -> None:
    """Say in the pull request why a word was not followed. Raises TrackerError."""
    hint = [md("To do: {}.", error.hint)] if error.hint else []
    text = document([md("Tidemark tries nothing: {}.", error.what), *([""] if hint else []), *hint])
    renew(github, number, text)


def tell_answer(github: SourceRepository, number: int, commit: str, code: str, answer: str) -> None:
    """Give a commit its check, and the pull request the answer. Raises TrackerError.

    `code` is the exit code of the try, and `answer` its Markdown; both are empty when it did not end. They
    come from the machine that ran the commit, and are as trustworthy as that.
    """
    state = STATES.get(code, "error") if answer else "error"
    headline = _HEADLINE.search(answer)
    said = headline[1] if headline else "was not measured; the run says why"
    github.set_status(commit, _status(state, said))
    cut = answer[:LONGEST_ANSWER] + ("\n\n(cut)" if len(answer) > LONGEST_ANSWER else "")
    failed = md("Tidemark could not try {}.", commit)
    renew(github, number, Markdown("\n".join([cut or failed, "", *_run_line()])))


def renew(github: SourceRepository, number: int, text: Markdown) -> None:
    """Write our comment, or write it anew; one that a later run has written is left. Raises TrackerError."""
    body = f"<!-- tidemark-try run={_run()} -->\n{text}"
    ours = _own_comment(github, number)
    if ours is None:
        github.add_comment(number, body)
    elif _run_in(ours) <= _run():
        github.edit_comment(ours, body)


def _own_comment(github: SourceRepository, number: int) -> Comment | None:
    """Return the comment with our marker that our account wrote: anybody can write the marker."""
    login = github.own_login()
    for comment in github.comments(number):
        author = comment.user
        if author is None or not _MARKER.match(comment.body):
            continue
        if author.login == login or (not login and author.type == "Bot"):
            return comment
    return None


def _run_in(comment: Comment) -> int:
    match = _MARKER.match(comment.body)
    return int(match[1]) if match else 0


def _run() -> int:
    text = os.environ.get("GITHUB_RUN_ID", "")
    return int(text) if text.isdigit() else 0


def _run_address() -> str:
    server, repository = os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")
    return f"{server}/{repository}/actions/runs/{_run()}" if server and repository else ""


def _run_line() -> list[Markdown]:
    address = _run_address()
    return [md("The run: {}", link(address))] if address else []


def _status(state: str, description: str) -> Mapping[str, str]:
    line = one_line(description)
    short = line if len(line) <= LONGEST_STATUS else f"{line[: LONGEST_STATUS - 3]}..."
    status = {"state": state, "context": CONTEXT, "description": short}
    address = _run_address()
    return status | ({"target_url": address} if address else {})

"""Whose word has a pull request tried, and for which commit; what is told of it, once."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from runners.cli import main
from tests.runners.alerting.github import BOT, REPOSITORY, TOKEN, Fault, running
from tests.runners.pull_requests.hub import NUMBER, Hub, read_outputs
from tests.runners.small_plan import LABEL, small_plan

FIRST, SECOND = "1" * 40, "2" * 40
PULL = f"{REPOSITORY}#{NUMBER}"
RUN = "https://git.example/example/boxes/actions/runs/5"

Follow: TypeAlias = Callable[[int], tuple[int, str]]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running(Hub) as hub:
        yield hub
        assert hub.violations == []


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    followed = f'branches = ["master"]\npull_requests = "{REPOSITORY}"'
    path.write_text(small_plan(["insert"], "", followed=followed))
    return path


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub) -> Path:
    """The outputs of the job, which no text can add to."""
    monkeypatch.setenv("GITHUB_API_URL", hub.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "example/boxes")
    monkeypatch.setenv("GITHUB_RUN_ID", "5")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    return tmp_path / "outputs"


@pytest.fixture
def follow(plan: Path, outputs: Path, capsys: pytest.CaptureFixture[str]) -> Follow:
    def follow(comment: int) -> tuple[int, str]:
        words = ["runner", "pull-request", "word", "--plan", str(plan), "--pull", PULL]
        code = main([*words, "--comment", str(comment)])
        return code, capsys.readouterr().err

    return follow


# --- who, and which commit


@pytest.mark.parametrize("author", ["ann", "root"])
def test_the_head_at_the_word_of_somebody_who_may_write_is_tried(
    author: str, hub: Hub, follow: Follow, outputs: Path
) -> None:
    hub.push(FIRST, 0)
    assert follow(hub.say(author, "/tidemark try", 5)) == (0, "")
    assert read_outputs(outputs) == {
        "label": LABEL,
        "box": "here",
        "engine": "postgres",
        "number": str(NUMBER),
        "commit": FIRST,
        "against": "master",
        "suite": "write-heavy",
        "profile": "smoke",
    }
    ((commit, status),) = hub.statuses
    assert (commit, status["state"], status["context"]) == (FIRST, "pending", "tidemark")
    assert status["target_url"] == RUN
    (told,) = hub.ours()
    assert FIRST in told
    assert f"asked for by {author}" in told


@pytest.mark.parametrize(
    ("author", "body", "kind"),
    [
        ("visitor", "/tidemark try", "User"),
        ("stranger", "/tidemark try", "User"),
        ("stranger", "/tidemark nonsense", "User"),
        ("stranger", f"/tidemark try {FIRST}", "User"),
        ("ann", "/tidemark try", "Bot"),
        ("ann", "looks fine", "User"),
    ],
)
def test_the_word_of_a_stranger_does_nothing_and_is_not_answered(
    author: str, body: str, kind: str, hub: Hub, follow: Follow, outputs: Path
) -> None:
    hub.push(FIRST, 0)
    code, _ = follow(hub.say(author, body, 5, kind=kind))
    assert (code, read_outputs(outputs), hub.statuses, hub.ours()) == (2, {}, [], [])


@pytest.mark.parametrize("minute", [5, 6, 600])
def test_a_commit_that_was_pushed_after_the_word_is_refused(
    minute: float, hub: Hub, follow: Follow, outputs: Path
) -> None:
    """In the same second too; whatever the dates in the commit say."""
    hub.push(FIRST, 0)
    word = hub.say("ann", "/tidemark try", 5)
    hub.push(SECOND, minute)
    code, _ = follow(word)
    assert (code, read_outputs(outputs), hub.statuses) == (1, {}, [])
    (told,) = hub.ours()
    assert "the head was pushed after the word" in told
    assert "review it, and say the word again" in told


def test_a_commit_that_was_the_head_before_is_refused_when_it_is_pushed_again(
    hub: Hub, follow: Follow, outputs: Path
) -> None:
    """First pushed before the word, hidden behind a harmless one, and pushed again after it."""
    hub.push(SECOND, 0)
    hub.push(FIRST, 1)
    word = hub.say("ann", "/tidemark try", 5)
    hub.push(SECOND, 6)
    assert follow(word)[0] == 1
    assert read_outputs(outputs) == {}


def test_a_whole_name_is_the_commit_or_nothing(hub: Hub, follow: Follow, outputs: Path) -> None:
    hub.push(FIRST, 0)
    hub.hides_activity = True  # as that of a private fork
    code, _ = follow(hub.say("ann", "/tidemark try", 5))
    assert (code, read_outputs(outputs)) == (1, {})
    assert "name the commit that you have reviewed" in hub.ours()[0]
    word = hub.say("ann", f"/tidemark try {FIRST}", 6)
    hub.push(SECOND, 7)
    assert follow(word)[0] == 1
    assert read_outputs(outputs) == {}
    assert follow(hub.say("ann", f"/tidemark try {SECOND}", 8))[0] == 0
    assert read_outputs(outputs)["commit"] == SECOND


@pytest.mark.parametrize(
    ("state", "fork", "body", "told"),
    [
        ("closed", "stranger/postgres", "/tidemark try", "the pull request is closed"),
        ("open", None, "/tidemark try", "cannot be seen"),
        ("open", "stranger/postgres", "/tidemark try box=elsewhere", "the plan has no box"),
        ("open", "stranger/postgres", "/tidemark try suite=../x", "no suite"),
        ("open", "stranger/postgres", "/tidemark try profile=$(x)", "profile"),
        ("open", "stranger/postgres", "/tidemark tri", "is not understood"),
    ],
)
def test_what_cannot_be_tried_is_told(
    state: str, fork: str | None, body: str, told: str, hub: Hub, follow: Follow, outputs: Path
) -> None:
    hub.push(FIRST, 0)
    hub.pulls[NUMBER].state, hub.pulls[NUMBER].fork = state, fork
    assert follow(hub.say("ann", body, 5))[0] == 1
    assert (read_outputs(outputs), hub.statuses) == ({}, [])
    assert told in hub.ours()[0]


def test_a_comment_of_another_pull_request_is_no_word(hub: Hub, follow: Follow, outputs: Path) -> None:
    hub.push(FIRST, 0)
    hub.push(SECOND, 0, number=8)
    assert follow(hub.say("ann", "/tidemark try", 5, number=8))[0] == 2
    assert (read_outputs(outputs), hub.ours()) == ({}, [])


def test_the_plan_has_to_name_the_repository(hub: Hub, plan: Path, follow: Follow, outputs: Path) -> None:
    plan.write_text(plan.read_text().replace(REPOSITORY, "another/one"))
    hub.push(FIRST, 0)
    assert follow(hub.say("ann", "/tidemark try", 5))[0] == 1
    assert read_outputs(outputs) == {}


def test_when_github_does_not_say_nothing_is_tried(hub: Hub, follow: Follow, outputs: Path) -> None:
    hub.push(FIRST, 0)
    word = hub.say("ann", "/tidemark try", 5)
    hub.faults = [Fault(502)]
    assert follow(word)[0] == 2
    assert (read_outputs(outputs), hub.ours()) == ({}, [])


# --- the label


@pytest.fixture
def follow_label(plan: Path, outputs: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], int]:
    def follow_label(head: str) -> int:
        words = ["runner", "pull-request", "word", "--plan", str(plan), "--pull", PULL]
        return main([*words, "--labelled", head])

    return follow_label


def test_the_head_when_the_label_was_set_is_tried_and_the_label_is_taken_away(
    hub: Hub, follow_label: Callable[[str], int], outputs: Path
) -> None:
    hub.push(FIRST, 0)
    for number in range(100):
        hub.set_label("visitor", 1, name=f"label {number}")
    hub.set_label("ann", 5)
    assert follow_label(FIRST) == 0
    assert (read_outputs(outputs)["commit"], read_outputs(outputs)["profile"]) == (FIRST, "smoke")
    assert "asked for by ann" in hub.ours()[0]
    assert "tidemark-try" not in hub.labels
    assert follow_label(FIRST) == 2, "the word has been followed"
    hub.set_label("root", 2_000)
    assert follow_label(FIRST) == 0


@pytest.mark.parametrize(
    ("actor", "kind"), [("visitor", "User"), ("stranger", "User"), ("ann", "Bot"), ("nobody", "User")]
)
def test_the_label_of_a_stranger_does_nothing_and_is_taken_away(
    actor: str, kind: str, hub: Hub, follow_label: Callable[[str], int], outputs: Path
) -> None:
    """Also where somebody who may write has set it before."""
    hub.push(FIRST, 0)
    hub.set_label("ann", 5)
    hub.set_label("ann", 6, "unlabeled")
    hub.set_label(actor, 7, kind=kind)
    assert follow_label(FIRST) == 2
    assert (read_outputs(outputs), hub.statuses, hub.ours(), hub.labels) == ({}, [], [], set())


@pytest.mark.parametrize(
    ("head", "minute", "told"),
    [
        (FIRST, 6, "the head is no longer 111111111111, as when the label was set"),
        (SECOND, 6, "the head was pushed after the word"),
        (SECOND, 5, "the head was pushed after the word"),
        (FIRST, 4, "the head is no longer 111111111111, as when the label was set"),
    ],
)
def test_a_commit_that_was_not_the_head_when_the_label_was_set_is_refused(
    head: str, minute: float, told: str, hub: Hub, follow_label: Callable[[str], int], outputs: Path
) -> None:
    hub.push(FIRST, 0)
    hub.set_label("ann", 5)
    hub.push(SECOND, minute)
    assert follow_label(head) == 1
    assert (read_outputs(outputs), hub.statuses, hub.labels) == ({}, [], set())
    assert told in hub.ours()[0]
    assert "set the label tidemark-try again" in hub.ours()[0].replace("\\", "")


def test_a_label_where_pushes_cannot_be_seen_needs_a_comment(
    hub: Hub, follow_label: Callable[[str], int], outputs: Path
) -> None:
    hub.push(FIRST, 0)
    hub.set_label("ann", 5)
    hub.hides_activity = True
    assert (follow_label(FIRST), read_outputs(outputs)) == (1, {})
    assert "/tidemark try COMMIT" in hub.ours()[0].replace("\\", "")


def test_what_is_no_commit_is_not_asked_for(hub: Hub, plan: Path, outputs: Path) -> None:
    hub.push(FIRST, 0)
    hub.set_label("ann", 5)
    words = ["runner", "pull-request", "word", "--plan", str(plan), "--pull", PULL]
    for more in ([], ["--labelled", FIRST[:12]], ["--labelled", FIRST, "--comment", "1"]):
        assert main([*words, *more]) == 2
    assert (read_outputs(outputs), hub.labels) == ({}, {"tidemark-try"})


# --- the answer

ANSWER = "## Try: {commit}\n\n**Slower: update-index -{percent} %.**\n\n| step |\n"


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, outputs: Path) -> Callable[..., int]:
    def tell(answer: str, code: str, commit: str = FIRST, run: int = 5) -> int:
        monkeypatch.setenv("GITHUB_RUN_ID", str(run))
        monkeypatch.setattr(sys, "stdin", Typed(answer))
        words = ["runner", "pull-request", "answer", "--pull", PULL]
        return main([*words, "--commit", commit, "--exit-code", code])

    return tell


class Typed:
    """What is on standard input."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, most: int) -> str:
        return self._text[:most]


@pytest.mark.parametrize(
    ("code", "answer", "state", "said"),
    [
        ("0", "**No difference in any step**", "success", "No difference in any step"),
        ("1", ANSWER.format(commit=FIRST, percent=4), "failure", "Slower: update-index -4 %."),
        ("2", "**Undecided**", "error", "Undecided"),
        ("", "", "error", "was not measured; the run says why"),
        ("0", "", "error", "was not measured; the run says why"),
        ("1", f"**{'x' * 200}**", "failure", f"{'x' * 137}..."),
    ],
)
def test_the_conclusion_is_the_check_of_the_commit(
    code: str, answer: str, state: str, said: str, hub: Hub, tell: Callable[..., int]
) -> None:
    assert tell(answer, code) == 0
    ((commit, status),) = hub.statuses
    assert (commit, status["state"], status["description"]) == (FIRST, state, said)
    assert RUN in hub.ours()[0]


@pytest.mark.parametrize("login", [BOT, None], ids=["a user's token", "an app's"])
def test_one_comment_is_renewed(
    login: str | None, hub: Hub, follow: Follow, tell: Callable[..., int]
) -> None:
    hub.login = login
    forged = hub.say("stranger", "<!-- tidemark-try run=9 -->\nall is well", 1)
    hub.push(FIRST, 2)
    assert follow(hub.say("ann", "/tidemark try", 5))[0] == 0
    if login is None:
        (ours,) = (comment for comment in hub.said.values() if comment["user"]["login"] == BOT)
        ours["user"]["type"] = "Bot"
    tell(ANSWER.format(commit=FIRST, percent=4), "1")
    (told,) = hub.ours()
    assert "**Slower: update-index -4 %.**" in told
    tell(ANSWER.format(commit=SECOND, percent=3), "1", SECOND, run=6)
    assert "-3 %" in hub.ours()[0]
    tell(ANSWER.format(commit=FIRST, percent=4), "1", FIRST, run=5)
    assert "-3 %" in hub.ours()[0], "an older run that ends later does not replace it"
    assert (len(hub.ours()), hub.said[forged]["body"][-4:]) == (1, "well")


def test_a_long_answer_is_cut(hub: Hub, tell: Callable[..., int]) -> None:
    assert tell("x" * 100_000, "0") == 0
    assert len(hub.ours()[0]) < 65_000


def test_a_short_name_of_a_commit_gets_no_check(hub: Hub, tell: Callable[..., int]) -> None:
    assert tell("**x**", "0", FIRST[:12]) == 2
    assert hub.statuses == []

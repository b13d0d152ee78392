"""How far a fetch is, as git's own lines say it, and what is left of them in messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from build.home import Home
from build.progress import ProgressTask, SilentTask
from build.sources.git import mirror
from build.sources.git_command import GitError
from build.sources.transfer_progress import take_line
from tests.build.stand import Repository


class Watched(SilentTask):
    """A task and the progress that has it alone."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.updates: list[tuple[float, float | None]] = []
        self.details: list[str] = []

    def update(self, done: float, total: float | None = None) -> None:
        self.updates.append((done, total))

    def detail(self, text: str) -> None:
        self.details.append(text)

    def note(self, message: str) -> None:
        raise AssertionError(message)

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        assert total is None
        self.labels.append(f"{label} in {unit}")
        yield self


def test_lines_of_a_transfer() -> None:
    shown = Watched()
    lines = (
        "remote: Enumerating objects: 19818, done.        ",
        "remote: Compressing objects:  75% (4440/5920)        ",
        "Receiving objects:  32% (6342/19818), 8.47 MiB | 26.29 MiB/s",
        "remote: Total 19818 (delta 15978), reused 0 (delta 0), pack-reused 0 (from 0)",
        "Resolving deltas:  49% (7830/15978)",
        " * [new branch]      main       -> main",
    )
    assert all(take_line(line, shown) for line in lines)
    assert shown.updates == [(6342, 19818)]
    assert shown.details == [
        "the server: compressing objects, 4,440 of 5,920",
        "",
        "resolving deltas, 7,830 of 15,978",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "fatal: early EOF",
        "remote: Repository not found.",
        "remote: quota exceeded: 100 objects (50%)",
        " ! [rejected]        v1         -> v1  (would clobber existing tag)",
    ],
)
def test_messages_are_kept(line: str) -> None:
    assert not take_line(line, Watched())


def test_a_fetch_shows_objects_of_how_many(home: Home, repository: Repository) -> None:
    for number in range(120):  # below a hundred objects git tells nothing
        (repository.path / f"file-{number}").write_text(str(number))
    commit, shown = repository.commit("one"), Watched()
    address = f"file://{repository.path}"
    assert mirror(address, "postgres", home, shown).fetch("main").commit == commit
    assert shown.labels == [f"fetch {address} in objects"]
    done, total = shown.updates[-1]
    assert done == total == int(repository.git("rev-list", "--objects", "--count", "--all"))
    mirror(address, "postgres", home, shown).fetch("main")
    assert len(shown.labels) == 1, "what is there is not fetched"


def test_a_fetch_that_fails_tells_no_progress(home: Home, repository: Repository) -> None:
    repository.commit("one")
    source = mirror(f"file://{repository.path}", "postgres", home, Watched())
    source.fetch("main")
    repository.commit("two")
    lock = source.path / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(GitError) as caught:
        source.fetch("main")
    assert "main.lock" in caught.value.where
    assert "objects" not in caught.value.where

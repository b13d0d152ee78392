"""Git sources: the shared mirror, refs, and what must not happen."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from build.home import Home
from build.progress import ProgressTask, Silent
from build.sources import git
from build.sources.git import Commit, GitError
from build.sources.source import Source, SourceError, known_sources, obtain, resolved
from build.version import Engine, Version, parse_revision, parse_version
from tests.build.stand import Repository


def ask(ref: str, home: Home, repository: Repository) -> Source:
    """The source of `ref` as from a server: the objects of a path would be borrowed."""
    return obtain(parse_version(f"postgres@{ref}"), home, Silent(), f"file://{repository.path}")


def commit_of(ref: str, home: Home, repository: Repository) -> Commit:
    """The commit that serves as source for `ref`."""
    found = ask(ref, home, repository).commit
    assert found is not None
    return found


def test_tag_branch_and_commit_name_the_same_source(home: Home, repository: Repository) -> None:
    commit = repository.commit("one")
    repository.git("tag", "v1")
    found = [ask(ref, home, repository) for ref in ("v1", "main", commit, f"git:{commit[:10]}")]
    assert len({source.digest for source in found}) == 1
    assert found[0].digest.startswith(f"git:{commit}:")
    assert len(list((home.sources / "git").glob("postgres-*.git"))) == 1


def test_a_second_commit_downloads_only_what_is_new(home: Home, repository: Repository) -> None:
    repository.commit("one", big="x" * 200_000)
    mirror = commit_of("main", home, repository).mirror
    before = objects(mirror)
    commit = repository.commit("two", big="x" * 200_000)
    assert commit_of("main", home, repository).commit == commit
    new = objects(mirror) - before
    assert 0 < len(new) <= 6  # One commit, its trees and the changed file; not the big one again.


class Watched(Silent):
    """Progress that keeps the labels of its tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        self.labels.append(label)
        with super().task(label, total, unit) as task:
            yield task


def test_a_fetch_is_shown(home: Home, repository: Repository) -> None:
    commit, shown = repository.commit("one"), Watched()
    address = f"file://{repository.path}"
    assert git.mirror(address, "postgres", home, shown).fetch("main").commit == commit
    assert shown.labels == [f"fetch {address}"]
    git.mirror(address, "postgres", home, shown).fetch("main")
    assert len(shown.labels) == 1, "what is there is not fetched"


def test_a_fetch_that_fails_tells_no_refs(home: Home, repository: Repository) -> None:
    repository.commit("one")
    source = git.mirror(f"file://{repository.path}", "postgres", home)
    source.fetch("main")
    repository.commit("two")
    repository.git("tag", "v1")
    lock = source.path / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(GitError) as caught:
        source.fetch("main")
    assert "main.lock" in caught.value.where
    for of_transfer in ("objects", "From ", "-> v1"):
        assert of_transfer not in caught.value.where


def test_a_commit_in_the_mirror_needs_no_network(home: Home, repository: Repository) -> None:
    commit = repository.commit("one")
    repository.git("tag", "v1")
    ask("main", home, repository)
    (repository.path / ".git").rename(repository.path / "gone")
    assert commit_of(commit, home, repository).commit == commit
    assert commit_of("v1", home, repository).commit == commit
    with pytest.raises(SourceError):
        ask("main", home, repository)


def test_a_branch_is_never_taken_from_the_mirror_alone(home: Home, repository: Repository) -> None:
    repository.commit("one")
    ask("main", home, repository)
    assert known_sources(parse_version("postgres@main"), home, f"file://{repository.path}") == []


def test_a_branch_that_was_rewound_is_followed(home: Home, repository: Repository) -> None:
    first = repository.commit("one")
    repository.commit("two")
    ask("main", home, repository)
    repository.git("reset", "--hard", "-q", first)
    assert commit_of("main", home, repository).commit == first


def test_a_commit_that_no_branch_leads_to_is_had_by_its_full_name(home: Home, repository: Repository) -> None:
    repository.commit("one")
    lost = repository.commit("two")
    repository.git("reset", "--hard", "-q", "HEAD~1")
    assert commit_of(lost, home, repository).commit == lost


def test_an_unknown_ref_is_named(home: Home, repository: Repository) -> None:
    repository.commit("one")
    with pytest.raises(SourceError, match="no tag, branch or commit 'nowhere'"):
        ask("nowhere", home, repository)


def test_the_environment_names_a_git_source(
    home: Home, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit("one")
    monkeypatch.setenv("TIDEMARK_GIT_POSTGRES", str(repository.path))
    assert obtain(parse_version("postgres@main"), home, Silent()).digest.startswith(f"git:{commit}:")


@pytest.mark.parametrize("url", ["--upload-pack=touch x", "-u", ""])
def test_an_address_that_git_could_take_for_an_option_is_refused(url: str, home: Home) -> None:
    with pytest.raises(GitError, match="not the URL or path"):
        git.mirror(url, Engine.POSTGRES, home)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ext::sh -c touch% ran",
            "fd::1",
            "fd::1,1/x",
            "FD::1",
            "file::/srv",
            "ftp://host/x",
            "hg://host/x",
        ),
        *("git://host/x", "http://host/x"),
    ],
)
def test_another_transport_is_refused_before_git_is_asked(
    url: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="not read through") as caught:
        git.mirror(url, Engine.POSTGRES, home)
    assert "https://" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        *("https://h/x", "ssh://me@h/x", "git+ssh://h/x", "file:///srv/x"),
        *("me@h:x.git", "h:x::y", "/srv/x::y", "./x"),
    ],
)
def test_addresses_of_trusted_transports_are_taken(url: str, home: Home) -> None:
    assert git.mirror(url, Engine.POSTGRES, home).url == url


def test_a_path_may_look_like_another_transport(
    home: Home, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit("one")
    monkeypatch.chdir(repository.path.parent)
    repository.path.rename("fd::1")
    assert git.mirror("fd::1", Engine.POSTGRES, home).fetch("main").commit == commit


def test_a_transport_that_a_configuration_puts_in_place_is_refused(
    home: Home, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    for number, (name, value) in enumerate(
        [
            (f"url.ext::sh -c touch% {tmp_path}/ran .insteadOf", f"file://{repository.path}"),
            ("protocol.ext.allow", "always"),
        ]
    ):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext")
    with pytest.raises(SourceError, match="not allowed"):
        ask("main", home, repository)
    assert not (tmp_path / "ran").exists()


def test_a_commit_of_a_pull_request_is_not_published(home: Home, repository: Repository) -> None:
    first = repository.commit("one")
    foreign = repository.pulled("foreign")
    mirror = git.mirror(f"file://{repository.path}", Engine.POSTGRES, home)
    for attempt in ("the mirror does not have it", "the mirror has it, by its name"):
        with pytest.raises(GitError, match=f"no branch or tag leads to {foreign}"):
            mirror.fetch_published(foreign)
        assert mirror.fetch(foreign).commit == foreign, attempt
    with pytest.raises(GitError, match="no branch or tag leads to"):
        mirror.fetch_published(foreign[:8])
    assert mirror.fetch_published(first[:8]).commit == first
    repository.git("branch", "topic", foreign)
    assert mirror.fetch_published(foreign).commit == foreign
    assert mirror.fetch_published("topic~1").commit == first
    repository.git("branch", "-D", "topic")
    with pytest.raises(GitError, match="no branch or tag leads to"):
        mirror.fetch_published(foreign)
    repository.git("tag", "v1", foreign)
    assert mirror.fetch_published(foreign).commit == foreign


def test_credentials_stay_out_of_messages_and_manifests(home: Home) -> None:
    mirror = git.mirror("https://me:secret@git.example/pg.git", Engine.POSTGRES, home)
    assert mirror.shown == "https://git.example/pg.git"


def test_steps_back_become_a_commit(home: Home, repository: Repository) -> None:
    first, second, third = (repository.commit(text) for text in ("one", "two", "three"))
    for text, commit in (("main~2", first), ("main^", second), (f"{third[:10]}^^", first), ("main~0", third)):
        asked = parse_revision(f"postgres@{text}")
        found = resolved(asked, home, Silent(), str(repository.path))
        assert found == Version(Engine.POSTGRES, f"git:{commit[:12]}")
    fourth = repository.commit("four")
    again = resolved(parse_revision("postgres@main~1"), home, Silent(), str(repository.path))
    assert again.ref == f"git:{third[:12]}", f"the branch has moved to {fourth}"
    plain = parse_version("postgres@main")
    assert resolved(plain, home, Silent(), str(repository.path)) is plain
    with pytest.raises(GitError, match="no tag, branch or commit 'main~9'"):
        resolved(parse_revision("postgres@main~9"), home, Silent(), str(repository.path))


def objects(mirror: Path) -> set[str]:
    command = [
        "git",
        "--git-dir",
        str(mirror),
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())

"""Whose fault it is that a version has no build: with real compiles, downloads and repositories."""

from collections.abc import Callable
from pathlib import Path

import pytest

from build import host
from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.sources.source import AbsentVersionError, SourceError
from build.version import parse_version
from history.store.records import FailureCause, VersionFailure
from runners.measuring.failures.cause import build_failure
from tests.build.stand import Pins, Repository, Stand, Web

RELEASE = "postgres@18.99"
Prepare = Callable[[Stand, Home, Pins], None]


def failed(home: Home, version: str = RELEASE, git: str | None = None) -> VersionFailure:
    with pytest.raises(TidemarkError) as caught:
        provide(BuildRequest(parse_version(version), git_source=git), home, Silent(), use_ccache=False)
    return build_failure(caught.value)


def tarball(**tree: str) -> Prepare:
    """A release with this tree in the source cache."""

    def prepare(stand: Stand, home: Home, versions: Pins) -> None:
        versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2", **tree))

    return prepare


def another_digest(stand: Stand, home: Home, versions: Pins) -> None:
    stand.tarball(home.sources / "postgresql-18.99.tar.bz2")
    versions(r18_99="0" * 64)


def no_network(stand: Stand, home: Home, versions: Pins) -> None:
    versions(r18_99="0" * 64)


@pytest.mark.deep("damaged builds are compiled again, by real compilers")
@pytest.mark.parametrize(
    ("prepare", "cause"),
    [
        (tarball(part="int part\n"), FailureCause.VERSION),
        (tarball(before="@kill -9 $$$$"), FailureCause.MACHINE),
        (
            tarball(before="@echo 'gcc: fatal error: Killed signal terminated program cc1'; false"),
            FailureCause.MACHINE,
        ),
        (tarball(before="@echo 'part.c:1: error: No space left on device'; false"), FailureCause.MACHINE),
        (tarball(before="@echo 'checking for liburing... no'; false"), FailureCause.MACHINE),
        (another_digest, FailureCause.MACHINE),
        (no_network, FailureCause.MACHINE),
    ],
    ids=["error", "killed make", "killed compiler", "disk", "package", "digest", "network"],
)
def test_only_what_the_compiler_complains_of_is_the_fault_of_a_version(
    prepare: Prepare, cause: FailureCause, stand: Stand, home: Home, versions: Pins
) -> None:
    prepare(stand, home, versions)
    # A second time, too: what is remembered of a source is still its own fault.
    assert [failed(home).cause, failed(home).cause] == [cause, cause]


def test_the_error_of_the_compiler_comes_first(stand: Stand, home: Home, versions: Pins) -> None:
    tarball(part="int part\n")(stand, home, versions)
    assert failed(home).reason.startswith("does not compile: part.c:1:")


def test_a_machine_without_a_compiler_says_nothing_of_a_version(
    stand: Stand, home: Home, versions: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    tarball()(stand, home, versions)
    monkeypatch.setenv("CC", "no-such-compiler")
    host.compiler.cache_clear()
    assert failed(home).cause is FailureCause.MACHINE


def test_a_source_that_names_no_release_is_at_fault(repository: Repository, home: Home) -> None:
    repository.commit("one")
    (repository.path / "configure").write_text("#!/bin/sh\n")
    repository.git("commit", "--all", "--quiet", "--message", "no release")
    assert failed(home, "postgres@main", str(repository.path)).cause is FailureCause.VERSION


def test_a_version_that_no_place_has_is_told_from_one_that_no_place_gives(
    home: Home, versions: Pins, web: Web, repository: Repository, tmp_path: Path
) -> None:
    """For a bisect the first is a hole, and the second a reason to stop."""
    versions(r18_99="0" * 64)
    repository.commit("one")

    def obtained(git: str) -> type[TidemarkError]:
        with pytest.raises(SourceError) as caught:
            provide(BuildRequest(parse_version(RELEASE), git_source=git), home, Silent())
        return caught.type

    assert obtained(str(repository.path)) is AbsentVersionError
    assert obtained(str(tmp_path / "nowhere")) is SourceError
    versions(r18_99="0" * 64)
    web.address = "http://127.0.0.1:9"
    versions(r18_99="0" * 64)
    assert obtained(str(repository.path)) is SourceError

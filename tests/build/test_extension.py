"""An extension as it is written: what it stands for, and what is refused before anything is fetched."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.errors import TidemarkError
from build.extension import (
    Extension,
    ExtensionError,
    described_extension,
    parse_extension,
    pinned,
    require_extensible,
)
from build.home import Home
from build.progress import Silent
from build.sources.git import GitError
from build.version import parse_version
from tests.tiny_extension import TinyExtension

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pgvector=https://example.org/v.git@v0.8.0", ("https://example.org/v.git", "v0.8.0")),
        ("v=ssh://git@example.org/v@feature/x", ("ssh://git@example.org/v", "feature/x")),
        ("v=git@example.org:o/v.git@HEAD~3", ("git@example.org:o/v.git", "HEAD~3")),
    ],
)
def test_the_ref_stands_behind_the_last_at(text: str, expected: tuple[str, str]) -> None:
    read = parse_extension(text)
    assert (read.repository, read.ref) == expected


def test_the_path_of_a_repository_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_extension("tiny=.", has_ref=False) == Extension("tiny", str(tmp_path.resolve()), "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pgvector", "is no extension"),
        ("pgvector=https://example.org/v.git", "is no extension"),
        ("a b=https://example.org/v@v1", "is no name of an extension"),
        ("v=https://example.org/v@-x", "is no tag, branch or commit"),
        ("v=ext::sh -c true@v1", "are not read through"),
        ("v=/nowhere/at/all@v1", "there is no folder /nowhere/at/all"),
    ],
)
def test_what_is_no_extension_is_refused(text: str, says: str) -> None:
    with pytest.raises(TidemarkError, match=says):
        parse_extension(text)


@pytest.mark.deep("hundreds of texts that hypothesis draws")
@given(st.text(max_size=60), st.booleans())
def test_any_text_is_an_extension_or_an_error(text: str, has_ref: bool) -> None:
    try:
        read = parse_extension(text, has_ref=has_ref)
    except TidemarkError:
        return
    assert read.name
    assert read.repository
    assert bool(read.ref) == has_ref


def test_a_ref_becomes_a_commit_and_is_described_by_both(tmp_path: Path) -> None:
    tiny, home = TinyExtension(tmp_path / "tiny"), Home(tmp_path / "home")
    first, second = tiny.tagged("v1"), tiny.tagged("v2", factor=2)
    of = {
        ref: pinned(parse_extension(f"tiny={tiny.path}@{ref}"), home, Silent()).commit
        for ref in ("v1", "main", "HEAD", "HEAD~1", first[:10])
    }
    assert of == {"v1": first, "main": second, "HEAD": second, "HEAD~1": first, first[:10]: first}
    recorded = Extension("tiny", "https://u:secret@example.org/t", "v1", COMMIT).to_json()
    assert described_extension(recorded) == "tiny v1 (0123456789ab)"
    assert "secret" not in str(recorded)
    assert described_extension({"name": "tiny", "ref": COMMIT[:9], "commit": COMMIT}) == "tiny 0123456789ab"
    with pytest.raises(GitError, match="no tag, branch or commit 'v3'"):
        pinned(parse_extension(f"tiny={tiny.path}@v3"), home, Silent())


@pytest.mark.parametrize("version", ["mysql@9.7.2", "postgres@mine=0123456789ab"])
def test_other_engines_and_prefixes_take_none(version: str) -> None:
    with pytest.raises(ExtensionError, match=version):
        require_extensible(parse_version(version), [Extension("v", "/v", "v1")])
    require_extensible(parse_version(version), [])

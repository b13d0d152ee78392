"""A try of an extension: a ref of its repository against the merge base, on one server."""

from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.extension import Extension, commit_of
from build.home import Home
from runners.measuring.variants import definition_of
from runners.trying.extension_sides import extension_sides
from runners.trying.sides import Sides
from tests.tiny_extension import TinyExtension

SERVER = "postgres@17.11"


@pytest.fixture
def tiny(tmp_path: Path) -> TinyExtension:
    made = TinyExtension(tmp_path / "tiny")
    made.tagged("v1")
    made.git("checkout", "--quiet", "-b", "topic")
    made.tagged("mine", factor=2)
    made.git("checkout", "--quiet", "main")
    made.tagged("v2", factor=3)
    made.git("checkout", "--quiet", "topic")
    return made


def sides(tiny: TinyExtension, what: str | None, against: str | None = None, server: str = SERVER) -> Sides:
    return extension_sides(what, against, server, f"tiny={tiny.path}", None, Home(tiny.path.parent / "home"))


def test_what_is_checked_out_is_compared_with_where_it_left_the_main_branch(tiny: TinyExtension) -> None:
    found = sides(tiny, "HEAD")
    commits = [tiny.git("rev-parse", tag) for tag in ("v1", "mine")]
    assert [str(found.base), str(found.tip)] == [f"{SERVER}#{commit[:12]}" for commit in commits]
    assert found.described == (
        f"tiny HEAD ({commits[1][:12]}) against {commits[0][:12]}, where it leaves main, on {SERVER}"
    )
    for version, commit in zip((found.base, found.tip), commits, strict=True):
        expected = Extension("tiny", str(tiny.path), commit[:12], commit)
        assert definition_of(version, found.variants).extensions == (expected,)


@pytest.mark.parametrize(
    ("what", "against", "server", "says"),
    [
        ("v1", None, SERVER, "main contains v1: there is nothing to try"),
        ("nothing", None, SERVER, "no tag, branch or commit 'nothing'"),
        ("HEAD", None, f"{SERVER}#fast", "plain versions"),
        ("HEAD", None, "mariadb@11.8.6", "takes no extension"),
    ],
)
def test_what_cannot_be_tried_is_refused(
    tiny: TinyExtension, what: str, against: str | None, server: str, says: str
) -> None:
    with pytest.raises(TidemarkError, match=says):
        sides(tiny, what, against, server)


def test_a_repository_without_a_main_branch_needs_a_base(tiny: TinyExtension) -> None:
    tiny.git("branch", "--move", "main", "trunk")
    with pytest.raises(TidemarkError, match="no branch main or master"):
        sides(tiny, "HEAD")
    assert str(sides(tiny, "HEAD", "trunk").base).startswith(f"{SERVER}#")


def test_what_is_uncommitted_in_a_clone_is_tried_and_the_clone_stays_as_it_is(tiny: TinyExtension) -> None:
    head, at_base = tiny.git("rev-parse", "HEAD"), tiny.git("rev-parse", "v1")
    assert str(sides(tiny, None).tip) == f"{SERVER}#{head[:12]}", "nothing is uncommitted"
    makefile = tiny.path / "Makefile"
    makefile.write_text(makefile.read_text() + "# mine\n")
    (tiny.path / "new.c").touch()
    before = (tiny.git("status", "--porcelain"), tiny.git("count-objects"))
    found, home = sides(tiny, None), Home(tiny.path.parent / "home")
    assert found.described.startswith(f"tiny 1 commit up to {head[:12]} and what is uncommitted in 1 file")
    assert found.notes == ("left out: 1 untracked file (new.c); git add takes a file in",)
    assert str(found.base) == f"{SERVER}#{at_base[:12]}"
    (extension,) = definition_of(found.tip, found.variants).extensions
    source = extension.mirror(home)
    assert source.read(commit_of(extension, home), "Makefile") == makefile.read_text()
    assert source.query("rev-parse", f"{extension.commit}^").strip() == head
    assert sides(tiny, None) == found, "the same work is the same version"
    assert (tiny.git("status", "--porcelain"), tiny.git("count-objects")) == before

"""Which releases places say they have: pages as web servers write them, tags, and places that are silent."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from build.engines import ENGINES
from build.home import Home
from build.sources.releases import nearest_release, published_releases, releases_in
from build.version import Engine, is_release
from tests.build.stand import Pins, Repository, Web

SITE = """<html><head><title>Index of /pub/source</title></head><body><table>
<tr><td><a href="/pub/">Parent Directory</a></td></tr>
<tr><td><a href="v9.6.24/">v9.6.24/</a></td><td>2021-11-08</td></tr>
<tr><td><a href="v18.6/">v18.6/</a></td></tr>
<tr><td><A HREF='/pub/source/v19beta1/'>v19beta1/</A></td></tr>
<tr><td><a href="v19alpha1/">v19alpha1/</a></td></tr>
<tr><td><a href="README">README</a></td></tr>
<tr><td><a href="?C=N;O=D">Name</a></td></tr></table></body></html>"""

POOL = """<img src="/icons/tar.gif"> <a href="postgresql-19_19%7ebeta2.orig.tar.bz2">19~beta2</a>
<a href="postgresql-19_19~rc1.orig.tar.bz2">.</a> <a href="postgresql-19_19.1.orig.tar.bz2">.</a>
<a href="postgresql-19_19.1-1.debian.tar.xz">.</a> <a href="postgresql-18_18.6.orig.tar.bz2">.</a>"""


def test_a_page_of_a_site_and_one_of_a_pool() -> None:
    assert releases_in(SITE, "v{release}") == {"9.6.24", "18.6", "19beta1"}
    assert releases_in(POOL, "postgresql-19_{debian}.orig.tar.bz2") == {"19beta2", "19rc1", "19.1"}


@given(st.text(max_size=200))
def test_whatever_a_page_holds_gives_releases_alone(text: str) -> None:
    assert all(map(is_release, releases_in(f'<a href="{text}">{text}</a>', "v{release}")))


@given(st.sampled_from(list(Engine)), st.lists(st.integers(0, 99), min_size=2, max_size=3))
def test_a_release_is_found_by_its_tag(engine: Engine, numbers: list[int]) -> None:
    release = ".".join(map(str, numbers))
    description = ENGINES[engine]
    assert description.release_of_tag(description.release_tag(release)) == release


@given(st.text("REL_mysqlariadb-0123456789.BETARC", max_size=20))
def test_other_tags_are_of_no_release(tag: str) -> None:
    assume(tag != "")
    for description in ENGINES.values():
        found = description.release_of_tag(tag)
        assert found is None or description.release_tag(found) == tag


def test_a_prerelease_is_found_by_its_tag() -> None:
    assert ENGINES[Engine.POSTGRES].release_of_tag("REL_19_BETA1") == "19beta1"
    assert ENGINES[Engine.POSTGRES].release_of_tag("REL_19_STABLE") is None
    assert ENGINES[Engine.POSTGRES].release_of_tag("REL9_6_24") is None


def test_all_places_are_asked(
    home: Home, web: Web, versions: Pins, repository: Repository, tmp_path: Path
) -> None:
    versions()
    for name in ("up/postgresql-18.6.tar.bz2", "pool/p18/postgresql-18_18.7.orig.tar.bz2"):
        path = web.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "apt-addresses").write_text(f"{web.address}/\n")
    repository.commit("a release")
    repository.git("tag", "REL_19_BETA1")
    found = published_releases(Engine.POSTGRES, home, ["18", "19"], str(repository.path))
    assert found.releases == {"18.6", "18.7", "19beta1"}
    assert (found.answered, found.problems) == (("git", "upstream", "apt pool"), ())


def test_places_that_do_not_answer_are_told_and_stop_nothing(home: Home, web: Web, versions: Pins) -> None:
    versions()
    found = published_releases(Engine.POSTGRES, home, ["18"], str(home.path / "nowhere"))
    assert (found.releases, found.answered) == (frozenset(), ())
    assert [problem.partition(":")[0] for problem in found.problems] == ["git", "upstream"]
    assert "HTTP Error 404" in found.problems[1]


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("18.66", "18.6"), ("18.9", "18.6"), ("19.0", "19beta1"), ("42.1", "19beta1")]
)
def test_the_nearest_release(wrong: str, nearest: str) -> None:
    assert nearest_release(wrong, {"17.11", "18.5", "18.6", "19beta1"}) == nearest


def test_without_releases_none_is_the_nearest() -> None:
    assert nearest_release("18.6", ()) == ""

"""Where a release comes from: the order, what is refused, and what is said about it."""

from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from build.engines import ENGINES
from build.home import Home
from build.progress import Silent
from build.sources.source import SourceError, obtain
from build.version import Engine, parse_version
from tests.build.stand import Pins, Repository, Stand, Web, served_at

Apt = Callable[[], None]

RELEASE = parse_version("postgres@18.99")
UPSTREAM = "up/postgresql-18.99.tar.bz2"
POOL = "pool/p18/postgresql-18_18.99.orig.tar.bz2"
WRONG = "0" * 64


@pytest.fixture
def apt(tmp_path: Path, web: Web) -> Callable[[], None]:
    """Make the stand-in apt name the test's web server."""

    def configure() -> None:
        (tmp_path / "apt-addresses").write_text(f"{web.address}/\n{web.address}/\n\n")

    return configure


def kept(home: Home) -> list[str]:
    """The files of the source cache, temporary ones included."""
    return sorted(path.name for path in home.sources.iterdir() if path.is_file())


def test_upstream_serves_what_is_not_in_the_cache_and_then_the_cache_does(
    home: Home, progress: Silent, stand: Stand, web: Web, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(web.root / UPSTREAM))
    first = obtain(RELEASE, home, progress)
    second = obtain(RELEASE, home, progress)
    assert (first.kind, second.kind) == ("upstream", "cache")
    assert first.digest == second.digest
    assert web.asked == [f"/{UPSTREAM}"]
    assert progress.notes == [
        "postgres@18.99: source from upstream: postgresql-18.99.tar.bz2",
        "postgres@18.99: source from the source cache: postgresql-18.99.tar.bz2",
    ]


def test_the_cache_also_knows_the_name_a_pool_gives(
    home: Home, progress: Silent, stand: Stand, web: Web, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / Path(POOL).name))
    assert obtain(RELEASE, home, progress).location == "postgresql-18_18.99.orig.tar.bz2"
    assert not web.asked


def test_the_apt_pool_serves_when_upstream_cannot(
    home: Home,
    progress: Silent,
    stand: Stand,
    web: Web,
    versions: Pins,
    apt: Apt,
) -> None:
    versions(r18_99=stand.tarball(web.root / POOL))
    apt()
    found = obtain(RELEASE, home, progress)
    assert (found.kind, found.location) == ("apt-pool", "postgresql-18_18.99.orig.tar.bz2")
    assert "upstream: HTTP Error 404" in progress.notes[0]
    assert progress.notes[1].endswith("source from the apt pool: postgresql-18_18.99.orig.tar.bz2")
    # The address of a mirror is this machine's business: it is in no manifest.
    assert "127.0.0.1" not in str(found.to_json())


def test_a_git_source_comes_before_upstream(
    home: Home,
    progress: Silent,
    stand: Stand,
    web: Web,
    versions: Pins,
    repository: Repository,
) -> None:
    versions(r18_99=stand.tarball(web.root / UPSTREAM))
    repository.commit("one", release="18.99")
    repository.git("tag", "REL_18_99")
    assert obtain(RELEASE, home, progress, str(repository.path)).kind == "git"
    assert not web.asked


def test_a_wrong_digest_is_refused_and_not_kept(
    home: Home,
    progress: Silent,
    stand: Stand,
    web: Web,
    versions: Pins,
    apt: Apt,
) -> None:
    stand.tarball(web.root / UPSTREAM)
    stand.tarball(web.root / POOL)
    stand.tarball(home.sources / "postgresql-18.99.tar.bz2")
    versions(r18_99=WRONG)
    apt()
    with pytest.raises(SourceError) as caught:
        obtain(RELEASE, home, progress)
    assert str(caught.value).count(f"but {WRONG} is pinned: refused") == 3
    assert kept(home) == []


def test_a_damaged_file_in_the_cache_is_replaced(
    home: Home, progress: Silent, stand: Stand, web: Web, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(web.root / UPSTREAM))
    home.sources.mkdir(parents=True)
    (home.sources / "postgresql-18.99.tar.bz2").write_text("half a tarb")
    assert obtain(RELEASE, home, progress).kind == "upstream"
    assert "refused" in progress.notes[0]


def test_a_connection_that_ends_early_leaves_nothing(
    home: Home, progress: Silent, web: Web, versions: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions(r18_99=WRONG)
    (web.root / "up").mkdir()
    (web.root / UPSTREAM).write_bytes(b"x" * 1000)
    monkeypatch.setattr(SimpleHTTPRequestHandler, "copyfile", lambda self, src, out: out.write(b"x" * 10))
    with pytest.raises(SourceError, match="after 10 of 1000 bytes"):
        obtain(RELEASE, home, progress)
    assert kept(home) == []


def test_what_cannot_be_reached_is_not_said_to_be_missing(
    home: Home, progress: Silent, versions: Pins, tmp_path: Path
) -> None:
    """Neither the releases nor the names of branches are of any help then."""
    versions(r18_6=WRONG)
    with pytest.raises(SourceError) as caught:
        obtain(parse_version("postgres@master"), home, progress, str(tmp_path / "gone"))
    assert caught.value.what.startswith("the source of postgres@master cannot be had:\n")
    assert "check the address, and that it can be reached" in caught.value.what
    assert caught.value.hint == "check that these places can be reached"


def test_upstream_that_nobody_answers_for_is_one_reason_among_others(
    home: Home,
    progress: Silent,
    stand: Stand,
    web: Web,
    versions: Pins,
    apt: Apt,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digest = stand.tarball(web.root / POOL)
    versions(r18_99=digest)
    monkeypatch.setitem(ENGINES, Engine.POSTGRES, served_at("http://tidemark.invalid/up", tmp_path))
    apt()
    assert obtain(RELEASE, home, progress).kind == "apt-pool"
    assert progress.notes[0].startswith("postgres@18.99: upstream: the name of its host cannot be resolved: ")

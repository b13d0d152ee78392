"""A release whose digest is not known: what vouches for its tarball, and what does not."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree, which
from tempfile import mkdtemp

import pytest

from build.engines import ENGINES
from build.home import Home
from build.progress import Silent
from build.sources.download import apt_addresses, sha256_of
from build.sources.releases import pinned_digest
from build.sources.source import SourceError, known_sources, obtain
from build.version import Engine, parse_version
from tests.build.sources.https import Elsewhere, SelfSigned, self_signed
from tests.build.sources.test_source import POOL, RELEASE, UPSTREAM, kept
from tests.build.stand import Pins, Stand, Web, served_at


@pytest.fixture
def upstream(tmp_path: Path, versions: Pins, monkeypatch: pytest.MonkeyPatch) -> Iterator[SelfSigned]:
    """Upstream over HTTPS, of which no release is pinned."""
    versions()
    (tmp_path / "https").mkdir()
    with self_signed(tmp_path / "https", tmp_path / "server.pem") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        monkeypatch.setitem(ENGINES, Engine.POSTGRES, served_at(f"{server.url}/up", tmp_path))
        yield server


def test_what_upstream_serves_over_https_is_recorded(
    home: Home, progress: Silent, stand: Stand, upstream: SelfSigned, tmp_path: Path
) -> None:
    digest = stand.tarball(tmp_path / "https" / UPSTREAM)
    assert known_sources(RELEASE, home) == []
    assert obtain(RELEASE, home, progress).digest == f"sha256:{digest}"
    assert pinned_digest(RELEASE, home) == digest
    assert any("no digest was pinned" in note and digest in note for note in progress.notes)
    (home.sources / "postgresql-18.99.tar.bz2").unlink()
    stand.tarball(tmp_path / "https" / UPSTREAM, part="int changed;\n")
    with pytest.raises(SourceError, match="refused"):
        obtain(RELEASE, home, progress)


def test_the_error_lists_each_source_and_what_there_is(
    home: Home,
    progress: Silent,
    versions: Pins,
    upstream: SelfSigned,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions(r18_6="0" * 64, r17_11="1" * 64)
    monkeypatch.setitem(ENGINES, Engine.POSTGRES, served_at(f"{upstream.url}/up", tmp_path))
    with pytest.raises(SourceError) as caught:
        obtain(parse_version("postgres@99.9"), home, progress)
    said = str(caught.value)
    assert "no source has postgres@99.9" in said
    assert "source cache: not there" in said
    assert "upstream: HTTP Error 404" in said
    assert "apt pool: apt lists no package archive" in said
    assert "17.11, 18.6" in said


def test_nothing_is_taken_that_only_the_network_vouches_for(
    home: Home, progress: Silent, stand: Stand, web: Web, versions: Pins, tmp_path: Path
) -> None:
    versions()
    stand.tarball(web.root / UPSTREAM)
    stand.tarball(web.root / POOL)
    (tmp_path / "apt-addresses").write_text(f"{web.address}/\n")
    with pytest.raises(SourceError, match="not HTTPS: not downloaded") as caught:
        obtain(RELEASE, home, progress)
    assert "no signed index of sources" in caught.value.what
    assert f"{home.sources}/pins.json" in caught.value.hint
    assert web.asked == []
    assert pinned_digest(RELEASE, home) is None


def test_a_file_in_the_cache_without_a_digest_is_replaced(
    home: Home, progress: Silent, stand: Stand, upstream: SelfSigned, tmp_path: Path
) -> None:
    stand.tarball(home.sources / "postgresql-18.99.tar.bz2", part="int false;\n")
    digest = stand.tarball(tmp_path / "https" / UPSTREAM)
    assert obtain(RELEASE, home, progress).digest == f"sha256:{digest}"
    assert "no digest that it must have is known" in progress.notes[1]


def test_https_that_leads_to_http_is_not_followed(
    home: Home,
    progress: Silent,
    stand: Stand,
    web: Web,
    versions: Pins,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions()
    stand.tarball(web.root / UPSTREAM)
    monkeypatch.setattr(Elsewhere, "address", web.address)
    with self_signed(web.root, tmp_path / "server.pem", Elsewhere) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        monkeypatch.setitem(ENGINES, Engine.POSTGRES, served_at(f"{server.url}/up", tmp_path))
        with pytest.raises(SourceError, match="leads from HTTPS"):
            obtain(RELEASE, home, progress)
    assert web.asked == []
    assert kept(home) == []


class Archive:
    """A package archive over HTTP with one source package, which the machine's own apt reads."""

    def __init__(self, web: Web, folder: Path, keys: Path) -> None:
        self.web, self.folder, self.keys = web, folder, keys
        self._gpg("--quick-generate-key", "the archive", "ed25519", "sign", "never")
        self._gpg("--output", str(folder / "key.gpg"), "--export")

    def publish(self) -> str:
        """Sign an index of what is in the pool; returns the digest of that file."""
        digest, dists = sha256_of(self.web.root / POOL), self.web.root / "dists/test"
        size = (self.web.root / POOL).stat().st_size
        source = (
            f"Package: postgresql-18\nBinary: postgresql-18\nArchitecture: any\nVersion: 18.99-1\n"
            f"Directory: {Path(POOL).parent}\nChecksums-Sha256:\n {digest} {size} {Path(POOL).name}\n\n"
        )
        listed = ""
        for name, text in (
            ("main/source/Sources", source),
            ("main/binary-amd64/Packages", "Package: a\nVersion: 1\n\n"),
        ):
            (dists / name).parent.mkdir(parents=True, exist_ok=True)
            (dists / name).write_text(text)
            listed += f" {sha256_of(dists / name)} {len(text)} {name}\n"
        date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
        release = f"Suite: test\nCodename: test\nDate: {date}\nArchitectures: amd64\nComponents: main\n"
        (self.folder / "Release").write_text(f"{release}SHA256:\n{listed}")
        signed = dists / "InRelease"
        self._gpg("--yes", "--output", str(signed), "--clear-sign", str(self.folder / "Release"))
        return digest

    def configure(self, *types: str, option: str = "", monkeypatch: pytest.MonkeyPatch) -> None:
        """Have apt read the archive, with an option in place of the key that it trusts."""
        (self.folder / "programs/apt-get").unlink()
        apt, option = self.folder / "apt", option or f"signed-by={self.folder / 'key.gpg'}"
        for name in ("lists/partial", "cache/archives/partial"):
            (apt / name).mkdir(parents=True)
        lines = [f"{kind} [ arch=amd64 {option} ] {self.web.address} test main\n" for kind in types]
        (apt / "sources.list").write_text("".join(lines))
        settings = {
            "State": apt,
            "State::Lists": apt / "lists",
            "State::status": "/dev/null",
            "Cache": apt / "cache",
            "Etc::SourceList": apt / "sources.list",
            **dict.fromkeys(("Etc::SourceParts", "Etc::Main", "Etc::Parts"), "/dev/null"),
        }
        text = "".join(f'Dir::{name} "{value}";\n' for name, value in settings.items())
        text += 'APT::Architecture "amd64";\nAPT::Sandbox::User "root";\nAcquire::Languages "none";\n'
        (apt / "apt.conf").write_text(text)
        monkeypatch.setenv("APT_CONFIG", str(apt / "apt.conf"))
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        assert apt_addresses() == [f"{self.web.address}/"]

    def _gpg(self, *words: str) -> None:
        command = ["gpg", "--homedir", str(self.keys), "--batch", "--passphrase", "", *words]
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def archive(web: Web, stand: Stand, versions: Pins, tmp_path: Path) -> Iterator[Archive]:
    if missing := [name for name in ("gpg", "gpgconf", "/usr/lib/apt/apt-helper") if which(name) is None]:
        pytest.skip(f"there is no {', '.join(missing)}")
    versions()
    stand.tarball(web.root / POOL)
    keys = Path(mkdtemp(prefix="gpg"))  # the path of the agent's socket has to be short
    try:
        yield Archive(web, tmp_path, keys)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(keys), "--kill", "all"], check=True)
        rmtree(keys, ignore_errors=True)  # the agent removes its sockets meanwhile


def test_the_digest_of_an_index_that_apt_verified_vouches_for_the_pool(
    home: Home, progress: Silent, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = archive.publish()
    archive.configure("deb", "deb-src", monkeypatch=monkeypatch)
    found = obtain(RELEASE, home, progress)
    assert (found.kind, found.digest) == ("apt-pool", f"sha256:{digest}")
    assert pinned_digest(RELEASE, home) == digest
    assert any("of apt's signed index" in note for note in progress.notes)


def test_a_file_of_the_pool_that_is_not_the_signed_one_is_refused(
    home: Home, progress: Silent, archive: Archive, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.publish()
    archive.configure("deb", "deb-src", monkeypatch=monkeypatch)
    stand.tarball(archive.web.root / POOL, part="int false;\n")
    with pytest.raises(SourceError, match="is pinned: refused"):
        obtain(RELEASE, home, progress)
    assert kept(home) == []


@pytest.mark.parametrize(
    ("types", "option"), [(("deb",), ""), (("deb", "deb-src"), "trusted=yes")], ids=["no sources", "unsigned"]
)
def test_an_index_that_no_signature_vouches_for_does_not_count(
    types: tuple[str, ...],
    option: str,
    home: Home,
    progress: Silent,
    archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive.publish()
    archive.configure(*types, option=option, monkeypatch=monkeypatch)
    with pytest.raises(SourceError, match=r"no signed index of sources that apt has lists it; .*deb-src"):
        obtain(RELEASE, home, progress)
    assert kept(home) == []

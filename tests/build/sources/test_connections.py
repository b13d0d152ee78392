"""Downloads, git and the tracker trust the same certificates, and say why another is refused."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.sources import connections, git
from build.sources.download import download
from build.version import Engine
from runners.alerting.trackers.github import GitHubTracker
from tests.build.sources.https import SelfSigned, self_signed
from tests.plain_repository import PlainRepository

VARIABLES = (*connections.VARIABLES, "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "CARGO_HTTP_CAINFO")

UNTRUSTED = r"self-signed certificate|certificate verification failed"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SelfSigned]:
    """With a file, an issue, and a repository as a web server without git's own program has it."""
    folder = tmp_path_factory.mktemp("https")
    root = folder / "root"
    (root / "repos/owner/name/issues").mkdir(parents=True)
    (root / "release.tar").write_text("source")
    (root / "repos/owner/name/issues/1").write_text("{}")
    repository = PlainRepository(root / "postgres")
    repository.commit("a")
    repository.git("update-server-info")
    with self_signed(root, folder / "server.pem") as server:
        yield server


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def by_download(server: SelfSigned, folder: Path) -> None:
    download(f"{server.url}/release.tar", folder / "release.tar", None, Silent())
    assert (folder / "release.tar").read_text() == "source"


def by_git(server: SelfSigned, folder: Path) -> None:
    mirror = git.mirror(f"{server.url}/postgres/.git", Engine.POSTGRES, Home(folder))
    assert len(mirror.fetch("main").commit) == 40


def by_tracker(server: SelfSigned, folder: Path) -> None:
    with pytest.raises(TidemarkError) as caught:
        GitHubTracker("owner/name", "t", server.url).read(1)
    if "the tracker's answer holds no issue" not in str(caught.value):
        raise caught.value


Client = Callable[[SelfSigned, Path], None]
CLIENTS = [by_download, by_git, by_tracker]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_that_nobody_signed_is_named_with_what_to_do(
    client: Client, server: SelfSigned, tmp_path: Path
) -> None:
    with pytest.raises(TidemarkError, match=UNTRUSTED) as caught:
        client(server, tmp_path)
    assert "SSL_CERT_FILE" in caught.value.hint


@pytest.mark.parametrize("variable", connections.VARIABLES)
@pytest.mark.parametrize("client", CLIENTS)
def test_whatever_variable_names_it_every_client_trusts_it(
    client: Client, variable: str, server: SelfSigned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = server.certificate
    if variable == "SSL_CERT_DIR":
        path = tmp_path / "certificates"
        path.mkdir()
        (path / f"{server.hash}.0").write_bytes(server.certificate.read_bytes())
    monkeypatch.setenv(variable, str(path))
    client(server, tmp_path)


@pytest.mark.parametrize("client", CLIENTS)
def test_certificates_that_are_not_there_are_the_error(
    client: Client, server: SelfSigned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(TidemarkError, match="SSL_CERT_FILE names certificates that are not there") as caught:
        client(server, tmp_path)
    assert "/nowhere/ca.pem" in str(caught.value)


def test_a_file_without_certificates_is_the_error(
    server: SelfSigned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(TidemarkError, match="the certificates cannot be read") as caught:
        by_download(server, tmp_path)
    assert "PEM" in caught.value.hint


def test_without_variables_the_systems_certificates_are_used() -> None:
    system = ssl.get_default_verify_paths()
    assert str(connections.authorities()) in (system.cafile, system.capath, "None")

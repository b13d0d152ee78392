"""A search among the commits of an extension, on one server."""

from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.progress import Silent
from build.version import parse_version
from runners import cli
from runners.bisect.domain.question import Question
from runners.bisect.requests import parse_request
from runners.bisect.run.bisect import BisectRequest
from runners.bisect.run.builds import Unusable, build_of, provider
from runners.bisect.run.candidates import extension_range
from suites.additions.variant import described
from tests.tiny_extension import TinyExtension

SERVER = "postgres@17.11"


def asked(*words: str) -> BisectRequest:
    ends = ("--good", "v1", "--bad", "v4", "--step", "insert")
    return parse_request(cli.parser().parse_args(["bisect", *ends, *words]))


def test_good_and_bad_are_refs_of_its_repository(tmp_path: Path) -> None:
    tiny = TinyExtension(tmp_path / "tiny")
    commits = [tiny.tagged("v1"), tiny.tagged("v2", factor=2), tiny.without("README.md", "v3", text="of it")]
    commits.append(tiny.tagged("v4", factor=3))
    given = ("--server", SERVER, "--extension", f"tiny={tiny.path}", "--with", "setting.work_mem=8MB")
    request = asked(*given)
    assert request.extension is not None
    assert request.address is None, "the server is not searched"
    question = request.question
    assert (question.extension, question.server, question.git) == ("tiny", SERVER, str(tiny.path))
    assert described(question.variant) == "work_mem = 8MB"
    assert question.summary.startswith(f"tiny on {SERVER} v1..v4: qps worse in ")
    assert Question.of_json(question.to_json(question.rules())) == question
    source = request.extension.mirror(Home(tmp_path / "home"))
    span = extension_range(parse_version(SERVER), source, "v1", "v4")
    assert span.versions == tuple(f"{SERVER}#{commits[place][:12]}" for place in (0, 1, 3))
    assert [collapsed["reason"] for collapsed in span.collapsed] == ["touches only README.md"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--server", SERVER), "one extension on one plain version"),
        (("--server", f"{SERVER}#fast", "--extension", "tiny=."), "one extension on one plain version"),
        (("--server", "mysql@9.7.2", "--extension", "tiny=."), "takes no extension"),
        (
            ("--server", SERVER, "--extension", "tiny=.", "--git", "."),
            "searches the repository of --extension",
        ),
        (("--server", SERVER, "--extension", "tiny=.", "--box", "bench1"), "searches the repository of"),
        (
            ("--server", SERVER, "--extension", "tiny=.", "--with", "extension.other=.@v1"),
            f"only tiny is compiled for {SERVER}, and not other as well",
        ),
        (("--extension", "tiny=."), "names what is searched on a --server"),
    ],
)
def test_what_cannot_be_searched_is_refused(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(TidemarkError, match=says):
        asked(*words)


@pytest.mark.server
@pytest.mark.compile
def test_each_commit_is_compiled_for_the_server(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny = TinyExtension(tmp_path / "tiny")
    commits = [tiny.tagged("v1"), tiny.tagged("v2", before="#error no\n"), tiny.tagged("v4", factor=2)]
    request = asked("--server", SERVER, "--extension", f"tiny={tiny.path}")
    home = Home(server_folder)
    home.builds.mkdir()
    kept = home.builds / postgres_17.prefix.name
    kept.symlink_to(postgres_17.prefix)
    provided = provider(home, Silent(), ("pgbench",), searched=request.extension)
    versions = [parse_version(f"{SERVER}#{commit[:12]}") for commit in commits]
    good, broken, bad = (build_of(version, None, home, provided) for version in versions)
    assert isinstance(good, Build)
    assert isinstance(bad, Build)
    assert good.version == versions[0]
    assert len({postgres_17.key, good.key, bad.key}) == 3
    assert good.manifest.extensions[0].commit == commits[0]
    assert isinstance(broken, Unusable)
    assert "tiny.c:1:2: error: #error no" in broken.reason

"""What the servers of both sides of a try get: durability, settings, companions and layers."""

import json
from collections.abc import Sequence

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.request import BuildRequest
from build.version import Engine
from history.open import open_store
from runners.bisect.run import builds as bisect_builds
from runners.cli import main
from runners.trying.sides import TryError, sides_of, with_servers
from runners.trying.trial import TrialRequest, history_of_tries, run_trial, timed_request
from suites.additions.variant import CompanionName, Variant
from suites.definition import load_suite
from tests.history.conftest import rows
from tests.runners.nightly.pretended import STEPS, Lab
from tests.runners.trying.test_trying import branched
from tests.runners.trying.test_trying import lab as lab


@pytest.mark.deep("a whole command in a process of its own")
def test_both_servers_get_what_the_command_line_says(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    branched(lab)
    monkeypatch.setenv("TIDEMARK_HOME", str(lab.home.path))
    words = ["try", "topic", "--git", str(lab.source), "--step", "insert", "--keep-disturbed"]
    given = ["--durability", "full", "--with", "setting.wal_level=logical"]
    given += ["--with", "setting.postgres.work_mem=1MB", "--with", "layer.transport=tcp"]
    assert main([*words, *given]) == 0
    told = capsys.readouterr().out.replace("\\_", "_")
    assert "both servers: wal_level = logical, postgres.work_mem = 1MB; clients with transport=tcp" in told
    assert "the time of flushes" not in told
    with open_store(history_of_tries(lab.home)) as store:
        found = rows(store, "SELECT durability, options FROM sessions")
    assert [durability for durability, _ in found] == ["full", "full"], "counts and rounds"
    for _, text in found:
        options = json.loads(text)
        assert options["settings"] == {"wal_level": "logical", "postgres.work_mem": "1MB"}
        assert options["layers"] == {"transport": "tcp"}
    for refused, says in (
        (["--with", "new:setting.work_mem=1MB"], "both sides of a try get the same settings"),
        (["--with", "companion=no-such-thing"], "no-such-thing"),
        (["--with", "companion=binlog-consumer"], "binlog-consumer does not run beside postgres"),
        (["--with", "layer.transport=pigeon"], "pigeon"),
        (
            ["--with", "patch=fix.patch"],
            "the keys are: setting.NAME=VALUE, layer.LAYER=VALUE, companion=NAME",
        ),
        (["--box", "db1", "--with", "setting.archive_command=true"], "get no settings, companions or layers"),
    ):
        assert main([*words, *refused]) == 2
        assert says in capsys.readouterr().err


def test_companions_run_beside_both_servers_whose_builds_have_their_programs(lab: Lab) -> None:
    branched(lab)
    compiled: list[Sequence[str]] = []

    def provide(request: BuildRequest, home: Home, progress: object) -> Build:
        assert request.slim is not None
        compiled.append(request.slim)
        raise TryError("enough is known")

    sides = sides_of(["topic"], None, Engine.POSTGRES, str(lab.source), lab.home)
    sides = with_servers(sides, Variant(companions=(CompanionName.LOGICAL_CONSUMER,)))
    suite = load_suite("write-heavy")
    asked = TrialRequest(sides, suite, "smoke", suite.select(STEPS, "smoke"), 60.0)
    request = timed_request(asked, 1.0)
    assert [request.companions_of(version) for version in request.versions] == [("logical-consumer",)] * 2
    assert all(request.settings_of(version)["wal_level"] == "logical" for version in request.versions)
    with pytest.MonkeyPatch.context() as patched, open_store(history_of_tries(lab.home)) as store:
        patched.setattr(bisect_builds, "provide", provide)
        with pytest.raises(TidemarkError, match="enough is known"):
            run_trial(asked, lab.home, store, lab.progress)
    assert "pg_recvlogical" in compiled[0]

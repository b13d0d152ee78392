"""What a command loads: a tracker's client only where something is delivered, and no numpy to compare."""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from build.home import ROOT
from history.open import open_store
from history.store import bisects
from history.store.bisects import EventKind
from runners.bisect.domain.question import BisectPoint, CandidateRange
from runners.bisect.domain.rules import SearchVerdict
from tests.history.handmade import MACHINE, NIGHT
from tests.history.watched import BASE, NEW, record_regression
from tests.runners.bisect.stand import a_question

LOADED = """
import sys
from runners.cli import main
main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""

TRACKER_CLIENT = {"requests"}
"""What sends requests to the tracker, which takes longer to load than these commands take."""

COMMANDS = {
    "status": TRACKER_CLIENT,
    "bisect status": TRACKER_CLIENT,
    "bisect report": TRACKER_CLIENT,
    "history show": TRACKER_CLIENT,
    "history series --step insert --metric qps": TRACKER_CLIENT,
    "history changes": TRACKER_CLIENT,
    "history judge": TRACKER_CLIENT,
    f"compare {BASE} {NEW}": TRACKER_CLIENT | {"numpy"},
    "compare postgres@17 postgres@REL_18_STABLE --since 2026-01-01": TRACKER_CLIENT | {"numpy"},
}
"""What each may not load."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose history has a change and a bisect with a verdict."""
    home = tmp_path_factory.mktemp("home")
    record_regression(home / "history.db", judged=True)
    question = a_question("17.11", "18.6")
    span = CandidateRange((BisectPoint("postgres@17.11"), BisectPoint("postgres@18.6")))
    verdict = SearchVerdict("none", 0, 1, 0.97, 1.0, (0.99, 1.01), 0.01, 1)
    kept = {"verdict": asdict(verdict), "observations": [["session", 1, 1, 0.001]]}
    with open_store(home / "history.db") as store, store.database.writing() as connection:
        asked, points = question.to_json(question.rules()), span.to_json()
        bisect = bisects.begin(connection, "b1", MACHINE, asked, points, None, NIGHT)
        bisects.append(connection, bisect, EventKind.VERDICT, kept, NIGHT)
    return home


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_no_more_than_it_needs(command: str, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command.split()],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TIDEMARK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    assert not COMMANDS[command] & set(done.stderr.splitlines()[-1].split())

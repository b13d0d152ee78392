"""Two containers that share a home: neither ends what the other measures, and what is left is removed."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from history.open import open_store
from runners.cli import main
from runners.measuring.cleanup import OWNER, sweep
from runners.measuring.machine_lock import BusyError, current_holder, measuring_alone
from tests.history.handmade import session_start
from tests.runners.occupancy.containers import living, needs_containers, said_in

pytestmark = needs_containers

IMPORTS = """
import sys
from pathlib import Path
from build.home import Home
from runners.measuring.cleanup import data_folder, sweep
from runners.measuring.machine_lock import BusyError, current_holder, measuring_alone
home = Home(Path(sys.argv[1]))
"""

MEASURES = (
    IMPORTS
    + """
import subprocess
with measuring_alone(home), data_folder(home, "s0123abcd") as folder:
    server = subprocess.Popen(["sleep", "600"], cwd=folder)
    print("ready", flush=True)
    sys.stdin.readline()
    print(server.poll(), sorted(path.name for path in folder.iterdir()), flush=True)
"""
)

ASKS = (
    IMPORTS
    + """
print(current_holder(home))
try:
    with measuring_alone(home):
        print("it may measure")
except BusyError as error:
    print(error)
"""
)

SWEEPS = IMPORTS + "print(sweep(home))"


def test_one_container_measures_at_a_time(tmp_path: Path) -> None:
    with living("one", MEASURES, tmp_path) as process:
        said = said_in("two", ASKS, tmp_path).splitlines()
        assert said[0].startswith("process 1 of another container or machine, one, since ")
        assert said[1] == f"the output folder is held by {said[0]}"
        # On the machine itself, the process has a number.
        holder = current_holder(Home(tmp_path))
        assert holder is not None
        assert holder.is_ours
        assert f"process {holder.pid} ({sys.executable} -c " in str(holder)
        with (
            pytest.raises(BusyError, match="the output folder is held by process"),
            measuring_alone(Home(tmp_path)),
        ):
            pass
        process.kill()
        process.wait()
    assert said_in("two", ASKS, tmp_path).splitlines() == ["None", "it may measure"]


@pytest.mark.deep("a whole command in a process of its own")
def test_a_session_of_another_container_is_removed_only_when_it_has_ended(tmp_path: Path) -> None:
    with living("one", MEASURES, tmp_path) as process:
        assert said_in("two", SWEEPS, tmp_path) == "[]"
        assert sweep(Home(tmp_path)) == []
        assert process.communicate("\n", timeout=60)[0] == f"None ['{OWNER}']\n"
    with living("one", MEASURES, tmp_path) as process:
        process.kill()
        process.wait()
        assert said_in("two", SWEEPS, tmp_path) == "['s0123abcd']"
    assert list((tmp_path / "data").iterdir()) == []


def test_what_another_machine_left_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, host in (("s00000001", "elsewhere"), ("s00000002", os.uname().nodename)):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / OWNER).write_text(f"1 {host} another-boot")
    assert sweep(Home(tmp_path)) == ["s00000002"], "this machine has booted since"
    left = tmp_path / "data" / "s00000001"
    assert left.is_dir()
    said = f"{left} is left: whether the session of host elsewhere has ended is not known here"
    assert said in capsys.readouterr().err


RECORDS = (
    IMPORTS
    + """
from history.open import open_store
from history.store.records import SessionStatus
from tests.history.handmade import session_start
with open_store(home.history) as store:
    session = store.start_session(session_start("one"))
    print("ready", flush=True)
    sys.stdin.readline()
    store.finish_session(session, SessionStatus.FINISHED)
    print("finished")
"""
)


@pytest.mark.deep("a whole command in a process of its own")
def test_a_session_that_another_container_records_is_not_interrupted(tmp_path: Path) -> None:
    """The home is another one; the history is the same, and so is the boot."""
    with living("one", RECORDS, tmp_path) as process:
        with open_store(tmp_path / "history.db") as store:
            start = session_start("two")
            store.start_session(replace(start, machine=replace(start.machine, fingerprint="beef")))
        assert process.communicate("\n", timeout=60)[0] == "finished\n"


NIGHT = (
    IMPORTS
    + """
from build.progress import Silent
from runners.nightly.heartbeat import Heart
with measuring_alone(home):
    Heart(home.heartbeat, "box", Silent())
    print("ready", flush=True)
    sys.stdin.readline()
"""
)

LOOKS = (
    IMPORTS
    + """
from datetime import UTC, datetime
from runners.nightly.heartbeat import status
print(status(home.heartbeat, datetime.now(UTC)).state)
"""
)


def test_a_night_in_another_container_is_seen_and_cannot_be_ended_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    with living("one", NIGHT, tmp_path) as process:
        assert said_in("two", LOOKS, tmp_path) == "running"
        pause = ["service", "pause", "--until", "23:59", "--why", "a demo", "--interrupt"]
        assert main(pause) == 2
        assert "is of another container, from which alone it can be ended" in capsys.readouterr().err
        assert process.poll() is None
        process.kill()
        process.wait()
    assert said_in("two", LOOKS, tmp_path) == "died"

"""GitHub's runners on a machine: which release each is, from files alone, and how old."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.fitness import agent_release
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import Level
from tests.runners.fitness.fake_kernel import FakeKernel


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


@pytest.fixture
def machine(tmp_path: Path, kernel: FakeKernel) -> CheckedMachine:
    return CheckedMachine(tmp_path, kernel)


def an_agent(kernel: FakeKernel, days: float, *, folder: str = "/srv/actions runner") -> Path:
    """A runner as a service, whose release was built so many days ago."""
    name = folder.rpartition("/")[2].replace(" ", "-")
    kernel.put(
        f"/etc/systemd/system/actions.runner.example-alerts.{name}.service",
        f"[Service]\nExecStart={folder}/runsvc.sh\nWorkingDirectory={folder}\nKillMode=process\n",
    )
    kernel.put(f"{folder}/{agent_release.LISTENER}", "")
    built = time.time() - days * 86_400
    os.utime(kernel.path(f"{folder}/{agent_release.LISTENER}"), (built, built))
    return kernel.path(folder)


def test_an_old_runner_is_noted_with_its_version(kernel: FakeKernel, machine: CheckedMachine) -> None:
    assert agent_release.agent(machine).text == "no runner of GitHub is installed as a service"
    folder = an_agent(kernel, 20.5)
    found = agent_release.agent(machine)
    assert (found.level, found.text) == (
        Level.OK,
        "GitHub's runner in /srv/actions runner was built 20 days ago",
    )
    kernel.put(
        "/srv/actions runner/_diag/Runner_20261001-000000-utc.log", "[x INFO Listener] Version: 2.330.0\n"
    )
    kernel.put(
        "/srv/actions runner/_diag/Runner_20261101-000000-utc.log", "[x INFO Listener] Version: 2.331.0\n"
    )
    assert "GitHub's runner 2.331.0 in " in agent_release.agent(machine).text
    # An update of itself puts the new release beside the old one.
    (folder / "bin").rename(folder / "bin.2.335.1")
    (folder / "bin").symlink_to(folder / "bin.2.335.1")
    os.utime(folder / agent_release.LISTENER, (0, time.time() - 31.5 * 86_400))
    found = agent_release.agent(machine)
    assert found.level is Level.NOTE
    assert found.text.startswith(
        "GitHub's runner 2.335.1 in /srv/actions runner was built 31 days ago: GitHub "
    )


def test_a_runner_that_was_removed_is_left_out(kernel: FakeKernel, machine: CheckedMachine) -> None:
    an_agent(kernel, 90)
    (kernel.path("/srv/actions runner") / agent_release.LISTENER).unlink()
    an_agent(kernel, 3, folder="/srv/other")
    found = agent_release.agent(machine)
    assert (found.level, found.text) == (Level.OK, "GitHub's runner in /srv/other was built 3 days ago")


@given(st.tuples(*[st.integers(0, 9_999)] * 3), st.text(max_size=9))
def test_a_version_is_read_whole_or_not_at_all(version: tuple[int, ...], other: str) -> None:
    text = ".".join(map(str, version))
    assert agent_release.parse_version(f"v{text}") == agent_release.parse_version(text) == version
    assert other.isdigit() or not other or agent_release.parse_version(f"{text}{other}") is None

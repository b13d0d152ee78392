"""The guide to the first night, carried out on a box of its own: its commands, and nothing else.

What is lent to the box, because it takes long and is tested elsewhere: Python packages and two builds. The
plan is cut down to one step of a second before the night begins.
"""

import re
import time

import pytest

from build.finished_build import Build
from build.home import ROOT
from tests.runners.alerting.github import REPOSITORY, TOKEN, running
from tests.runners.service.box_root import TIDEMARK, box_root, lend_builds, lend_environment

pytestmark = pytest.mark.deep("sets up a box in namespaces")

GUIDE = ROOT / "docs/guides/service.md"
MAX_COMMANDS = 6
MAX_MINUTES = 60.0

SHORT = (
    'profile = "smoke"\nsteps = ["insert"]\nrounds = 1\nseconds = 1.0\nkeep_disturbed = true\nperf = false\n'
    "exact = false\n"
)


def commands() -> list[str]:
    """The commands of the guide."""
    (block,) = re.findall(
        r"<!-- first night -->\n```sh\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    return str(block).splitlines()


@pytest.mark.server
@pytest.mark.alone
def test_six_commands_lead_to_the_first_night(postgres_17: Build, postgres_18: Build) -> None:
    clone, setup, plan, check, install, night = commands()
    assert len(commands()) <= MAX_COMMANDS
    began = time.monotonic()
    with box_root() as box, running() as github:
        box.variables["GITHUB_API_URL"] = github.url

        def call(command: str, typed: str = "", *, terminal: bool = False) -> str:
            words = ("sh", "-c", command.replace("TIDEMARK ", f"{TIDEMARK} "))
            done = box.run(*words, typed=typed, terminal=terminal)
            assert done.returncode in ((0, 1) if command == check else (0,)), done.stdout + done.stderr
            return done.stdout

        lend_environment(box)
        call(clone)
        call(setup)
        box.shell(f"mkdir -p /etc/credstore && echo {TOKEN} >/etc/credstore/tidemark-github-token")
        call(plan)
        # What a person changes in the copy.
        copy = box.path("/etc/tidemark/nightly.toml")
        text = copy.read_text().replace('profile = "short"', SHORT.strip())
        copy.write_text(text.replace('# repository = "owner/name"', f'repository = "{REPOSITORY}"'))
        assert "a test alert was opened and closed" in call(check)
        call(install)
        lend_builds(box, [postgres_17.prefix, postgres_18.prefix])
        call(night)
        assert "opened, and closed again: " in call("/opt/tidemark/tidemark service test-alert --box box1")
        summary = box.shell("cat /var/lib/tidemark/summaries/*.md")
        assert "Box box1: 1 of 1 version measured" in summary
        assert box.run("sh", "-c", "/opt/tidemark/tidemark status --format json").returncode in (0, 1)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(commands())} commands, {minutes:.1f} minutes without packages and compiling")
    assert minutes < MAX_MINUTES

"""The role for Ansible, carried out on a box of its own: once, and again, which changes nothing."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from build.home import ROOT
from tests.programs import ANSIBLE, required
from tests.runners.service.box_root import TIDEMARK, BoxRoot, box_root, lend_environment

pytestmark = pytest.mark.deep("sets up a box in namespaces")

EXAMPLE = ROOT / "runners/examples/ansible"
ROLE = EXAMPLE / "roles/tidemark_box"
PLAN = (ROOT / "runners/examples/plan.toml").read_text()


def playbook_program(box: BoxRoot) -> Path:
    """Ansible's program, if it works in a box, which sees the file system of / alone; else skip the test."""
    program = required(ANSIBLE)
    asked = box.run("sh", "-c", '"$0" --version 2>&1', str(program))
    if asked.returncode != 0:
        said = (asked.stdout + asked.stderr).strip().splitlines()
        pytest.skip(f"{program} does not work in a box of its own: {said[-1] if said else asked.returncode}")
    return program


def played(box: BoxRoot, program: Path, variables: dict[str, object]) -> dict[str, int]:
    """Carry out the playbook in a box, from within; return its counts, such as `changed`."""
    given = json.dumps({"tidemark_repository": TIDEMARK, "tidemark_box": "box1", **variables})
    # The Python is named, because what Ansible discovers may be a shim of a version manager.
    host = "{ansible_connection: local, ansible_python_interpreter: python3}"
    inventory = f"tidemark_boxes: {{hosts: {{box1: {host}}}}}"
    box.shell(f"mkdir -p /root/ansible && echo '{inventory}' >/root/ansible/hosts.yml")
    command = [str(program), "-i", "/root/ansible/hosts.yml", "--extra-vars", given]
    # Without sudo: it is root already.
    box.variables |= {"ANSIBLE_HOME": "/root/ansible", "LC_ALL": "C.UTF-8"}
    done = box.run(*command, "--extra-vars", "ansible_become=false", str(EXAMPLE / "boxes.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    (counts,) = re.findall(r"^box1 +: (.*)$", done.stdout, re.MULTILINE)
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", counts)}


def test_a_box_is_set_up_by_ansible_and_then_left_as_it_is() -> None:
    required(ANSIBLE)
    with box_root() as box:
        program = playbook_program(box)
        lend_environment(box)
        given: dict[str, object] = {
            "tidemark_plan": PLAN,
            "tidemark_secrets": {"tidemark-github-token": "secret"},
        }
        assert played(box, program, given)["changed"] > 0
        assert "[boxes.box1]" in box.path("/etc/tidemark/nightly.toml").read_text()
        assert box.path("/etc/systemd/system/tidemark-nightly.timer").is_file()
        token = box.path("/etc/credstore/tidemark-github-token")
        assert (token.read_text(), token.stat().st_mode & 0o777) == ("secret\n", 0o600)
        counts = played(box, program, given)
        assert (counts["changed"], counts["failed"]) == (0, 0)


def test_the_example_has_variables_and_options_that_exist() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    example = yaml.safe_load((EXAMPLE / "inventory.yml").read_text())["tidemark_boxes"]["vars"]
    required_ones = {"tidemark_repository", "tidemark_plan"}
    assert example.keys() - required_ones <= defaults.keys()
    documented = set(
        re.findall(r"^\| `(tidemark_\w+)` \|", (ROOT / "docs/hardware.md").read_text(), re.MULTILINE)
    )
    assert documented - required_ones <= defaults.keys()
    tasks = (ROLE / "tasks/main.yml").read_text()
    assert set(re.findall(r"\btidemark_\w+", tasks)) - required_ones <= {
        *defaults,
        *re.findall(r"^  register: (\w+)$", tasks, re.MULTILINE),
    }


def test_ansible_reads_the_playbook() -> None:
    words = [required(ANSIBLE), "-i", EXAMPLE / "inventory.yml", "--syntax-check", EXAMPLE / "boxes.yml"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

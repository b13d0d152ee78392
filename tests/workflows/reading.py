"""The workflows as they are written: what they run on, what they call, and every text in them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from build.home import ROOT

FOLDER = ROOT / ".github/workflows"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yml")}
NAMES = sorted(WORKFLOWS)

HOSTED = {"ubuntu-24.04", "ubuntu-26.04"}
"""GitHub's own runners, by the release that they are: `ubuntu-latest` becomes another one at any time."""

TRUSTED = {"schedule", "workflow_dispatch"}
"""Events that nobody can bring about who may not write to the repository."""

ROUTES = {"${{ matrix.box.label }}", "${{ needs.check.outputs.label }}"}
"""Where labels may come from: what a command made of the plan."""

PASSED_ON = {"name": "${{ matrix.box.name }}", "label": "${{ matrix.box.label }}"}
"""What a workflow for one box is called with."""

PULLS = "pull-request.yml"
PASSES_ON = ROOT / "runners/examples/pull-request-label.yml"
"""For the repository with the pull requests."""

SHA = re.compile(r"[\w./-]+@[0-9a-f]{40}")

Workflow = Mapping[Any, Any]


def events(workflow: Workflow) -> set[str]:
    on = workflow[True]  # YAML 1.1 takes the word `on` for a truth value
    return {on} if isinstance(on, str) else set(on)


def boxes_reached(workflow: Workflow, known: Mapping[str, Workflow]) -> list[str]:
    """Jobs that may run elsewhere than on a hosted runner, or call a workflow that does or is not ours."""
    return [name for name, job in workflow["jobs"].items() if _reaches_a_box(job, known)]


def _reaches_a_box(job: Workflow, known: Mapping[str, Workflow]) -> bool:
    if "uses" not in job:
        return not systems(job) <= HOSTED
    other = known.get(called(job))
    return other is None or bool(boxes_reached(other, known))


def systems(job: Workflow) -> set[str]:
    """The runners of a job, where one after another of a matrix is named by `matrix.system`."""
    label = str(job["runs-on"])
    return set(job["strategy"]["matrix"]["system"]) if label == "${{ matrix.system }}" else {label}


def called(job: Workflow) -> str:
    return str(job.get("uses", "")).removeprefix("./.github/workflows/")


def is_for_one_box(workflow: Workflow) -> bool:
    """Whether a workflow runs only where another one calls it, which reaches a box by that."""
    return events(workflow) == {"workflow_call"}


def may_reach_boxes(workflow: Workflow) -> bool:
    return events(workflow) <= TRUSTED or is_for_one_box(workflow)


def several_boxes_awaited(workflow: Workflow) -> list[str]:
    """Jobs that wait for a job on each box: the last box keeps all waiting, and one that is off for a day."""
    jobs = workflow["jobs"]
    several = {name for name, job in jobs.items() if "box" in job.get("strategy", {}).get("matrix", {})}
    waited = {name: [*(job.get("needs") or [])] for name, job in jobs.items()}
    waited |= {name: [job["needs"]] for name, job in jobs.items() if isinstance(job.get("needs"), str)}
    return [name for name, needed in waited.items() if several & set(needed)]


def strings(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text below, with the keys that lead to it."""
    if isinstance(found, str):
        yield path, found
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield from strings(value, (*path, key))
    elif isinstance(found, list):
        for value in found:
            yield from strings(value, path)


def is_secret(text: str) -> bool:
    return "${{" in text and ("secrets" in text or "github.token" in text)

"""The jobs that the nightly workflow asked of boxes, as GitHub knows them without a box and a history."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import TypeVar

from pydantic import AwareDatetime, BaseModel, RootModel, ValidationError

from runners.alerting.api.client import TrackerApi
from runners.alerting.api.dialect import ApiRefusedError
from runners.alerting.api.github import GITHUB
from runners.alerting.tokens import required_token
from runners.alerting.tracker import TrackerBusyError, TrackerError
from runners.alerting.trackers.github import API
from runners.nightly.plan import Plan

WORKFLOW = "nightly.yml"

PARTS = ("measure", "report")
"""The jobs of a box in box.yml, which GitHub calls `BOX / measure` and `BOX / report`."""

PAGE = 100
NOT_FOUND = 404

MAX_RUNS = 100
"""The latest runs in which a success of a box is looked for."""

RAN = ("success", "failure", "timed_out")
"""The conclusions of jobs that a runner had begun."""


class WorkflowRun(BaseModel):
    """A run of the workflow."""

    id: int
    created_at: AwareDatetime
    html_url: str


class WorkflowJob(BaseModel):
    """A job of a run."""

    name: str
    conclusion: str | None = None
    """None as long as it has not ended."""

    completed_at: AwareDatetime | None = None


class Workflow(BaseModel):
    """A workflow of a repository."""

    state: str
    """`active`, or how it was switched off: `disabled_inactivity`, `disabled_manually`."""

    html_url: str


class WorkflowRepository(BaseModel):
    """The repository of a workflow."""

    private: bool
    pushed_at: AwareDatetime
    html_url: str


class PublishedRelease(BaseModel):
    """A release on GitHub."""

    tag_name: str
    published_at: AwareDatetime
    prerelease: bool = False


class _Releases(RootModel[list[PublishedRelease]]):
    pass


class _Runs(BaseModel):
    workflow_runs: list[WorkflowRun]


class _Jobs(BaseModel):
    jobs: list[WorkflowJob]


@dataclass(frozen=True)
class AskedBox:
    """What a run asked of a box."""

    run: WorkflowRun
    conclusions: Mapping[str, str | None]
    """How each of its jobs ended, by part; None as long as it has not."""

    @property
    def has_run(self) -> bool:
        """Return whether a runner of the box has ended any of them."""
        return any(conclusion in RAN for conclusion in self.conclusions.values())


@dataclass(frozen=True)
class BoxSigns:
    """What the workflow knows of a box."""

    box: str
    last_success: datetime | None = None
    """None if there is none among the latest runs."""

    unanswered: tuple[AskedBox, ...] = ()
    """What was asked since then without a success, the latest first."""


_Answer = TypeVar("_Answer", bound=BaseModel)


class NightlyJobs:
    """Runs and jobs of the nightly workflow of a repository. Methods raise TrackerError."""

    def __init__(self, api: TrackerApi, repository: str) -> None:
        self._api, self.repository = api, repository

    def runs(self) -> Sequence[WorkflowRun]:
        """Return the latest runs, the latest first."""
        path = f"actions/workflows/{WORKFLOW}/runs"
        found = self._read(path, {"per_page": str(MAX_RUNS)}, _Runs)
        return sorted(found.workflow_runs, key=lambda run: run.created_at, reverse=True)

    def jobs(self, run: WorkflowRun) -> Iterator[WorkflowJob]:
        """Yield the jobs of a run."""
        for page in count(1):
            query = {"per_page": str(PAGE), "page": str(page)}
            found = self._read(f"actions/runs/{run.id}/jobs", query, _Jobs)
            yield from found.jobs
            if len(found.jobs) < PAGE:
                return

    def workflow(self, name: str) -> Workflow | None:
        """Return a workflow by the name of its file; None when the repository has none."""
        try:
            return self._read(f"actions/workflows/{name}", {}, Workflow)
        except ApiRefusedError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def about(self) -> WorkflowRepository:
        """Return the repository."""
        return self._read("", {}, WorkflowRepository)

    def releases(self, repository: str) -> Sequence[PublishedRelease]:
        """Return the latest releases of another repository, the public one `owner/name`."""
        found = self._read("releases", {"per_page": str(PAGE)}, _Releases, repository)
        return [release for release in found.root if not release.prerelease]

    def _read(
        self, path: str, query: Mapping[str, str], kind: type[_Answer], repository: str = ""
    ) -> _Answer:
        where = repository or self.repository
        full = "/".join(filter(None, ("repos", where, path)))
        answer = self._api.request("GET", full, where=where, query=query)
        try:
            return kind.model_validate(answer)
        except ValidationError:
            raise TrackerBusyError(
                "GitHub's answer is not about runs and jobs of a workflow",
                where=where,
                hint="check GITHUB_API_URL and what lies between",
            ) from None


def connect(plan: Plan) -> NightlyJobs:
    """Return the jobs of the workflow's own repository, else of the plan's. Raises TrackerError."""
    repository = os.environ.get("GITHUB_REPOSITORY") or plan.alerts.repository
    if not repository:
        raise TrackerError(
            f"which repository runs {WORKFLOW} is not known",
            where="GITHUB_REPOSITORY",
            hint="set it to owner/name, or name the plan's alerts.repository",
        )
    url = os.environ.get("GITHUB_API_URL", API)
    return NightlyJobs(TrackerApi(GITHUB, url, required_token("github")), repository)


def box_signs(
    boxes: Iterable[str], runs: Iterable[WorkflowRun], jobs_of: Callable[[WorkflowRun], Iterable[WorkflowJob]]
) -> list[BoxSigns]:
    """Return what runs, the latest first, know of boxes. Jobs are asked for until all have a success."""
    signs = {box: BoxSigns(box) for box in boxes}
    for run in runs:
        without = [sign for sign in signs.values() if sign.last_success is None]
        if not without:
            break
        jobs = {job.name: job for job in jobs_of(run)}
        for asked_box in without:
            own = {
                part: jobs[f"{asked_box.box} / {part}"]
                for part in PARTS
                if f"{asked_box.box} / {part}" in jobs
            }
            if own:
                signs[asked_box.box] = _with_run(asked_box, run, own)
    return list(signs.values())


def _with_run(signs: BoxSigns, run: WorkflowRun, jobs: Mapping[str, WorkflowJob]) -> BoxSigns:
    ended = [job.completed_at for job in jobs.values() if job.conclusion == "success" and job.completed_at]
    if ended:
        return replace(signs, last_success=max(ended))
    asked = AskedBox(run, {part: job.conclusion for part, job in jobs.items()})
    return replace(signs, unanswered=(*signs.unanswered, asked))

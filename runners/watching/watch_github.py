"""What a box asks GitHub: whether the workflows' schedules run, and whether its runner still gets jobs.

GitHub switches the schedules of a public repository off together, `watch.yml` with `nightly.yml`: no workflow
can tell of it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from history.escaping.characters import one_line
from history.escaping.markdown import document, link, md
from runners.alerting.direct_issues import DirectAlert
from runners.alerting.issues.box_names import box_prefix
from runners.alerting.tracker import TrackerError
from runners.fitness.agent_release import NO_JOBS_DAYS, AgentRelease, parse_version
from runners.nightly.plan import Plan
from runners.watching.jobs import WORKFLOW, NightlyJobs, PublishedRelease, connect
from runners.watching.telling import WatchVerdict

TRACKER = "github"
"""The tracker of plans whose repository is on GitHub."""

SCHEDULED = (WORKFLOW, "watch.yml")
"""The workflows with a schedule."""

QUIET_DAYS = 60
"""Days without a push after which GitHub switches schedules of a public repository off."""

WARNED_DAYS = 50
"""Days without a push after which that is announced."""

RUNNER = "actions/runner"
"""The repository with the releases of GitHub's runner."""

UPDATED_DAYS = 14
"""Days within which a runner has updated itself, if it ever does: GitHub says a week."""

BUILT_DAYS = 7
"""The most days between the build of a release and its publication."""

SWITCHED_OFF = "disabled_inactivity"


def github_verdicts(
    plan: Plan, box: str, releases: Iterable[AgentRelease], now: datetime
) -> tuple[list[WatchVerdict], list[str]]:
    """Return what GitHub says of the schedules and of this box's runners, and what it did not say."""
    if plan.alerts.repository is None or plan.alerts.tracker != TRACKER:
        return [], []
    found, unknown = list[WatchVerdict](), list[str]()
    try:
        github = connect(plan)
        found += _schedules(github, now)
    except TrackerError as error:
        # A token that may only write issues is enough for all else.
        unknown.append(f"whether GitHub runs the schedules is not known: {error}")
    agents = list(releases)
    if agents:
        try:
            published = connect(plan).releases(RUNNER)
            found += [_agent(box, agent, published, now) for agent in agents]
        except TrackerError as error:
            unknown += [agent.line(now) for agent in agents]
            unknown.append(f"the releases of GitHub's runner are not known: {error}")
    return found, unknown


def _schedules(github: NightlyJobs, now: datetime) -> Iterator[WatchVerdict]:
    """Yield one verdict on all schedules; none for a repository without the workflows."""
    workflows = {name: github.workflow(name) for name in SCHEDULED}
    known = {name: workflow for name, workflow in workflows.items() if workflow is not None}
    if not known:
        return
    subject, settled = "workflow-schedules", "schedules run"
    todo = "look at Actions of the repository"
    off = [name for name, workflow in known.items() if workflow.state == SWITCHED_OFF]
    about = github.about()
    day = f"{about.pushed_at:%Y-%m-%d}"
    quiet = now - about.pushed_at > timedelta(days=WARNED_DAYS) and not about.private
    if off:
        what = f"GitHub has switched off the schedule of {' and '.join(off)}"
        why = (
            f"Nothing was pushed for {QUIET_DAYS} days. Boxes with a timer of their own measure all the same."
        )
        advice = "Under Actions, choose the workflow and *Enable workflow*:"
    elif quiet:
        what = f"GitHub will switch off schedules {QUIET_DAYS} days after the last push, which was on {day}"
        why = (
            "That is for public repositories, and counts commits alone: neither issues nor runs of workflows."
        )
        advice = "Push a commit before, or watch for the day and enable the workflows under Actions again:"
    else:
        yield WatchVerdict(f"schedules on GitHub: last push {day}", subject, None, settled, todo)
        return
    text = document([md("{}.", what), "", why, "", md("{} {}", advice, link(f"{about.html_url}/actions"))])
    occasion = _digest(f"{bool(off)} {day}")
    yield WatchVerdict(what, subject, DirectAlert(subject, occasion, what, text), settled, todo)


def _agent(
    box: str, agent: AgentRelease, published: Iterable[PublishedRelease], now: datetime
) -> WatchVerdict:
    """Judge a runner by the first release that it has missed."""
    subject, settled = f"{box_prefix(box)}runner-{_digest(str(agent.folder))}", "the runner was updated"
    todo = "update it: docs/hardware.md"
    missed = min((newer for newer in published if _is_newer(newer, agent)), key=_published_at, default=None)
    if missed is None or now - missed.published_at <= timedelta(days=UPDATED_DAYS):
        return WatchVerdict(f"{agent.name}: up to date", subject, None, settled, todo, box)
    last = missed.published_at + timedelta(days=NO_JOBS_DAYS)
    ends = f"{'gets no jobs since' if last < now else 'gets no more jobs from'} {last:%Y-%m-%d}"
    text = document(
        [
            md(
                "Box **{}**: {} {}, {} days after release {} was published.",
                box,
                agent.name,
                ends,
                NO_JOBS_DAYS,
                missed.tag_name,
            ),
            "",
            "A runner updates itself within a week, unless it was configured with `--disableupdate` or has no"
            " right to write to its folder. Nights begin by the box's timer all the same.",
            "",
            "docs/hardware.md says what to do. The issue is closed when the runner was updated.",
        ]
    )
    title = one_line(f"box {box}: GitHub's runner {ends}")
    alert = DirectAlert(subject, _digest(missed.tag_name), title, text)
    return WatchVerdict(
        f"{agent.name} {ends}: it lacks {missed.tag_name}", subject, alert, settled, todo, box
    )


def _is_newer(release: PublishedRelease, agent: AgentRelease) -> bool:
    version = parse_version(release.tag_name)
    if version is not None and agent.version is not None:
        return version > agent.version
    return release.published_at - agent.built_at > timedelta(days=BUILT_DAYS)


def _published_at(release: PublishedRelease) -> datetime:
    return release.published_at


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]

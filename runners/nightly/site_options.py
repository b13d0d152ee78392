"""What a plan says of the report site: the size of the changes that it reports, and where its issues are."""

from dataclasses import replace
from pathlib import Path

from build.home import Home
from report.writing.site import SiteOptions
from runners.alerting.tracker_registry import issue_pages
from runners.nightly.heartbeat import read
from runners.nightly.plan import Plan, load_plan


def of_plan(options: SiteOptions, plan: Plan) -> SiteOptions:
    """Return the options of a site with the threshold, the tracker and the address of a plan."""
    return replace(
        options,
        threshold=plan.regression_percent / 100,
        tracker=issue_pages(plan.alerts.tracker, plan.alerts.url),
        address=plan.site.address or "",
    )


def of_last_plan(options: SiteOptions, home: Home) -> SiteOptions:
    """Return the options of a site with those of the plan of the last night in a home, where there was one.

    Raises PlanError if that plan is not valid any more.
    """
    beat = read(home.heartbeat)
    path = Path(beat.plan) if beat is not None and beat.plan else None
    return of_plan(options, load_plan(path)) if path is not None and path.is_file() else options

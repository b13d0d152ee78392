"""`./tidemark runner watch --jobs`: all boxes of a plan, by the jobs that GitHub's workflow asked of them."""

import sys
from datetime import UTC, datetime

from history.escaping.markdown import document, md
from runners.console import add_to_job_summary
from runners.nightly.plan import Plan
from runners.watching.jobs import box_signs, connect
from runners.watching.silence import verdicts
from runners.watching.telling import tell


def watch_jobs(plan: Plan) -> int:
    """Print what the workflow knows of each box; return 1 when one is silent, or no night was asked for.

    Each of these has one issue, which is closed when the box is heard of again. Return 2 when the issues
    could not be brought up to date, else 0. Raises TrackerError when GitHub does not say.
    """
    jobs, now = connect(plan), datetime.now(UTC)
    runs = jobs.runs()
    found = verdicts(box_signs(plan.boxes, runs, jobs.jobs), runs, now)
    for verdict in found:
        print(verdict.line)
    add_to_job_summary(document([md("- {}", verdict.line) for verdict in found]))
    problems = tell(plan, found)
    for problem in problems:
        print(f"tidemark: {problem}", file=sys.stderr)
    if any(verdict.alert for verdict in found):
        return 1
    return 2 if problems else 0

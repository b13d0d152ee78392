"""What a plan says of how much is kept on the disks of its boxes."""

from typing import Annotated

from pydantic import Field

from runners.nightly.keys.tracked import PlanPart
from runners.retention.builds import COMMITS

BUILDS_GB, LOGS_DAYS = 50.0, 90


class Retention(PlanPart):
    """What a night deletes when it has measured; what is needed stays whatever it takes."""

    builds_gb: Annotated[float, Field(gt=0, le=1e6)] = BUILDS_GB
    """The most gigabytes of builds on a box; those used longest ago are deleted first."""

    commits: Annotated[int, Field(strict=True, ge=1, le=10_000)] = COMMITS
    """How many of the last commits of a branch keep their builds in any case."""

    logs_days: Annotated[int, Field(strict=True, ge=1, le=10_000)] = LOGS_DAYS
    """The days after which a log is deleted."""

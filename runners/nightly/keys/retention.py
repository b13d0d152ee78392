"""What a plan says of how much is kept on the disks of its boxes."""

from typing import Annotated

from pydantic import Field

from runners.nightly.keys.tracked import PlanPart
from runners.retention.builds import COMMITS


class Retention(PlanPart):
    """What a night deletes when it has measured; what is needed stays whatever it takes."""

    builds_gb: Annotated[float, Field(gt=0, le=1e6)] = 50.0
    """The most gigabytes of builds on a box; those used longest ago are deleted first."""

    commits: Annotated[int, Field(strict=True, ge=1, le=10_000)] = COMMITS
    """How many of the last commits of a branch keep their builds in any case."""

    logs_days: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 90
    """The days after which a log is deleted."""

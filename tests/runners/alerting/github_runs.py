"""What the stand-in tracker answers about runs of workflows and their jobs."""

from collections.abc import Sequence
from typing import Any


def workflow_answer(
    runs: Sequence[dict[str, Any]], values: dict[str, str], query: Any
) -> dict[str, Any] | None:
    """A page of the runs of the nightly workflow, or of the jobs of one; None for another workflow."""
    name, listed = "workflow_runs", runs
    if "run_id" in values:
        (run,) = (found for found in runs if found["id"] == int(values["run_id"]))
        name, listed = "jobs", run["jobs"]
    elif values["workflow_id"] != "nightly.yml":
        return None
    page, size = int(query.get("page", ["1"])[0]), int(query.get("per_page", ["30"])[0])
    shown = [{key: entry[key] for key in entry if key != "jobs"} for entry in listed]
    return {"total_count": len(listed), name: shown[(page - 1) * size : page * size]}

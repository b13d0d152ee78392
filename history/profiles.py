"""CPU profiles of runs: folded stacks, compressed, and read back by version and step."""

import json
import zlib
from collections.abc import Mapping

from sqlalchemy import Connection, insert, select

from history.schema import profiles, runs
from suites.profiling.stacks import StepProfile

COMPRESSION = 9
"""zlib's best: stacks repeat each other, and a run has few of them."""


def insert_profile(connection: Connection, run_id: int, profile: StepProfile) -> None:
    """Write the profile of a run. One that holds no sample is none."""
    if not profile.samples or profile.queries <= 0:
        return
    row = {
        "run_id": run_id,
        "event": profile.event,
        "frequency": profile.frequency,
        "queries": profile.queries,
        "lost": profile.lost,
        "stacks": packed(profile.stacks),
    }
    connection.execute(insert(profiles).values(row))


def profiles_of(
    connection: Connection, session_id: int, step: str, version: str
) -> Mapping[int, StepProfile]:
    """The profiles of a version on a step, by round."""
    query = (
        select(profiles, runs.c.repetition)
        .join_from(profiles, runs, profiles.c.run_id == runs.c.id)
        .where(runs.c.session_id == session_id, runs.c.step == step, runs.c.version == version)
        .order_by(runs.c.position, runs.c.id)
    )
    return {
        row["repetition"]: StepProfile(
            row["event"], row["frequency"], row["queries"], row["lost"], unpacked(row["stacks"])
        )
        for row in connection.execute(query).mappings()
    }


def packed(stacks: Mapping[str, int]) -> bytes:
    """Stacks as they are stored: JSON, sorted so that neighbours are alike, compressed by zlib."""
    return zlib.compress(
        json.dumps(dict(sorted(stacks.items())), separators=(",", ":")).encode(), COMPRESSION
    )


def unpacked(content: bytes) -> Mapping[str, int]:
    """What was packed."""
    stacks: dict[str, int] = json.loads(zlib.decompress(content))
    return stacks

"""CPU profiles of runs: folded stacks, compressed, and read back by version and step."""

import json
import zlib
from collections.abc import Mapping

from history.store.sql import Source
from suites.profiling.stacks import StepProfile

COMPRESSION = 9
"""zlib's best: stacks repeat each other, and a run has few of them."""


def profiles_of(source: Source, session_id: int, step: str, version: str) -> Mapping[int, StepProfile]:
    """The profiles of a version on a step, by round."""
    rows = source.rows(
        "SELECT runs.repetition, profiles.event, profiles.frequency, profiles.queries, profiles.lost,"
        " profiles.stacks FROM profiles JOIN runs ON profiles.run_id = runs.id"
        " WHERE runs.session_id = :session_id AND runs.step = :step AND runs.version = :version"
        " ORDER BY runs.position, runs.id",
        session_id=session_id,
        step=step,
        version=version,
    )
    return {
        repetition: StepProfile(event, frequency, queries, lost, unpacked(stacks))
        for repetition, event, frequency, queries, lost, stacks in rows
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

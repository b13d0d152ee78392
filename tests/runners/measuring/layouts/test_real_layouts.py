"""Layouts of a real Postgres: linked again in seconds, served from where they lie, and taken in turns."""

import json
import re
import sqlite3

import pytest

from build.home import Home, locate
from build.progress import Silent
from build.provide import provide
from build.relink import can_relink
from build.request import BuildRequest
from build.version import parse_version
from tests.runners.measuring.test_end_to_end import tidemark

pytestmark = [pytest.mark.server, pytest.mark.compile, pytest.mark.alone]

NAME = "postgres@18.6"
WORDS = ("--step", "update-index", "--seconds", "1", "--no-exact", "--keep-disturbed")


@pytest.mark.timeout(1200)
def test_a_session_over_three_layouts(home: Home) -> None:
    build = provide(BuildRequest(parse_version(NAME), relinks=True), locate(), Silent())
    assert can_relink(build)
    ran = tidemark(home, "run", "--layouts", "3", *WORDS, NAME, f"{NAME}#twin")
    assert ran.returncode == 0, ran.stderr
    uid = re.search(r"session ([0-9a-f]{8})", ran.stdout)
    assert uid
    assert not (home.data / f"s{uid[1]}").exists(), "layouts go with the session"
    with sqlite3.connect(home.history) as connection:
        (options,) = connection.execute("SELECT options FROM sessions").fetchone()
        keys = connection.execute("SELECT DISTINCT key FROM builds JOIN runs ON builds.id = build_id")
        assert keys.fetchall() == [(build.key,)]
        assert connection.execute("SELECT count(*) FROM runs WHERE status = 'finished'").fetchone() == (6,)
    recorded = json.loads(options)
    assert recorded["layouts"]["count"] == 3
    seeds = [seed for side in recorded["layout_seeds"].values() for seed in side]
    assert len({*seeds}) == 6
    compared = tidemark(home, "compare", NAME, f"{NAME}#twin").stdout
    assert "3 rounds in 3 layouts a side" in " ".join(compared.split())

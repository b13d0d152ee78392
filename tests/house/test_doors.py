"""A room with a door is entered by it, and what it stores is stored nowhere else."""

from pathlib import Path

import pytest

from build.home import ROOT
from tests.house.imports import import_graph, past_doors
from tests.house.rules import writes_of
from tests.house.sources import ROOMS, Source, house, none_of, places, program, read

DOORS = {"history.changes.confirmation": "confirmations"}
"""Packages whose modules only they themselves import, each with the table that only it fills."""


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    """Every Python file that names one of the packages, or a table of them, and those inside."""
    words = {word for door, table in DOORS.items() for word in (door.rpartition(".")[2], table)}
    return [source for source in read(ROOT, ROOMS) if any(word in source.text for word in words)]


def outside(sources: list[Source], door: str) -> list[Source]:
    """The program without a package."""
    folder = Path(*door.split("."))
    return [source for source in program(sources) if folder not in source.path.parents]


@pytest.mark.deep("imports every module")
def test_rooms_are_entered_by_their_door(sources: list[Source]) -> None:
    inside = [source for source in read(ROOT, ROOMS) if source.module.startswith(tuple(DOORS))]
    assert len(inside) > len(DOORS)
    none_of(past_doors(import_graph({*sources, *inside}), DOORS))


@pytest.mark.parametrize(
    "text",
    ["from room.pack.store import load", "from room.pack import store", "import room.pack.store"],
)
def test_an_import_past_a_door_is_seen(text: str) -> None:
    made_up = house(
        {
            "room/pack/__init__.py": "from room.pack.store import load",
            "room/pack/store.py": "def load(): ...",
            "room/pack/ask.py": text,
            "room/outside.py": f"def f():\n    {text}",
            "room/guest.py": "from room.pack import load",
            "tests/room/pack/test_store.py": text,
            "tests/room/test_outside.py": text,
        }
    )
    reports = past_doors(import_graph(made_up), ["room.pack"])
    assert places(reports) == ["room/outside.py:2", "tests/room/test_outside.py:1"]


@pytest.mark.parametrize("door", DOORS)
def test_what_a_room_stores_is_stored_by_it_alone(sources: list[Source], door: str) -> None:
    assert writes_of(sources, DOORS[door]), "the room itself"
    none_of(writes_of(outside(sources, door), DOORS[door]))


@pytest.mark.parametrize(
    "text",
    [
        "connection.execute(insert(confirmations), rows)",
        "connection.execute(sqlalchemy.insert(schema.confirmations).values(row))",
        "connection.execute(confirmations.insert(), rows)",
        "connection.execute(update(confirmations).values(row))",
        "connection.exec_driver_sql('INSERT INTO confirmations (id) VALUES (1)')",
    ],
)
def test_another_way_of_storing_is_seen(text: str) -> None:
    assert places(writes_of(house({"a.py": f"\n{text}"}), "confirmations")) == ["a.py:2"]
    reads = "delete(confirmations)\nselect(confirmations)\ninsert(nights)\nrows.insert(0, confirmations)"
    assert writes_of(house({"a.py": reads}), "confirmations") == []

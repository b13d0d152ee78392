"""Copies of loaded data: what is kept, what is used again, and what a damaged or unfinished one is."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.errors import TidemarkError
from runners.retention.data_command import chosen, rows
from suites.data_copies.store import CopyError, CopyKey, DataCopies, KeptCopy, read_manifest
from suites.processes import own

KEY = CopyKey("postgres@18.6", "tpch", "short", {"build": "ab12", "settings": "[]"})


@pytest.fixture
def loaded(server_folder: Path) -> Path:
    """A data directory of the server user."""
    folder = server_folder / "loaded"
    (folder / "base").mkdir(parents=True)
    (folder / "PG_VERSION").write_text("18\n")
    (folder / "base" / "1").write_bytes(os.urandom(20_000))
    for path in (folder, *folder.rglob("*")):
        own(path)
    return folder


@pytest.fixture
def kept(server_folder: Path, loaded: Path) -> DataCopies:
    """A folder with one copy."""
    copies = DataCopies(server_folder / "copies")
    copies.save(KEY, loaded)
    return copies


def test_a_copy_is_what_was_copied(kept: DataCopies, loaded: Path) -> None:
    data = kept.find(KEY)
    assert data is not None
    assert (data / "base" / "1").read_bytes() == (loaded / "base" / "1").read_bytes()
    (copy,) = kept.all()
    assert (copy.version, copy.suite, copy.profile, copy.build, copy.damage) == (
        "postgres@18.6",
        "tpch",
        "short",
        "ab12",
        None,
    )
    assert copy.bytes == 20_003


@pytest.mark.parametrize("part", ["build", "settings", "sizes"])
def test_other_data_have_another_key(kept: DataCopies, part: str) -> None:
    other = CopyKey(KEY.version, KEY.suite, KEY.profile, {**KEY.parts, part: "other"})
    assert kept.find(other) is None
    assert kept.find(KEY) is not None


def cut_off(data: Path) -> None:
    os.truncate(data / "base" / "1", 8192)


def without_a_file(data: Path) -> None:
    (data / "PG_VERSION").unlink()


def with_another_file(data: Path) -> None:
    (data / "postmaster.pid").write_text("1")


def with_half_a_manifest(data: Path) -> None:
    manifest = data.parent / "manifest.json"
    os.truncate(manifest, manifest.stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_off, "1 files are missing or of another size, such as base/1"),
        (without_a_file, "such as PG_VERSION"),
        (with_another_file, "1 files are new, such as postmaster.pid"),
        (with_half_a_manifest, "its manifest cannot be read"),
    ],
)
def test_a_damaged_copy_is_not_used_and_removed(
    kept: DataCopies, loaded: Path, damage: Callable[[Path], None], said: str
) -> None:
    notes: list[str] = []
    copies = DataCopies(kept.folder, notes.append)
    damage(kept.folder / KEY.name / "data")
    assert copies.find(KEY) is None
    assert said in notes[0]
    assert copies.all() == []
    copies.save(KEY, loaded)
    assert copies.find(KEY) is not None


def test_a_copy_that_was_cut_off_while_it_was_made_is_not_seen(kept: DataCopies) -> None:
    (kept.folder / KEY.name).rename(kept.folder / f"{KEY.name}.partial")
    assert kept.find(KEY) is None
    (partial,) = kept.all()
    assert partial.damage == "it was cut off while it was made"


def test_a_folder_of_somebody_else_is_no_copy(kept: DataCopies) -> None:
    (kept.folder / "theirs").mkdir()
    assert [copy.name for copy in kept.all()] == [KEY.name]


def test_data_that_cannot_be_copied_leave_nothing_and_end_nothing(server_folder: Path) -> None:
    notes: list[str] = []
    copies = DataCopies(server_folder / "copies", notes.append)
    copies.save(KEY, server_folder / "missing")
    assert "no copy of its data is kept" in notes[0]
    assert list((server_folder / "copies").iterdir()) == []


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(
    st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_anything_else_is_no_manifest(content: bytes) -> None:
    with pytest.raises(CopyError):
        read_manifest(content)


# --- the command


def a_copy(name: str, build: str, damage: str | None = None) -> KeptCopy:
    return KeptCopy(Path(name), "postgres@18.6", "tpch", "short", build, 2_000_000_000, "2026-11-23", damage)


COPIES = [
    a_copy("a", "05bd30dc3372ff"),
    a_copy("b", "77bd30dc3372ff"),
    a_copy("c", "05bd30dc3372ff", "cut off"),
]
BUILDS = {"postgres-18.6-05bd30dc3372"}


@pytest.mark.parametrize(
    ("names", "everything", "deleted"),
    [((), False, ["b", "c"]), (("a",), False, ["a"]), ((), True, ["a", "b", "c"])],
    ids=["what nothing can use", "by name", "all"],
)
def test_which_copies_are_deleted(names: tuple[str, ...], everything: bool, deleted: list[str]) -> None:
    assert [copy.name for copy in chosen(COPIES, names, BUILDS, everything=everything)] == deleted


def test_an_unknown_name_is_a_mistake() -> None:
    with pytest.raises(TidemarkError, match="no copy 'x'"):
        chosen(COPIES, ("x",), BUILDS, everything=False)


def test_the_list_of_copies() -> None:
    assert rows(COPIES[1:]) == [
        "b    2.00 GB  postgres@18.6, tpch short, kept 2026-11-23",
        "c    2.00 GB  unusable: cut off",
        "2 copies, 4.00 GB",
    ]

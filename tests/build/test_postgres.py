"""The table of Postgres recipes."""

import pytest

from build.recipes.postgres import recipe, release_of
from build.recipes.recipe import RecipeError


def flags(release: str, *libraries: str) -> list[str]:
    """The configure flags that differ between versions."""
    command = recipe(release, lambda name: name in libraries).stages[0].command
    return [word for word in command if word.startswith("--with")]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("12.22", []),
        ("13.23", []),
        ("14.0", ["--with-lz4"]),
        ("15.18", ["--with-lz4"]),
        ("16.1", ["--with-lz4", "--with-icu"]),
        ("17.11", ["--with-lz4", "--with-icu"]),
        ("18rc1", ["--with-lz4", "--with-icu", "--with-liburing"]),
        ("18.6", ["--with-lz4", "--with-icu", "--with-liburing"]),
        ("19devel", ["--with-lz4", "--with-icu", "--with-liburing"]),
    ],
)
def test_flags_by_version(release: str, expected: list[str]) -> None:
    assert flags(release, "liburing") == expected


def test_liburing_is_left_out_where_it_is_not_installed() -> None:
    assert "--with-liburing" not in flags("18.6")


@pytest.mark.parametrize("release", ["9.6.24", "11.22"])
def test_a_version_older_than_the_table_is_refused(release: str) -> None:
    with pytest.raises(RecipeError, match=f"no recipe for Postgres {release}"):
        recipe(release, lambda name: True)


def test_every_recipe_optimises_and_keeps_what_profiles_need() -> None:
    for release in ("12.0", "14.0", "16.0", "18.0"):
        assert "CFLAGS=-O2 -fno-omit-frame-pointer -g" in recipe(release, lambda name: True).stages[0].command


def test_release_of_configure() -> None:
    assert release_of("#!/bin/sh\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='19devel'\n") == "19devel"
    with pytest.raises(RecipeError, match="names no Postgres release"):
        release_of("PACKAGE_VERSION='$(touch x)'\n")

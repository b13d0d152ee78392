"""MariaDB's recipes."""

import pytest

from build.recipes import mariadb
from build.recipes.recipe import RecipeError


def configure(release: str) -> tuple[str, ...]:
    return mariadb.recipe(release, lambda _: False).stages[0].command


@pytest.mark.parametrize("release", ["10.11.18", "11.8.6", "12.1.2"])
def test_nothing_is_downloaded_and_no_unused_engine_is_compiled(release: str) -> None:
    words = configure(release)
    assert {f"-DWITH_{part}=system" for part in ("SSL", "ZLIB", "PCRE", "LIBFMT")} <= set(words)
    assert {"-DPLUGIN_ROCKSDB=NO", "-DPLUGIN_SPIDER=NO", "-DWITH_WSREP=OFF"} <= set(words)
    assert mariadb.recipe(release, lambda _: False).stages[1].command[-4:] == mariadb.TARGETS


@pytest.mark.parametrize("release", ["10.11.18", "11.8.6"])
def test_every_version_has_the_same_asynchronous_io(release: str) -> None:
    assert {"-DWITH_LIBAIO=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_URING=ON"} <= set(configure(release))


def test_the_flags_are_those_of_other_engines() -> None:
    flags = [word for word in configure("11.8.6") if "FLAGS_RELWITHDEBINFO" in word]
    assert len(flags) == 2
    assert all("-O2" in word and "-fno-omit-frame-pointer" in word for word in flags)


def test_a_version_before_the_table_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"there is no recipe for MariaDB 10\.6\.20"):
        configure("10.6.20")


def test_the_release_is_read_from_the_source() -> None:
    text = "MYSQL_VERSION_MAJOR=11\nMYSQL_VERSION_MINOR=8\nMYSQL_VERSION_PATCH=6\nSERVER_MATURITY=stable\n"
    assert mariadb.release_of(text) == "11.8.6"
    with pytest.raises(RecipeError, match="names no MariaDB release: PATCH is missing"):
        mariadb.release_of(text.replace("PATCH=6", "PATCH="))

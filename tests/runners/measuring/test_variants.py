"""Variants: what a command line defines, what each version gets of it, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.errors import TidemarkError
from build.extension import ExtensionError
from build.host import HostError
from build.recipes.recipe import BuildChoices
from build.version import Engine, parse_version
from history.series.variants import definition_notes
from runners.measuring.variants import (
    EVERY,
    compiled_for_layers,
    definition_of,
    read_variants,
    recorded,
    require_defined,
)
from suites.additions.variant import UNCHANGED, CompanionName, Variant, VariantError, described, option_words
from suites.layers.choice import LayerError
from suites.postgres.initdb_options import InitdbError

PLAIN, FAST, TWIN = (parse_version(f"postgres@18.6{variant}") for variant in ("", "#fast", "#twin"))


def test_a_variant_has_settings_compiler_flags_options_and_patches_in_any_mixture() -> None:
    given = ["setting.work_mem=4MB", "fast:setting.work_mem=8MB", "fast:setting.search_path=a=b"]
    given += ["fast:build.CC=clang", "fast:build.CFLAGS=-O3", "fast:build.CFLAGS=-march=native"]
    given += ["fast:build.configure=--with-llvm", "fast:patch=one.patch", "fast:patch=two.patch"]
    variants = read_variants(given)
    assert definition_of(PLAIN, variants) == Variant({"work_mem": "4MB"})
    assert definition_of(FAST, variants) == Variant(
        {"work_mem": "8MB", "search_path": "a=b"},
        BuildChoices("clang", "-O3 -march=native", "", ("--with-llvm",)),
        (Path("one.patch"), Path("two.patch")),
    )
    assert recorded(variants, ["", "fast"]) == {
        "fast": {
            "settings": {"work_mem": "8MB", "search_path": "a=b"},
            "build": {"CC": "clang", "CFLAGS": "-O3 -march=native", "configure": ["--with-llvm"]},
            "patches": ["one.patch", "two.patch"],
        }
    }


def test_a_variant_has_extensions_in_place_of_those_of_every_version() -> None:
    every, own = "extension.tiny=https://example.org/t@v1", "fast:extension.tiny=https://example.org/t@v2"
    other = "extension.other=https://example.org/o@main"
    variants = read_variants([every, other, own])
    assert [str(each) for each in definition_of(PLAIN, variants).extensions] == ["tiny v1", "other main"]
    assert [str(each) for each in definition_of(FAST, variants).extensions] == ["other main", "tiny v2"]
    commit = "0123456789abcdef0123456789abcdef01234567"
    recorded_as = {"extensions": [replace(variants["fast"].extensions[0], commit=commit).to_json()]}
    assert described(recorded_as) == "with tiny v2 (0123456789ab)"
    assert option_words("fast", recorded_as) == [
        "--with",
        "fast:extension.tiny=https://example.org/t@0123456789ab",
    ]
    assert definition_notes(recorded_as, [PLAIN]) == ["every version: with tiny v2 (0123456789ab)"]
    with pytest.raises(ExtensionError, match="tiny is named twice"):
        read_variants([every, every])
    with pytest.raises(ExtensionError, match=r"mysql@9\.7\.2 takes no extension"):
        require_defined([parse_version("mysql@9.7.2")], read_variants([every]))


def test_a_variant_has_indexes_and_companions() -> None:
    variants = read_variants(["fast:index=t*(c)", "index=t*(k)", "fast:companion=pgbouncer"])
    assert definition_of(FAST, variants) == Variant(
        indexes=("t*(k)", "t*(c)"), companions=(CompanionName.PGBOUNCER,)
    )
    definition = variants["fast"].to_json()
    assert definition == {"indexes": ["t*(c)"], "companions": ["pgbouncer"]}
    assert described(definition) == "with indexes on t*(c); beside pgbouncer"
    words = option_words("fast", definition)
    assert words == ["--with", "fast:index=t*(c)", "--with", "fast:companion=pgbouncer"]
    require_defined([PLAIN, FAST], variants)


def test_a_variant_has_layers() -> None:
    variants = read_variants(["layer.protocol=simple", "fast:layer.tls=on", "fast:layer.protocol=prepared"])
    assert definition_of(PLAIN, variants).layers == {"protocol": "simple"}
    fast = definition_of(FAST, variants)
    assert fast.layers == {"protocol": "prepared", "tls": "on"}
    definition = variants["fast"].to_json()
    assert definition == {"layers": {"tls": "on", "protocol": "prepared"}}
    assert described(definition) == "clients with tls=on, protocol=prepared"
    words = option_words("fast", definition)
    assert words == ["--with", "fast:layer.tls=on", "--with", "fast:layer.protocol=prepared"]
    require_defined([PLAIN, FAST], variants)
    with pytest.raises(VariantError, match=r"are the same: same version, settings and build"):
        require_defined([PLAIN, FAST], read_variants(["layer.tls=on", "fast:layer.tls=on"]))
    with pytest.raises(LayerError, match="did you mean tls"):
        read_variants(["fast:layer.tsl=on"])


def test_postgres_is_compiled_with_tls_where_a_layer_has_it() -> None:
    fast = definition_of(FAST, read_variants(["fast:build.configure=--with-llvm", "fast:layer.tls=on"]))
    compiled = compiled_for_layers(fast, Engine.POSTGRES, {})
    assert compiled.build.options == ("--with-openssl", "--with-llvm")
    assert compiled_for_layers(compiled, Engine.POSTGRES, {}) == compiled
    assert compiled_for_layers(fast, Engine.MYSQL, {}) == fast
    assert compiled_for_layers(fast, Engine.POSTGRES, {"tls": "off"}) == compiled, "its own value counts"
    assert compiled_for_layers(UNCHANGED, Engine.POSTGRES, {"tls": "on"}).build.options == ("--with-openssl",)
    assert compiled_for_layers(UNCHANGED, Engine.POSTGRES, {}) == UNCHANGED


def test_a_companion_that_does_not_exist_is_refused() -> None:
    with pytest.raises(VariantError, match="there is no companion 'pgbounce'"):
        read_variants(["fast:companion=pgbounce"])


def test_a_compiler_that_is_not_installed_is_refused() -> None:
    with pytest.raises(HostError, match="clang-of-nowhere"):
        require_defined([PLAIN, FAST], read_variants(["fast:build.CC=clang-of-nowhere"]))


def test_what_every_version_gets_comes_before_what_its_variant_gets() -> None:
    variants = read_variants(["setting.a=1", "fast:setting.a=2", "fast:build.CFLAGS=-O2", "build.CFLAGS=-O3"])
    assert definition_of(FAST, variants) == Variant({"a": "2"}, BuildChoices(flags="-O3 -O2"))
    assert definition_of(TWIN, variants) == variants[EVERY]
    assert definition_of(PLAIN, {}) == UNCHANGED


def test_a_twin_needs_no_definition_and_may_be_the_same() -> None:
    require_defined([PLAIN, TWIN], {})


@pytest.mark.parametrize(
    ("settings", "versions", "said"),
    [
        (["fast:setting.a=1"], [PLAIN], "no version is called postgres@18.6#fast"),
        ([], [PLAIN, FAST], "postgres@18.6#fast is not defined"),
        (
            ["setting.a=1", "fast:setting.a=1"],
            [PLAIN, FAST],
            "postgres@18.6 and postgres@18.6#fast are the same",
        ),
    ],
)
def test_versions_and_variants_belong_together(settings: list[str], versions: list, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(VariantError, match=said):
        require_defined(versions, read_variants(settings))


def test_a_variant_has_options_of_initdb() -> None:
    variants = read_variants(["initdb.wal-segsize=64", "fast:initdb.checksums=off"])
    assert definition_of(PLAIN, variants).initdb == {"wal-segsize": "64"}
    assert definition_of(FAST, variants).initdb == {"wal-segsize": "64", "checksums": "off"}
    definition = variants["fast"].to_json()
    assert definition == {"initdb": {"checksums": "off"}}
    assert described(definition) == "initdb with checksums=off"
    assert option_words("fast", definition) == ["--with", "fast:initdb.checksums=off"]
    require_defined([PLAIN, FAST], variants)
    with pytest.raises(InitdbError, match="did you mean wal-segsize"):
        read_variants(["fast:initdb.wal-segsiz=64"])
    with pytest.raises(InitdbError, match="a power of 2"):
        read_variants(["initdb.wal-segsize=65"])


def test_the_same_definition_of_two_versions_is_no_mistake() -> None:
    require_defined([PLAIN, parse_version("postgres@17.11#fast"), FAST], read_variants(["fast:setting.a=1"]))


@given(st.text(max_size=40), st.sampled_from(["", "setting.", "build.CFLAGS=", "fast:patch=", "layer.tls="]))
def test_any_word_is_read_or_refused(word: str, begins: str) -> None:
    try:
        variants = read_variants([begins + word])
    except TidemarkError:
        return
    assert "=" in begins + word
    assert "\n" not in word
    ((name, variant),) = variants.items()
    assert name == EVERY or parse_version(f"postgres@18.6#{name}").variant == name
    assert variant != UNCHANGED


def test_the_words_of_a_definition_define_it_again() -> None:
    given = ["setting.work_mem=8MB", "build.CFLAGS=-O3 -g", "build.configure=-a", "build.configure=-b"]
    given += ["patch=x", "extension.tiny=https://example.org/t@v1", "layer.tls=on", "initdb.locale=C"]
    given += ["index=t*(c)", "index=t*(k)", "companion=pgbouncer"]
    variants = read_variants([f"fast:{word}" for word in given])
    option, *words = dict.fromkeys(option_words("fast", variants["fast"].to_json()))
    assert option == "--with"
    assert words == [f"fast:{word}" for word in given]
    assert option_words("fast", {}) == []


def test_a_definition_in_words() -> None:
    definition = {
        "settings": {"io_method": "io_uring"},
        "build": {"CC": "clang", "configure": ["-a", "-b"]},
        "patches": ["x.patch"],
    }
    assert (
        described(definition)
        == "io_method = io_uring; compiled with CC=clang, configure=-a -b; patched with x.patch"
    )
    notes = definition_notes({"variants": {"fast": definition}}, [PLAIN, FAST])
    assert notes == [f"postgres@18.6#fast: {described(definition)}"]
    assert definition_notes({}, [FAST]) == []

"""What counts as a version."""

import string
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from build.engines import ENGINES, git_ref
from build.recipes.postgres import TABLE
from build.recipes.recipe import range_of
from build.version import (
    Engine,
    Version,
    VersionError,
    is_prerelease,
    parse_revision,
    parse_version,
    release_numbers,
    split_steps,
)

ANY_ENGINE = st.sampled_from(list(Engine))
NUMBERS = st.lists(st.integers(0, 99), min_size=2, max_size=3)
WORDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)


@given(ANY_ENGINE, NUMBERS)
def test_a_release_survives_writing_and_reading(engine: Engine, numbers: list[int]) -> None:
    release = ".".join(map(str, numbers))
    version = parse_version(f"{engine}@{release}")
    assert version == Version(engine, release)
    assert parse_version(str(version)) == version
    assert version.is_release
    assert release_numbers(release) == tuple(numbers)


@given(ANY_ENGINE, st.lists(WORDS, min_size=1, max_size=3), st.booleans())
def test_a_git_ref_survives_writing_and_reading(engine: Engine, words: list[str], marked: bool) -> None:
    ref = "/".join(words)
    assume(not is_prerelease(ref))
    version = parse_version(f"{engine}@{'git:' if marked else ''}{ref}")
    assert parse_version(str(version)) == version
    assert not version.is_release
    assert git_ref(version) == ref


@given(ANY_ENGINE, NUMBERS, st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True))
def test_a_variant_survives_writing_and_reading(engine: Engine, numbers: list[int], variant: str) -> None:
    release = ".".join(map(str, numbers))
    version = parse_version(f"{engine}@{release}#{variant}")
    assert version == Version(engine, release, variant)
    assert parse_version(str(version)) == version
    assert version.plain == parse_version(f"{engine}@{release}")
    assert version.plain.plain == version.plain
    assert (git_ref(version), version.is_release) == (git_ref(version.plain), True)


@pytest.mark.parametrize("variant", ["", "-x", "a b", "a#b", "a/b", "../x", "$(touch x)", "ä", "a\n", "_"])
def test_a_nasty_variant_is_refused(variant: str) -> None:
    with pytest.raises(VersionError, match="is not a valid variant"):
        parse_version(f"postgres@18.6#{variant}")


@given(st.text() | st.builds("{}@{}".format, ANY_ENGINE, st.text(string.printable)))
def test_whatever_is_typed_is_a_version_or_refused(text: str) -> None:
    with suppress(VersionError):
        version = parse_version(text)
        assert str(version) == text
        assert not git_ref(version).startswith(("-", "/", "."))
        assert ".." not in git_ref(version)
        assert not set(git_ref(version)) & set(" $`;&|<>()'\"\\*?[~^:\n\t\0")


@pytest.mark.parametrize(
    "ref",
    [
        "$(touch x)", "`id`", "--upload-pack=x", "-x", "git:--upload-pack=x", "..", "../x", "a..b", "a//b",
        "a/", "/etc", "x.lock", "a b", "a\nb", "a~1", "a^", "a:b", "ext::sh", "", "git:", "a@{1}", "☃",
    ],
)  # fmt: skip
def test_a_nasty_ref_is_refused(ref: str) -> None:
    with pytest.raises(VersionError):
        parse_version(f"postgres@{ref}")


@pytest.mark.parametrize("text", ["", "postgres", "postgres@", "@18.6", "oracle@23", "Postgres@18.6"])
def test_what_is_not_engine_at_ref_is_refused(text: str) -> None:
    with pytest.raises(VersionError) as caught:
        parse_version(text)
    assert caught.value.hint


def is_rising(releases: list[str]) -> bool:
    return all(release_numbers(before) < release_numbers(after) for before, after in pairwise(releases))


MAJORS, STAGES, COUNTS = st.integers(10, 98), st.sampled_from(["beta", "rc"]), st.integers(1, 98)


@given(MAJORS, STAGES, COUNTS, st.lists(st.integers(0, 99), min_size=1, max_size=2))
def test_prereleases_come_between_the_branch_and_its_first_release(
    major: int, stage: str, count: int, later: list[int]
) -> None:
    prerelease = f"{major}{stage}{count}"
    assert parse_version(f"postgres@{prerelease}").is_release
    assert is_prerelease(prerelease)
    release = ".".join(map(str, [major, *later]))
    assert not is_prerelease(release)
    ordered = [f"{major}devel", prerelease, release, f"{major + 1}devel"]
    assert is_rising(ordered)
    stages = [f"{major}beta{count}", f"{major}beta{count + 1}", f"{major}rc{count}", f"{major}.0"]
    assert is_rising(stages)
    assert ENGINES[Engine.POSTGRES].line(prerelease) == str(major)


@pytest.mark.parametrize(
    "ref", ["19beta", "19beta0", "beta1", "1beta1", "19.1beta1", "19alpha1", "19rc1x", "019rc1"]
)
def test_what_only_looks_like_a_prerelease_is_a_name_of_git(ref: str) -> None:
    assert not parse_version(f"postgres@{ref}").is_release


def test_a_prerelease_has_the_names_that_upstream_and_debian_give_it() -> None:
    """https://www.postgresql.org/ftp/source/, and deb-version(7) for the tilde."""
    version = parse_version("postgres@19beta1")
    assert git_ref(version) == "REL_19_BETA1"
    upstream = ENGINES[version.engine].upstream
    assert upstream.tarball_url("19beta1").endswith("/v19beta1/postgresql-19beta1.tar.bz2")
    assert upstream.pool_paths("19rc1")[0] == "pool/main/p/postgresql-19/postgresql-19_19~rc1.orig.tar.bz2"


def test_a_prerelease_is_compiled_as_its_major_version_is() -> None:
    recipe = range_of(Engine.POSTGRES, "18beta1", TABLE)
    assert recipe == range_of(Engine.POSTGRES, "18.0", TABLE) != range_of(Engine.POSTGRES, "17.0", TABLE)


def test_a_release_has_the_tag_that_upstream_gives_it() -> None:
    assert git_ref(parse_version("postgres@18.6")) == "REL_18_6"
    assert git_ref(parse_version("mysql@9.7.2")) == "mysql-9.7.2"


def test_releases_order_by_number() -> None:
    assert sorted(["18.6", "9.7.2", "18.10", "19devel"], key=release_numbers) == [
        "9.7.2",
        "18.6",
        "18.10",
        "19devel",
    ]


# --- steps back


@pytest.mark.parametrize("steps", ["~", "^", "~3", "^2", "^^", "^2~10", "~1^2~3"])
def test_steps_back_are_read_where_something_is_built_and_never_recorded(steps: str) -> None:
    for ref in ("main", "git:5bf748b86b", "REL_18_6", "a/b"):
        found = parse_revision(f"postgres@{ref}{steps}#mine")
        assert found == Version(Engine.POSTGRES, ref + steps, "mine")
        assert split_steps(found.ref) == (ref, steps)
        with pytest.raises(VersionError):
            parse_version(f"postgres@{ref}{steps}")


@given(st.text() | st.builds("{}@{}{}".format, ANY_ENGINE, WORDS, st.text("~^0123456789@{}:.-/ \n;$")))
def test_a_revision_is_a_ref_and_plain_steps_or_refused(text: str) -> None:
    """No option, path, range, message search (`:/`), reflog (`@{}`) or type (`^{}`) gets through to git."""
    with suppress(VersionError):
        found = git_ref(parse_revision(text))
        base, steps = split_steps(found)
        assert not base.startswith(("-", "/", "."))
        assert not set(base) & set(" $`;&|<>()'\"\\*?[]{}@~^:\n\t\0")
        assert ".." not in found
        assert set(steps) <= set("~^0123456789")
        assert not steps or steps[0] in "~^"


@pytest.mark.parametrize(
    "ref",
    [
        "-x~1",
        "a^{tree}",
        "a^{/fix}",
        "a@{1}",
        "a~-1",
        "a^!",
        "a^@",
        "a^-1",
        "../a~1",
        "18.6~1",
        "a~1/b",
        "~1",
        "a~1:b",
        "a~9999999",
    ],
)
def test_other_suffixes_are_refused(ref: str) -> None:
    with pytest.raises(VersionError):
        parse_revision(f"postgres@{ref}")


def test_a_version_of_thousands_of_digits_is_refused_in_few_words() -> None:
    for text in (f"postgres@18.{'9' * 5000}", f"postgres@{'9' * 5000}", f"mysql@9.7.2#{'9' * 5000}"):
        with pytest.raises(VersionError) as refused:
            parse_version(text)
        assert len(str(refused.value)) < 400
    assert release_numbers("9" * 5000) == (999_999_999,)


@given(
    ANY_ENGINE, st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True), st.integers(0, 16**12 - 1)
)
def test_an_install_survives_writing_and_reading(engine: Engine, name: str, digest: int) -> None:
    version = parse_version(f"{engine}@{name}={digest:012x}")
    assert parse_version(str(version)) == parse_revision(str(version)) == version
    assert (version.install_name, version.installed) == (name, f"{digest:012x}")
    assert (version.is_install, version.is_release) == (True, False)


@given(ANY_ENGINE, st.text("abc./~-_= ", max_size=12), st.sampled_from(["", "#mine"]))
def test_the_path_of_an_install_is_absolute_and_never_recorded(engine: Engine, rest: str, mark: str) -> None:
    version = parse_revision(f"{engine}@good=/opt/{rest}{mark}")
    assert Path(version.installed).is_absolute()
    assert (version.install_name, version.variant) == ("good", mark.removeprefix("#"))
    with pytest.raises(VersionError):
        parse_version(str(version))


@pytest.mark.parametrize("text", ["good=", "=/opt/x", "good=pg-a", "-x=/opt/x", "a b=./x", "a=/x\n"])
def test_what_is_no_install_is_refused(text: str) -> None:
    with pytest.raises(VersionError):
        parse_revision(f"postgres@{text}")

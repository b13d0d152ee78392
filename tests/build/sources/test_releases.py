"""The list of releases, and the digests recorded at first use."""

import re
import tomllib
from pathlib import Path

import pytest

from build.home import Home
from build.sources import releases
from build.version import Engine, parse_version, release_numbers
from tests.build.stand import Pins

TABLES = tomllib.loads(releases.VERSIONS.read_text())


@pytest.mark.parametrize("engine", TABLES)
def test_every_pin_is_a_sha256_and_releases_are_in_order(engine: str) -> None:
    pins = TABLES[engine]
    assert pins
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in pins.values())
    assert list(pins) == sorted(pins, key=release_numbers)
    assert len(set(pins.values())) == len(pins)
    assert all(parse_version(f"{engine}@{release}").is_release for release in pins)


def test_all_that_is_known_of_a_release(home: Home) -> None:
    release = releases.find_release(parse_version("postgres@18.6"), home)
    assert release is not None
    assert release.tarball_url.endswith("/v18.6/postgresql-18.6.tar.bz2")
    assert release.pool_paths[0] == "pool/main/p/postgresql-18/postgresql-18_18.6.orig.tar.bz2"
    assert release.file_names == ["postgresql-18.6.tar.bz2", "postgresql-18_18.6.orig.tar.bz2"]
    assert release.sha256 == TABLES["postgres"]["18.6"]


def test_a_recorded_pin_holds_and_is_never_replaced(home: Home) -> None:
    version = parse_version("postgres@18.99")
    assert releases.pinned_digest(version, home) is None
    releases.record_pin(version, "a" * 64, home)
    releases.record_pin(version, "b" * 64, home)
    assert releases.pinned_digest(version, home) == "a" * 64
    assert "18.99" in releases.known_releases(Engine.POSTGRES, home)


def test_a_recorded_pin_does_not_override_the_list(home: Home) -> None:
    version = parse_version("postgres@18.6")
    releases.record_pin(version, "a" * 64, home)
    assert releases.pinned_digest(version, home) == TABLES["postgres"]["18.6"]


def test_a_branch_has_no_pin(home: Home) -> None:
    branch = parse_version("postgres@REL_18_STABLE")
    assert releases.pinned_digest(branch, home) is None
    assert releases.find_release(branch, home) is None


def test_damaged_pins_are_reported_with_their_file(home: Home) -> None:
    home.sources.mkdir(parents=True)
    (home.sources / "pins.json").write_text("{")
    with pytest.raises(releases.ReleaseError, match=r"pins\.json"):
        releases.pinned_digest(parse_version("postgres@18.99"), home)


def test_a_damaged_list_is_reported_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: Pins
) -> None:
    path = tmp_path / "broken.toml"
    monkeypatch.setattr(releases, "VERSIONS", path)
    path.write_text("[postgres\n")
    with pytest.raises(releases.ReleaseError, match=r"broken\.toml"):
        releases.listed_digests(Engine.POSTGRES)
    versions()
    with pytest.raises(releases.ReleaseError, match="no release of mysql"):
        releases.listed_digests(Engine.MYSQL)


@pytest.mark.parametrize(
    "text",
    ["[]", "7", '{"postgres": 5}', '{"postgres": {"18.6": 5}}', '{"postgres": {"18": "00"}}', "[" * 5000],
)
def test_pins_of_another_shape_are_reported_too(home: Home, text: str) -> None:
    home.sources.mkdir(parents=True, exist_ok=True)
    (home.sources / "pins.json").write_text(text)
    with pytest.raises(releases.ReleaseError, match=r"pins\.json"):
        releases.known_releases(Engine.POSTGRES, home)

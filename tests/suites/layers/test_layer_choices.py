"""Which layers can be chosen: values, engines, versions, load generators, suites."""

from pathlib import Path

import pytest

from build.build import Build
from build.version import Engine, parse_version
from suites.capabilities import CapabilityError, require_auth
from suites.definition import SuiteError, load_suite
from suites.keys.generator_rules import GeneratorName
from suites.layers.choice import LayerError, Layers, Transport, layers_of
from suites.layers.loopback import loopback_address
from suites.layers.support import most_listeners, require_layers

SYSBENCH, PGBENCH = GeneratorName.SYSBENCH, GeneratorName.PGBENCH


def test_layers_are_read_from_values_by_name() -> None:
    chosen = {"transport": "tcp", "auth": "scram-sha-256", "protocol": "simple", "listeners": "1000"}
    assert layers_of(chosen) == Layers(Transport.TCP, False, "scram-sha-256", "simple", 1000)
    assert layers_of({"tls": "on"}).transport is Transport.TCP
    assert layers_of({"tls": "off"}) == layers_of({}) == Layers()
    assert not layers_of({"listeners": "3"}).of_connections
    assert most_listeners([layers_of({"listeners": "3"}), Layers()]) == 3
    assert most_listeners([]) == 0


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"tsl": "on"}, "there is no layer 'tsl'"),
        ({"tls": "yes"}, "tls cannot be 'yes'"),
        ({"tls": "on", "transport": "socket"}, "not over a Unix socket"),
        ({"listeners": "1001"}, "listeners cannot be '1001'"),
        ({"listeners": "-1"}, "listeners cannot be"),
        ({"auth": "TRUST; "}, "auth cannot be"),
        ({"auth": "trust", "transport": "tcp"}, "every user of the machine could connect"),
        ({"auth": "trust", "tls": "on"}, "every user of the machine could connect"),
    ],
)
def test_what_is_no_layer_is_said(chosen: dict[str, str], problem: str) -> None:
    with pytest.raises(LayerError, match=problem) as refused:
        layers_of(chosen)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("chosen", "engine", "generator", "is_pooled", "problem"),
    [
        ({"auth": "gss"}, Engine.POSTGRES, PGBENCH, False, "auth=gss is not measured with Postgres"),
        ({"auth": "trust"}, Engine.MYSQL, SYSBENCH, False, "it can be: mysql_native_password, caching_sha2"),
        ({"auth": "ed25519"}, Engine.MARIADB, SYSBENCH, False, "not measured with MariaDB"),
        ({"listeners": "1"}, Engine.MYSQL, SYSBENCH, False, "MySQL has no LISTEN"),
        ({"protocol": "extended"}, Engine.POSTGRES, SYSBENCH, False, "is one of: simple, prepared"),
        ({"tls": "on"}, Engine.POSTGRES, GeneratorName.QUERIES, False, "connect in one way only"),
        ({"transport": "tcp"}, Engine.POSTGRES, PGBENCH, True, "clients connect to PgBouncer"),
    ],
)
def test_what_an_engine_or_generator_does_not_have_is_said(
    chosen: dict[str, str],
    engine: Engine,
    generator: GeneratorName,
    is_pooled: bool,
    problem: str,
) -> None:
    with pytest.raises(LayerError) as refused:
        require_layers(layers_of(chosen), engine, generator, is_pooled=is_pooled)
    assert problem in f"{refused.value.what}; {refused.value.hint}"


def test_what_they_have_is_accepted() -> None:
    require_layers(layers_of({"protocol": "extended", "auth": "md5"}), Engine.POSTGRES, PGBENCH)
    require_layers(layers_of({"listeners": "9"}), Engine.POSTGRES, GeneratorName.QUERIES, is_pooled=True)
    require_layers(layers_of({"tls": "on", "protocol": "simple"}), Engine.MARIADB, SYSBENCH)


@pytest.mark.parametrize(
    ("release", "method", "fits"),
    [
        ("8.0.45", "mysql_native_password", True),
        ("8.4.7", "mysql_native_password", False),
        ("5.7.44", "caching_sha2_password", False),
        ("9.7.2", "caching_sha2_password", True),
        ("9.7.2", "", True),
    ],
)
def test_accounts_of_mysql_have_the_methods_of_the_version(release: str, method: str, fits: bool) -> None:
    build = Build(parse_version(f"mysql@{release}"), release, "", Path(), {})
    if fits:
        require_auth(build, method)
    else:
        with pytest.raises(CapabilityError, match=f"has no accounts with {method}"):
            require_auth(build, method)


def test_addresses_are_of_the_loopback_interface_and_of_one_server() -> None:
    found = {loopback_address(Path(f"/data/s1/{number}")) for number in range(50)}
    assert len(found) == 50
    assert all(address.startswith("127.") and int(address.split(".")[1]) >= 64 for address in found)
    assert loopback_address(Path("/data/s1/1")) == loopback_address(Path("/data/s1/1"))


def test_a_suite_chooses_layers(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    original = load_suite("pgbench").folder
    text = (original / "suite.toml").read_text()
    for file in original.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    (folder / "suite.toml").write_text(f'{text}\n[layers]\nauth = "scram-sha-256"\n')
    assert load_suite(f"{folder}/").layers == {"auth": "scram-sha-256"}
    (folder / "suite.toml").write_text(f'{text}\n[layers]\ntransport = "pigeon"\n')
    with pytest.raises(SuiteError, match="layers: transport cannot be 'pigeon'; write socket or tcp"):
        load_suite(f"{folder}/")

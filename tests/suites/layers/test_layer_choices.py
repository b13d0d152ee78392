"""Which layers can be chosen: values, load generators, suites."""

from pathlib import Path

import pytest

from suites.definition import Suite, SuiteError, load_suite
from suites.layers.certificate import loopback_address
from suites.layers.choice import LayerError, Layers, Transport, layers_of

SYSBENCH, PGBENCH, QUERIES = map(load_suite, ("read", "pgbench", "tpch"))


def test_layers_are_read_from_values_by_name() -> None:
    assert layers_of({"transport": "tcp", "protocol": "simple"}) == Layers(Transport.TCP, False, "simple")
    assert layers_of({"tls": "on"}).transport is Transport.TCP
    assert layers_of({"tls": "off"}) == layers_of({}) == Layers()


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"tsl": "on"}, "there is no layer 'tsl'"),
        ({"tls": "yes"}, "tls cannot be 'yes'"),
        ({"tls": "on", "transport": "socket"}, "not over a Unix socket"),
        ({"auth": "md5"}, "there is no layer 'auth'"),
        ({"protocol": "simple|extended"}, "protocol cannot be"),
    ],
)
def test_what_is_no_layer_is_said(chosen: dict[str, str], problem: str) -> None:
    with pytest.raises(LayerError, match=problem) as refused:
        layers_of(chosen)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("chosen", "suite", "is_pooled", "problem"),
    [
        ({"protocol": "extended"}, SYSBENCH, False, "is one of: simple, prepared"),
        ({"tls": "on"}, QUERIES, False, "connect in one way only"),
        ({"transport": "tcp"}, PGBENCH, True, "clients connect to PgBouncer"),
    ],
)
def test_what_clients_do_not_have_is_said(
    chosen: dict[str, str], suite: Suite, is_pooled: bool, problem: str
) -> None:
    with pytest.raises(LayerError) as refused:
        suite.require_layers(layers_of(chosen), is_pooled=is_pooled)
    assert problem in f"{refused.value.what}; {refused.value.hint}"


def test_what_they_have_is_accepted() -> None:
    PGBENCH.require_layers(layers_of({"protocol": "extended", "transport": "tcp"}))
    QUERIES.require_layers(layers_of({}), is_pooled=True)
    SYSBENCH.require_layers(layers_of({"tls": "on", "protocol": "simple"}))


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
    (folder / "suite.toml").write_text(f'{text}\n[layers]\nprotocol = "simple"\n')
    assert load_suite(f"{folder}/").layers == {"protocol": "simple"}
    (folder / "suite.toml").write_text(f'{text}\n[layers]\ntransport = "pigeon"\n')
    with pytest.raises(SuiteError, match="layers: transport cannot be 'pigeon'; write socket or tcp"):
        load_suite(f"{folder}/")

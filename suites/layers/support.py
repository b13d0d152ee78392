"""Which layers an engine, a version, a load generator and a companion allow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from build.engines import ENGINES, EngineRegistry
from build.version import Engine
from suites.keys.generator_rules import RULES, GeneratorName
from suites.layers.choice import TRUST, LayerError, Layers


@dataclass(frozen=True)
class EngineLayers:
    """The layers of the servers of one engine."""

    auth: Sequence[str]
    """Its ways of authentication that clients can use here; not every version has all."""

    listens: bool = False
    """Whether connections can LISTEN."""


LAYERS = EngineRegistry(
    "layers",
    __name__,
    {
        Engine.POSTGRES: EngineLayers((TRUST, "password", "md5", "scram-sha-256"), listens=True),
        Engine.MYSQL: EngineLayers(("mysql_native_password", "caching_sha2_password")),
        Engine.MARIADB: EngineLayers(("mysql_native_password",)),
    },
)


def require_layers(
    layers: Layers, engine: Engine, generator: GeneratorName, *, is_pooled: bool = False
) -> None:
    """Raise LayerError unless servers of an engine can have the layers, with these clients.

    `is_pooled` says whether a pooler is between them.
    """
    title, known = ENGINES[engine].title, LAYERS[engine]
    if layers.auth and layers.auth not in known.auth:
        raise LayerError(
            f"auth={layers.auth} is not measured with {title}",
            where="--layer",
            hint=f"it can be: {', '.join(known.auth)}",
        )
    if layers.listeners and not known.listens:
        raise LayerError(
            f"{title} has no LISTEN", where="--layer", hint="omit listeners; Postgres alone has them"
        )
    protocols = RULES[generator].protocols
    if layers.of_connections and not protocols:
        raise LayerError(
            f"clients of the generator {generator} connect in one way only",
            where="--layer",
            hint="use a suite for sysbench or pgbench",
        )
    if layers.protocol and layers.protocol not in protocols:
        raise LayerError(
            f"{generator} does not send statements in the protocol {layers.protocol}",
            where="--layer",
            hint=f"with {generator}, protocol is one of: {', '.join(protocols)}",
        )
    if is_pooled and layers.of_connections:
        raise LayerError(
            "clients connect to PgBouncer, whose connections have no layers",
            where="--layer",
            hint="omit --companion pgbouncer, or all layers but listeners",
        )


def most_listeners(several: Iterable[Layers]) -> int:
    """Return the most connections that listen to any server; 0 without layers."""
    return max((layers.listeners for layers in several), default=0)

"""Which layers a load generator and a pooler allow."""

from suites.keys.generator_rules import RULES
from suites.keys.suite_keys import GeneratorName
from suites.layers.choice import NONE, LayerError, Layers


def require_layers(layers: Layers, generator: GeneratorName, *, is_pooled: bool = False) -> None:
    """Raise LayerError unless the clients of a generator can have the layers.

    `is_pooled` says whether a pooler is between them and the server.
    """
    protocols = RULES[generator].protocols
    if layers != NONE and not protocols:
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
    if is_pooled and layers != NONE:
        raise LayerError(
            "clients connect to PgBouncer, whose connections have no layers",
            where="--layer",
            hint="omit --companion pgbouncer, or all layers",
        )

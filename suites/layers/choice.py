"""The layers between clients and a server, as `--layer`, a suite and a plan choose them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from build.errors import TidemarkError, did_you_mean

MAX_LISTENERS = 1000
"""The most idle connections that listen: each is a process of Postgres."""


TRUST = "trust"
"""The authentication that asks for no password: for a socket that others cannot reach."""


class LayerError(TidemarkError):
    """A layer or its value does not exist, or an engine or load generator does not have it."""


class LayerName(StrEnum):
    """The layers that can be chosen."""

    TRANSPORT = "transport"
    TLS = "tls"
    AUTH = "auth"
    PROTOCOL = "protocol"
    LISTENERS = "listeners"


class Transport(StrEnum):
    """What connections of clients are made of."""

    SOCKET = "socket"
    """A Unix socket."""

    TCP = "tcp"
    """TCP over the loopback interface."""


@dataclass(frozen=True)
class LayerValues:
    """The values that a layer can have, on any engine."""

    pattern: re.Pattern[str]
    described: str
    """The values in words."""


VALUES: Mapping[LayerName, LayerValues] = {
    LayerName.TRANSPORT: LayerValues(re.compile("socket|tcp"), "socket or tcp"),
    LayerName.TLS: LayerValues(re.compile("on|off"), "on or off"),
    LayerName.AUTH: LayerValues(re.compile("[a-z][a-z0-9_-]{0,39}"), "a method of the engine"),
    LayerName.PROTOCOL: LayerValues(re.compile("simple|extended|prepared"), "simple, extended or prepared"),
    LayerName.LISTENERS: LayerValues(re.compile("[0-9]{1,5}"), f"a number up to {MAX_LISTENERS}"),
}
"""Every layer with its values."""


@dataclass(frozen=True)
class Layers:
    """The layers of one version; without any, clients use a Unix socket and the engine's usual login."""

    transport: Transport = Transport.SOCKET
    tls: bool = False
    auth: str = ""
    """How the server authenticates; empty for the usual way of its engine."""

    protocol: str = ""
    """How statements are sent; empty for what the step says."""

    listeners: int = 0
    """Connections that have said LISTEN, and wait."""

    @property
    def of_connections(self) -> bool:
        """Whether connections of clients differ from the usual ones."""
        return self != Layers(listeners=self.listeners)


NONE = Layers()
"""No layer: what every version has that does not choose one."""


def require_value(name: str, value: str) -> None:
    """Raise LayerError unless there is a layer `name` that can have this value."""
    if name not in set(LayerName):
        meant = did_you_mean(name[:40], LayerName)
        raise LayerError(
            f"there is no layer '{name[:40]}'",
            where="--layer",
            hint=f"{meant} the layers are: {', '.join(LayerName)}".strip(),
        )
    values = VALUES[LayerName(name)]
    is_too_many = name == LayerName.LISTENERS and value.isdecimal() and int(value) > MAX_LISTENERS
    if not values.pattern.fullmatch(value) or is_too_many:
        raise LayerError(
            f"{name} cannot be '{value[:40]}'", where="--layer", hint=f"write {values.described}"
        )


def layers_of(chosen: Mapping[str, str]) -> Layers:
    """Return the layers that values by name choose. TLS is over TCP. Raises LayerError."""
    for name, value in chosen.items():
        require_value(name, value)
    tls = chosen.get(LayerName.TLS) == "on"
    transport = Transport(chosen.get(LayerName.TRANSPORT, Transport.TCP if tls else Transport.SOCKET))
    if transport is Transport.TCP and chosen.get(LayerName.AUTH) == TRUST:
        raise LayerError(
            f"with auth={TRUST} over TCP, every user of the machine could connect",
            where="--layer",
            hint="omit auth: over TCP it is a method with a password",
        )
    if tls and transport is Transport.SOCKET:
        raise LayerError(
            "TLS is measured over TCP, and not over a Unix socket",
            where="--layer",
            hint="omit transport, which is tcp with tls=on",
        )
    return Layers(
        transport,
        tls,
        chosen.get(LayerName.AUTH, ""),
        chosen.get(LayerName.PROTOCOL, ""),
        int(chosen.get(LayerName.LISTENERS, "0")),
    )

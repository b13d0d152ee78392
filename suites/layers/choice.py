"""The layers between clients and a server, as a variant and a suite choose them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from build.errors import TidemarkError, did_you_mean


class LayerError(TidemarkError):
    """A layer or its value does not exist, or a load generator does not have it."""


class LayerName(StrEnum):
    """The layers that can be chosen."""

    TRANSPORT = "transport"
    TLS = "tls"
    PROTOCOL = "protocol"


class Transport(StrEnum):
    """What connections of clients are made of."""

    SOCKET = "socket"
    """A Unix socket."""

    TCP = "tcp"
    """TCP over the loopback interface."""


VALUES: Mapping[LayerName, tuple[str, ...]] = {
    LayerName.TRANSPORT: tuple(Transport),
    LayerName.TLS: ("on", "off"),
    LayerName.PROTOCOL: ("simple", "extended", "prepared"),
}
"""Every layer with the values that it can have, on any engine."""


@dataclass(frozen=True)
class Layers:
    """The layers of one version; without any, clients use a Unix socket."""

    transport: Transport = Transport.SOCKET
    tls: bool = False
    protocol: str = ""
    """How statements are sent; empty for what the step says."""


NONE = Layers()
"""No layer: what every version has that does not choose one."""


def described_values(name: LayerName) -> str:
    """Return the values of a layer in words: `simple, extended or prepared`."""
    *others, last = VALUES[name]
    return f"{', '.join(others)} or {last}"


def require_value(name: str, value: str) -> None:
    """Raise LayerError unless there is a layer `name` that can have this value."""
    if name not in set(LayerName):
        meant = did_you_mean(name[:40], LayerName)
        raise LayerError(
            f"there is no layer '{name[:40]}'",
            where="layer",
            hint=f"{meant} the layers are: {', '.join(LayerName)}".strip(),
        )
    layer = LayerName(name)
    if value not in VALUES[layer]:
        raise LayerError(
            f"{name} cannot be '{value[:40]}'", where="layer", hint=f"write {described_values(layer)}"
        )


def layers_of(chosen: Mapping[str, str]) -> Layers:
    """Return the layers that values by name choose. TLS is over TCP. Raises LayerError."""
    for name, value in chosen.items():
        require_value(name, value)
    tls = chosen.get(LayerName.TLS) == "on"
    transport = Transport(chosen.get(LayerName.TRANSPORT, Transport.TCP if tls else Transport.SOCKET))
    if tls and transport is Transport.SOCKET:
        raise LayerError(
            "TLS is measured over TCP, and not over a Unix socket",
            where="layer",
            hint="omit transport, which is tcp with tls=on",
        )
    return Layers(transport, tls, chosen.get(LayerName.PROTOCOL, ""))

"""Addresses of servers on the loopback interface."""

import hashlib
from pathlib import Path


def loopback_address(folder: Path) -> str:
    """Return an address of 127.0.0.0/8 for the server in a folder, always the same.

    On Linux all of them are this machine (`ip route show table local`). Servers of one session, and of two,
    can so have the same port, and none has one that a service of the machine has on 127.0.0.1.
    """
    digest = hashlib.sha256(bytes(folder)).digest()
    return f"127.{64 + digest[0] % 64}.{digest[1]}.{1 + digest[2] % 254}"

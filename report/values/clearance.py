"""What may leave the house: the one place that decides what a public site shows of a text from outside.

It is a list of what is allowed, not of what is forbidden: a text that nobody thought of is withheld.
"""

import re
from dataclasses import dataclass, field, replace

from history.store.records import Environment, Machine
from report.addresses import digest

WITHHELD = "withheld on a public site"
"""What stands for a text that may not leave the house."""

_PLAIN_VALUE = re.compile(r"-?\d+(\.\d+)?(us|ms|s|min|h|d|kB|MB|GB|TB|B|[kKMG])?")
_SWITCHES = frozenset({"on", "off", "true", "false", "yes", "no", "none", "default", "auto", "0", "1"})

ENUMERATIONS = frozenset(
    {
        *("wal_level", "wal_compression", "synchronous_commit", "huge_pages", "io_method", "wal_sync_method"),
        *("fsync", "full_page_writes", "default_toast_compression", "autovacuum", "jit"),
        *("recovery_init_sync_method", "server_version", "block_size", "innodb_flush_method"),
        *("innodb_checksum_algorithm", "binlog_format", "sync_binlog", "innodb_doublewrite", "version"),
        *("transaction_isolation", "default_transaction_isolation", "tx_isolation"),
    }
)
"""Settings whose values are words of the server, not of the house."""

MANIFEST = frozenset({"engine", "release", "version", "compiler", "options", "flags", "configure", "cflags"})
"""The keys of a build's manifest that a public site shows."""


@dataclass(frozen=True)
class Clearance:
    """Whether a site stays in the house, and by which names a public one calls the boxes."""

    is_public: bool = False
    salt: str = ""
    """Makes the names of boxes, so that nobody finds a host name by trying some: the oldest session's uid."""

    _names: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def box(self, hostname: str) -> str:
        """Return the name of a box: its host name in the house, else a name that does not tell it."""
        if not self.is_public:
            return hostname
        return self._names.setdefault(hostname, f"box-{digest(self.salt, hostname)[:6]}")

    def place(self, place: Environment) -> Environment:
        """Return an environment with the name of its box."""
        return replace(place, box=self.box(place.box))

    def machine(self, machine: Machine) -> Machine:
        """Return a machine; of a public one processor, memory, kernel and system, and nothing else."""
        if not self.is_public:
            return machine
        return replace(
            machine,
            hostname=self.box(machine.hostname),
            details={},
            fingerprint=digest(self.salt, machine.fingerprint),
        )

    def text(self, text: str) -> str:
        """Return a text from outside, such as why something failed; it may name paths, hosts and people."""
        return WITHHELD if self.is_public and text else text

    def setting(self, name: str, value: str) -> str:
        """Return a server's setting; of a public one numbers, switches and ENUMERATIONS."""
        allowed = name in ENUMERATIONS or value in _SWITCHES or _PLAIN_VALUE.fullmatch(value) or not value
        return value if allowed or not self.is_public else WITHHELD

    def manifest(self, name: str, value: str) -> str:
        """Return an entry of a build's manifest, whose name has dots between the keys."""
        head, _, last = name.rpartition(".")
        allowed = name in ("source.kind", "source.digest", "compiler.version") or (
            not head and last in MANIFEST
        )
        return value if not self.is_public or (allowed and "/" not in value) else WITHHELD

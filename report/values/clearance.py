"""What may leave the house: the one place that decides what a public site shows of a text from outside.

It is a list of what is allowed, not of what is forbidden: a text that nobody thought of is withheld.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from build.version import Engine
from history.changes.acknowledgements import Acknowledgement
from history.changes.stored_rules import Muting, Owner
from history.store.records import Environment, Machine
from report.addresses import digest
from report.values.commits import Commits, NoCommits

WITHHELD = "withheld on a public site"
"""What stands for a text that may not leave the house."""

_LENGTH = re.compile(r"(rounds|long|\d+(\.\d+)?s)")
"""The mode and the seconds of a configuration, which stand before its settings."""

_PLAIN_VALUE = re.compile(r"-?\d+(\.\d+)?(us|ms|s|min|h|d|kB|MB|GB|TB|B|[kKMG])?")
_SWITCHES = frozenset({"on", "off", "true", "false", "yes", "no", "none", "default", "auto", "0", "1"})
_OWN_SETTING = re.compile(r"[A-Za-z0-9_]+")
"""The name of a setting of the server itself; one of an extension, or made up, has a dot."""

ENUMERATIONS = frozenset(
    {
        *("wal_level", "wal_compression", "synchronous_commit", "huge_pages", "io_method", "wal_sync_method"),
        *("default_toast_compression", "recovery_init_sync_method", "innodb_flush_method"),
        *("innodb_checksum_algorithm", "binlog_format", "innodb_doublewrite"),
        *("transaction_isolation", "default_transaction_isolation", "tx_isolation"),
    }
)
"""Settings whose values are words of the server, not of the house."""

WORDS = frozenset(
    {
        *("minimal", "replica", "logical", "pglz", "lz4", "zstd", "remote_apply", "remote_write", "local"),
        *("try", "worker", "io_uring", "sync", "fdatasync", "fsync", "open_datasync", "open_sync", "syncfs"),
        *("O_DIRECT", "O_DIRECT_NO_FSYNC", "O_DSYNC", "crc32", "innodb", "ROW", "STATEMENT", "MIXED"),
        *("ON", "OFF", "DETECT_ONLY", "DETECT_AND_RECOVER", "READ-COMMITTED", "REPEATABLE-READ"),
        *("SERIALIZABLE", "read committed", "repeatable read", "serializable"),
    }
)
"""The values of ENUMERATIONS that are shown."""

_ENGINE = "|".join(Engine)
_NUMBERS = r"\d+(\.\d+){0,2}"
MANIFEST = {
    "engine": re.compile(_ENGINE),
    "release": re.compile(rf"{_NUMBERS}(devel|beta\d+|rc\d+)?"),
    "version": re.compile(rf"({_ENGINE})@[A-Za-z0-9][A-Za-z0-9_.:#-]{{0,79}}"),
    "compiler.version": re.compile(
        r"(gcc|clang|Debian clang) version \d+(\.\d+)*( \(Debian [0-9a-z.+~-]+\))?"
    ),
    "compiler.target": re.compile(r"(x86_64|aarch64)(-[a-z0-9]+)*-linux-gnu"),
    "host.architecture": re.compile(r"x86_64|aarch64"),
    "host.glibc": re.compile(_NUMBERS),
    "source.kind": re.compile(r"[a-z-]{1,20}"),
    "source.digest": re.compile(r"sha256:[0-9a-f]{64}|[0-9a-f]{40}"),
}
"""The entries of a build's manifest that a public site shows, with the form that their values must have."""

TOOLS = {
    "generator": re.compile(rf"(sysbench|pgbench \(PostgreSQL\)|pgbench) {_NUMBERS}"),
    "tidemark": re.compile(r"[0-9a-f]{7,40}(-dirty)?"),
    "python": re.compile(_NUMBERS),
}
"""The measuring programs that a public site names, with the form that their versions must have."""


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
        """Return an environment with the name of its box; of a public one without settings of the house."""
        named = replace(place, box=self.box(place.box))
        return replace(named, configuration=self._configuration(place.configuration))

    def _configuration(self, configuration: str) -> str:
        """Return profile and durability; settings behind them stay if their names and values are plain."""
        parts = configuration.split(" ")
        settings = [part for part in parts[2:] if not _LENGTH.fullmatch(part)]
        if not self.is_public or all(_is_plain_setting(setting) for setting in settings):
            return configuration
        return f"{' '.join(parts[:2])} set-{digest(self.salt, configuration)[:6]}"

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

    def acknowledgement(self, event: Acknowledgement) -> Acknowledgement:
        """Return what was decided about a change; of a public site without who it was, and why."""
        return replace(event, who="", reason=WITHHELD) if self.is_public else event

    def muting(self, muting: Muting) -> Muting:
        """Return by which rule of the plan a change is muted; of a public site without it, and why."""
        if not self.is_public:
            return muting
        ended = WITHHELD if muting.ended_why else ""
        return replace(muting, rule=WITHHELD, reason=WITHHELD, ended_why=ended)

    def owners(self, owners: Sequence[Owner]) -> Sequence[Owner]:
        """Return whose a change is; on a public site nobody, because accounts are people."""
        return () if self.is_public else owners

    def commits(self, commits: Commits) -> Commits:
        """Return the commits of a change; of a public one's own repository only names and subjects."""
        if not self.is_public or isinstance(commits, NoCommits) or commits.is_upstream:
            return commits
        named = (
            replace(
                commit,
                author="",
                files=(),
                file_count=0,
                immaterial="it touches nothing that the server is built from" if commit.immaterial else "",
                address="",
            )
            for commit in commits.newest
        )
        return replace(commits, newest=tuple(named))

    def settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return a server's settings; of a public one numbers, switches and WORDS, and no made-up names."""
        if not self.is_public:
            return dict(settings)
        own = {name: value for name, value in settings.items() if _OWN_SETTING.fullmatch(name)}
        return {name: value if _is_plain(name, value) else WITHHELD for name, value in own.items()}

    def manifest(self, manifest: Mapping[str, str]) -> dict[str, str]:
        """Return a build's manifest, whose names have dots between the keys; of a public one MANIFEST."""
        return self._of_form(MANIFEST, manifest)

    def tools(self, versions: Mapping[str, str]) -> dict[str, str]:
        """Return the versions of the measuring programs; on a public site TOOLS."""
        return self._of_form(TOOLS, versions)

    def repository(self, name: str) -> str:
        """Return the repository of an issue; it may be a private one, and a public site names none."""
        return "" if self.is_public else name

    def _of_form(self, forms: Mapping[str, re.Pattern[str]], values: Mapping[str, str]) -> dict[str, str]:
        if not self.is_public:
            return dict(values)
        return {
            name: value for name, value in values.items() if name in forms and forms[name].fullmatch(value)
        }


def _is_plain_setting(text: str) -> bool:
    name, equals, value = text.partition("=")
    return bool(equals) and _OWN_SETTING.fullmatch(name) is not None and _is_plain(name, value)


def _is_plain(name: str, value: str) -> bool:
    """Whether the value of a setting says nothing of the house."""
    is_word = name in ENUMERATIONS and value in WORDS
    return not value or is_word or value in _SWITCHES or _PLAIN_VALUE.fullmatch(value) is not None

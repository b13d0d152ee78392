"""Durability of commits and isolation of transactions: choices with one meaning for every engine."""

from enum import StrEnum


class Durability(StrEnum):
    """What a commit guarantees in case of a crash.

    Postgres: synchronous_commit off or on. MySQL and MariaDB: innodb_flush_log_at_trx_commit 0 or 1,
    sync_binlog 0 or 1.
    """

    RELAXED = "relaxed"
    """A crash may lose the last second of commits, never consistency."""

    FULL = "full"
    """A commit is on stable storage before it is acknowledged to the client."""


class Isolation(StrEnum):
    """How transactions of a suite are isolated, as the SQL standard calls it; the same on every engine."""

    READ_COMMITTED = "read-committed"
    REPEATABLE_READ = "repeatable-read"
    SERIALIZABLE = "serializable"

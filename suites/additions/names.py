"""The names of the companions that a variant can have."""

from enum import StrEnum


class CompanionName(StrEnum):
    """A companion; suites.additions.registry has an entry for each."""

    PGBOUNCER = "pgbouncer"
    """PgBouncer in transaction mode, between clients and Postgres."""

    LOGICAL_CONSUMER = "logical-consumer"
    """pg_recvlogical, which reads a logical replication slot of Postgres."""

    PHYSICAL_CONSUMER = "physical-consumer"
    """pg_receivewal, which reads a physical replication slot of Postgres."""

    BINLOG_CONSUMER = "binlog-consumer"
    """A stream of the binary log of MySQL or MariaDB."""

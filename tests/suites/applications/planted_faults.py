"""Faults that are planted in the data of a suite, each of which one of its checks must find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine
from suites.checking.data_checks import finding
from suites.checking.queries import connected
from suites.definition import Suite
from suites.server import Address


@dataclass(frozen=True)
class Fault:
    """One fault. Those of a suite follow each other, and none makes the check of a later one red."""

    title: str
    check: str
    """The check that must find it."""
    statements: tuple[str, ...]
    """SQL that plants it."""


_DROP_EMAIL_INDEX = EngineRegistry(
    "statement that drops an index",
    __name__,
    {
        Engine.POSTGRES: "DROP INDEX users_email",
        Engine.MYSQL: "DROP INDEX users_email ON users",
        Engine.MARIADB: "DROP INDEX users_email ON users",
    },
)


def faults_of(suite: str, engine: Engine) -> Sequence[Fault]:
    """Return the faults of a suite, at least one for each of its checks."""
    return _FAULTS[suite](engine)


def _payments(engine: Engine) -> Sequence[Fault]:
    columns = "card_id, from_account_id, to_account_id, requesting_user_id, amount, created_at"
    return (
        Fault(
            "a wrong sum, which another one makes good",
            "ledger",
            ("UPDATE accounts SET balance = balance + CASE id WHEN 1 THEN 5 ELSE -5 END WHERE id IN (1, 2)",),
        ),
        Fault("a lost update", "money", ("UPDATE accounts SET balance = balance - 7 WHERE id = 3",)),
        Fault(
            "an overdraft",
            "overdrafts",
            (
                "ALTER TABLE accounts DROP CONSTRAINT accounts_balance",
                "UPDATE accounts SET balance = -1 WHERE id = 4",
            ),
        ),
        Fault(
            "a doubled payment",
            "transfers",
            (f"INSERT INTO transfers ({columns}) SELECT {columns} FROM transfers ORDER BY id LIMIT 1",),
        ),
        Fault(
            "an orphan",
            "references",
            (
                "ALTER TABLE transfers DROP CONSTRAINT transfers_requesting_user_id_key",
                "UPDATE transfers SET requesting_user_id = 0 WHERE amount > 500",
            ),
        ),
    )


def _shop(engine: Engine) -> Sequence[Fault]:
    return (
        Fault("a missing line", "order-items", ("DELETE FROM order_items WHERE id = 2",)),
        Fault(
            "a doubled order",
            "orders",
            ("INSERT INTO orders (user_id, created_at) SELECT user_id, created_at FROM orders WHERE id = 1",),
        ),
        Fault("a lost user", "users", ("DELETE FROM users WHERE id = 5",)),
        Fault(
            "an item that nobody inserted",
            "items",
            ("INSERT INTO items (name, price, created_at) VALUES ('unasked', 1, '2026-01-01')",),
        ),
        Fault(
            "an order of nobody",
            "orders-of-users",
            (
                "ALTER TABLE orders DROP CONSTRAINT orders_user_key",
                "UPDATE orders SET user_id = 0 WHERE id = 1",
            ),
        ),
        Fault(
            "a line of no order",
            "items-of-orders",
            (
                "ALTER TABLE order_items DROP CONSTRAINT order_items_order_key",
                "UPDATE order_items SET order_id = 0 WHERE id = 1",
            ),
        ),
        Fault(
            "an e-mail of two users",
            "emails",
            (_DROP_EMAIL_INDEX[engine], "UPDATE users SET email = 'both@email.com' WHERE id IN (1, 2)"),
        ),
        Fault(
            "descriptions that are cut off",
            "descriptions",
            ("UPDATE items SET description = LEFT(description, 256) WHERE LENGTH(description) > 256",),
        ),
    )


_FAULTS = {"payments": _payments, "shop": _shop}


def unseen(
    address: Address, suite: Suite, committed: Mapping[str, int], rows: Mapping[str, int]
) -> tuple[int, list[str]]:
    """Plant the faults of a suite; return how many there are, and those that its check did not see.

    A check that finds something before its fault is planted counts as one that did not see it.
    """
    checks = {check.name: check for check in suite.checks}
    faults, missed = faults_of(suite.name, address.engine), []
    for fault in faults:
        before = finding(address, checks[fault.check], committed, rows)
        with connected(address) as connection, connection.cursor() as cursor:
            for statement in fault.statements:
                cursor.execute(statement)
        if before or "found" not in finding(address, checks[fault.check], committed, rows):
            missed.append(f"{suite.name}: {fault.title}{f', red before: {before}' if before else ''}")
    return len(faults), missed

"""Triggers that write down what a step does to its tables, row by row."""

from dataclasses import dataclass

from suites.postgres.server import PostgresServer
from tests.suites.servers import ask

_AUDIT = """
CREATE UNLOGGED TABLE audit (
  step bigint GENERATED ALWAYS AS IDENTITY, transaction bigint, place text, op text,
  old_id bigint, new_id bigint, k_change bigint, c_changed boolean);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO audit VALUES (DEFAULT, txid_current(), TG_TABLE_NAME, TG_OP, NULL, NEW.id, NULL, NULL);
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO audit VALUES (DEFAULT, txid_current(), TG_TABLE_NAME, TG_OP, OLD.id, NULL, NULL, NULL);
  ELSE
    INSERT INTO audit VALUES (DEFAULT, txid_current(), TG_TABLE_NAME, TG_OP, OLD.id, NEW.id, NEW.k - OLD.k,
                              NEW.c <> OLD.c);
  END IF;
  RETURN NULL;
END $$"""


@dataclass(frozen=True)
class Change:
    """One row changed by one statement."""

    table: str
    operation: str
    old_id: int | None
    new_id: int | None
    k_change: int | None
    c_changed: bool | None


def watch(server: PostgresServer, tables: int) -> None:
    """Note every change of the tables from now on."""
    ask(server, _AUDIT)
    for table in range(1, tables + 1):
        ask(
            server,
            f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON sbtest{table} "
            "FOR EACH ROW EXECUTE FUNCTION note()",
        )


def forget(server: PostgresServer) -> None:
    """Begin anew."""
    ask(server, "TRUNCATE audit")


def changes(server: PostgresServer) -> list[list[Change]]:
    """What was changed: a list of changes for each transaction, in order."""
    found: dict[int, list[Change]] = {}
    columns = "transaction, place, op, old_id, new_id, k_change, c_changed"
    for transaction, *change in ask(server, f"SELECT {columns} FROM audit ORDER BY step"):
        found.setdefault(transaction, []).append(Change(*change))
    return list(found.values())

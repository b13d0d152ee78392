"""Running a SQL file of a suite in a server of the MySQL family with its command line client."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from build.programs.accounts import server_account
from suites.innodb.connecting import connect
from suites.processes import ProcessError, run
from suites.server import SETUP_SECONDS, Address, SetupError

_ERROR = re.compile(r"^ERROR (?:\d+ \(\w+\) )?at line (?P<line>\d+): (?P<said>.+)$", re.M)
_LINE_OF_STATEMENT = re.compile(r" at line \d+$")
"""How a syntax error ends: the line within the statement, which is none of the file."""


def variables(address: Address) -> dict[str, str]:
    """Return the variables that tell a program of the server of an address.

    The client library reads MYSQL_UNIX_PORT and MYSQL_PWD by itself; the program has to pass on the others.
    """
    return {
        "MYSQL_UNIX_PORT": str(address.socket),
        "MYSQL_USER": address.user,
        "MYSQL_DATABASE": address.database,
        **address.password_variables,
    }


@contextlib.contextmanager
def with_all_rights(address: Address) -> Iterator[Address]:
    """Return a context with the address of root; then let clients use each database that there is.

    Raises pymysql.err.Error.
    """
    yield address.of_admin
    with connect(address.of_admin) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT schema_name, user, host FROM information_schema.schemata, mysql.user WHERE user = %s"
            " AND schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')",
            [address.user],
        )
        for database, user, host in cursor.fetchall():
            name = str(database).replace("`", "``")
            cursor.execute(f"GRANT ALL ON `{name}`.* TO '{user}'@'{host}'")


def run_file(client: Path, address: Address, folder: Path, name: str) -> None:
    """Run the SQL file `name` in `folder` up to its first error, with that folder as the current one.

    It may be what mysqldump writes. Raises SetupError with file, line and the server's sentence.
    """
    try:
        with (folder / name).open("rb") as file:
            run(
                [
                    *(client, "--no-defaults", "--batch", "--default-character-set=utf8mb4"),
                    *("--local-infile=1", f"--socket={address.socket}", f"--user={address.user}"),
                    address.database,
                ],
                what=name,
                cwd=folder,
                env=address.password_variables,
                seconds=SETUP_SECONDS,
                stdin=file,
                account=server_account(),
            )
    except ProcessError as error:
        match = _ERROR.search(error.what)
        if match is None:
            raise
        raise SetupError(
            f"{name}, line {match['line']}: {_LINE_OF_STATEMENT.sub('', match['said'])}",
            where=str(folder / name),
            hint="look at the statement that begins at this line",
        ) from error

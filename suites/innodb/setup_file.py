"""Running a SQL file of a suite in a server of the MySQL family with its command line client."""

import re
from pathlib import Path

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
        "MYSQL_PWD": address.password,
    }


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
                    *(f"--password={address.password}", address.database),
                ],
                what=name,
                cwd=folder,
                seconds=SETUP_SECONDS,
                stdin=file,
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

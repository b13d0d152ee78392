"""Rendering the option file for a version, the sizes of a machine and a durability."""

from collections.abc import Mapping
from pathlib import Path

from build.build import Build
from suites.durability import Durability
from suites.innodb.configuration import fill_in, require_accepted
from suites.sizing import Sizes

TEMPLATE = Path(__file__).with_name("mariadb.cnf.in")

SOCKET = "mariadbd.sock"
"""The name of the socket in the server's folder."""


def render(
    build: Build, sizes: Sizes, durability: Durability, folder: Path, settings: Mapping[str, str]
) -> str:
    """Return the text of the option file of a MariaDB server in `folder`, with `settings` as its last lines.

    Raises CapabilityError if the version is too old or does not have one of the `settings`.
    """
    return fill_in(TEMPLATE, build, sizes, durability, folder / SOCKET, settings)


def check(build: Build, text: str) -> None:
    """Ask the server whether it accepts `text`, a whole option file, without a data directory.

    Raises SettingError with the names of settings that it does not know and of values that it refuses.
    """
    # Without --verbose it does not read the settings of storage engines.
    require_accepted(build, text, ("--help", "--verbose"))

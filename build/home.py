"""The folder that holds everything Tidemark writes: sources, builds, data directories, the history."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from build.accounts import blocked_folder
from build.errors import TidemarkError, readable, shell_line
from build.files import GROUP_WRITES

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

SHARED_HOME = Path("/var/lib/tidemark")
"""Used instead of `var/` if root's checkout is in a folder that the unprivileged server user cannot enter."""


class HomeError(TidemarkError):
    """The output folder may not be used by this user."""


@dataclass(frozen=True)
class Home:
    """The output folder and the paths inside it. The properties create nothing."""

    path: Path

    @property
    def sources(self) -> Path:
        """Downloaded tarballs, `pins.json`, and bare git mirrors under `git/`."""
        return self.path / "sources"

    @property
    def builds(self) -> Path:
        """Finished install prefixes, one folder per build key."""
        return self.path / "builds"

    @property
    def installs(self) -> Path:
        """Where the install prefixes of the user are that were measured, by digest."""
        return self.path / "installs"

    @property
    def scratch(self) -> Path:
        """Working folders of compiles in progress."""
        return self.path / "scratch"

    @property
    def ccache(self) -> Path:
        """The cache of ccache, unless `$CCACHE_DIR` names another folder."""
        return self.path / "ccache"

    @property
    def tools(self) -> Path:
        """Auxiliary programs that were compiled on this machine, such as act."""
        return self.path / "tools"

    @property
    def logs(self) -> Path:
        """Logs of compiles, and server logs that are kept."""
        return self.path / "logs"

    @property
    def data(self) -> Path:
        """Data directories of running servers."""
        return self.path / "data"

    @property
    def copies(self) -> Path:
        """Copies of loaded data that outlive their session."""
        return self.path / "copies"

    @property
    def suites(self) -> Path:
        """Suites of this machine's users, one folder per name."""
        return self.path / "suites"

    @property
    def answers(self) -> Path:
        """The answers of earlier runs of configure, which compiles of a bisect take over."""
        return self.path / "answers"

    @property
    def failures(self) -> Path:
        """What is known not to compile here, by build key."""
        return self.path / "failures"

    @property
    def history(self) -> Path:
        """The history as a SQLite file."""
        return self.path / "history.db"

    @property
    def spool(self) -> Path:
        """What this box recorded for histories on servers, one SQLite file for each."""
        return self.path / "spool"

    @property
    def heartbeat(self) -> Path:
        """The current activity of the nightly service, as JSON."""
        return self.path / "heartbeat.json"

    @property
    def backups(self) -> Path:
        """Backups of the history, one per night."""
        return self.path / "backups"

    @property
    def summaries(self) -> Path:
        """Summaries of the nights, in Markdown."""
        return self.path / "summaries"

    @property
    def site(self) -> Path:
        """The report site, written by `report`."""
        return self.path / "site"


def locate() -> Home:
    """Return `$TIDEMARK_HOME` if it is set, else `var/` in the checkout, or `SHARED_HOME` for root.

    Postgres refuses to run as root, so its programs run as an unprivileged user, who needs access to the
    builds. They cannot be in a checkout below root's home folder, which has mode 0700: `SHARED_HOME` is used
    instead. Raises HomeError for a path that is no UTF-8: configuration files of servers could not name it.
    """
    home = _located()
    try:
        str(home.path).encode()
    except UnicodeEncodeError:
        raise HomeError(
            "the path of the output folder holds bytes that are no UTF-8",
            where=readable(str(home.path)),
            hint="name another folder by TIDEMARK_HOME",
        ) from None
    return home


def _located() -> Home:
    chosen = os.environ.get("TIDEMARK_HOME")
    if chosen:
        return Home(Path(chosen).resolve())
    if os.geteuid() == 0 and blocked_folder(ROOT) is not None:
        return Home(SHARED_HOME)
    return Home(ROOT / "var")


def locate_for_writing() -> Home:
    """`locate()`, for a command that writes there. Raises HomeError.

    Root would follow every link that the owner of the folder puts into it: git, compilers and servers
    included. The owner of the checkout is trusted, because root runs its code already. Where the group of the
    folder may write, it may write what this process makes from now on.
    """
    home = locate()
    if os.geteuid() == 0 and home.path.is_dir():
        status, checkout = home.path.stat(), ROOT.stat()
        if status.st_uid not in (0, checkout.st_uid):
            raise _foreign(home.path, status.st_uid)
        shared = bool(status.st_mode & 0o020) and status.st_gid not in (0, checkout.st_gid)
        if shared or status.st_mode & 0o002:
            raise HomeError(
                "root does not write into an output folder in which others may put links",
                where=str(home.path),
                hint=f"{shell_line('chmod', 'go-w', home.path)}, or name another folder by TIDEMARK_HOME",
            )
    elif home.path.is_dir() and home.path.stat().st_mode & GROUP_WRITES:
        os.umask(os.umask(0o077) & ~GROUP_WRITES)
    return home


def user_name(number: int) -> str:
    """Return the name of a user; the number, if it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _foreign(path: Path, owner: int) -> HomeError:
    name = user_name(owner)
    return HomeError(
        f"root does not write into an output folder of {name}, who could put links there",
        where=str(path),
        hint=f"{shell_line('sudo', '-u', name, 'env', f'TIDEMARK_HOME={path}', './tidemark')} ..., "
        "or name a folder of root's by TIDEMARK_HOME",
    )

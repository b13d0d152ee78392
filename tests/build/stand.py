"""Stand-ins: a source tree like that of Postgres that compiles in a second, its repository, a web server."""

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.engines import ENGINES, EngineDescription, Upstream
from build.recipes import postgres
from build.version import Engine

Pins = Callable[..., Path]
"""Writes a versions.toml with the given pins (`r18_6=digest`) and has it used; returns its path."""

CONFIGURE = """#!/bin/sh
# A stand-in for autoconf's script: PACKAGE_VERSION is where Tidemark reads the release.
PACKAGE_VERSION='{release}'
echo "$*" >>'{runs}'
echo "configured with $*"
# As Postgres does: the same flags for every file.
: >cflags
for word; do case $word in CFLAGS=*) echo "${{word#CFLAGS=}}" >cflags ;; esac; done
cache_file=/dev/null
if [ -n "$CONFIG_SITE" ]; then . "$CONFIG_SITE"; fi
if [ "$cache_file" != /dev/null ]; then
    if [ -e "$cache_file" ]; then cat "$cache_file" >>'{runs}.answers'
    else echo "of {release}" >"$cache_file"; fi
fi
"""

MAKEFILE = """
all: part.o
part.o: part.c
\t{before}
\t$(CC) $$(cat {top}/cflags) -c -o part.o part.c
install: all
\tmkdir -p $(DESTDIR)/usr/local/tidemark/postgres/bin $(DESTDIR)/usr/local/tidemark/postgres/lib
\t{install}
{headers}:
\ttouch {stamp}
.PHONY: all install {headers}
"""


STAMP = "header-stamp"
"""The file that stands for generated headers."""


@dataclass
class Stand:
    """A source tree laid out like that of Postgres, small enough to compile in no time."""

    folder: Path
    runs: Path

    def write(self, release: str = "18.99", before: str = "@true", part: str = "int part;\n") -> Path:
        """Write the tree; `before` is a make command line that runs before each compiler run."""
        configure = self.folder / "configure"
        self.folder.mkdir(parents=True, exist_ok=True)
        configure.write_text(CONFIGURE.format(release=release, runs=self.runs))
        configure.chmod(0o755)
        prefix = "$(DESTDIR)/usr/local/tidemark/postgres"
        script = f"#!/bin/sh\\necho psql of {release}\\n"
        programs = "; ".join(
            f"printf '{script}' >{prefix}/bin/{name}; chmod 755 {prefix}/bin/{name}"
            for name in postgres.PROGRAMS
        )
        data = f"mkdir -p {prefix}/share; touch {' '.join(f'{prefix}/{name}' for name in postgres.DATA)}"
        self._folder("src", before, f"{programs}; {data}", part)
        self._folder("config", "@true", "@true", part)
        for folder in postgres.LIBRARIES:
            self._folder(folder, f"@test -e ../backend/{STAMP}", "@true", part)
        for folder in (*postgres.SLIM_FOLDERS, "src/bin/initdb", "src/bin/pgbench"):
            # As in Postgres, the server is not compiled before these are there.
            needed = (STAMP, *(f"../../{library}/part.o" for library in postgres.LIBRARIES))
            needs = "".join(f"@test -e {file}\n\t" for file in needed) if folder == "src/backend" else ""
            self._folder(folder, needs + before, self._slim(folder, prefix, script), part)
        self._folder(postgres.CATALOG, "@true", data, part)
        for module in postgres.CONTRIB:
            self._folder(f"contrib/{module}", "@true", f"cp part.o {prefix}/lib/{module}.so", part)
        return self.folder

    def _slim(self, folder: str, prefix: str, script: str) -> str:
        """What installing one folder of a slim build installs."""
        name = folder.removeprefix("src/bin/")
        program = "postgres" if folder == "src/backend" else name if name != folder else ""
        modules = {"src/backend/snowball": "dict_snowball", "src/pl/plpgsql/src": "plpgsql"}
        if program:
            return f"printf '{script}' >{prefix}/bin/{program}; chmod 755 {prefix}/bin/{program}"
        return f"cp part.o {prefix}/lib/{modules[folder]}.so" if folder in modules else "@true"

    def answers_taken_over(self) -> list[str]:
        """What the configure script was given as answers, run by run."""
        path = Path(f"{self.runs}.answers")
        return path.read_text().splitlines() if path.exists() else []

    def _folder(self, name: str, before: str, install: str, part: str) -> None:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        top = "/".join(".." for _ in Path(name).parts)
        (folder / "Makefile").write_text(
            MAKEFILE.format(
                before=before, install=install, top=top, headers=postgres.GENERATED_HEADERS, stamp=STAMP
            )
        )
        (folder / "part.c").write_text(part)

    def tarball(self, path: Path, release: str = "18.99", **kwargs: str) -> str:
        """Pack the tree as an upstream tarball; returns its hex SHA-256."""
        self.write(release, **kwargs)
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["tar", "-cjf", str(path), "-C", str(self.folder.parent), self.folder.name], check=True
        )
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def configured_with(self) -> list[str]:
        """The words that the configure script was given, run by run."""
        return self.runs.read_text().splitlines() if self.runs.exists() else []

    def times_configured(self) -> int:
        """How often the configure script ran."""
        return len(self.configured_with())


def served_at(address: str, folder: Path) -> EngineDescription:
    """Postgres as upstream would serve it at `address`, and whose git repository is not there."""
    upstream = Upstream(
        tarball=f"{address}/postgresql-{{release}}.tar.bz2",
        git=f"{folder}/no-such-repository",
        branch="master",
        pools=("pool/p{major}/postgresql-{major}_{release}.orig.tar.bz2",),
    )
    return replace(ENGINES[Engine.POSTGRES], upstream=upstream)


@dataclass
class Web:
    """A web server on 127.0.0.1 that serves a folder and remembers what it was asked for."""

    root: Path
    address: str = ""
    asked: list[str] = field(default_factory=list)


@dataclass
class Repository:
    """A git repository whose commits hold the stand-in."""

    path: Path
    stand: Stand

    def git(self, *arguments: str) -> str:
        """Run git in the work tree; returns what it says."""
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(self.path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, message: str, release: str = "19devel", big: str = "") -> str:
        """Commit the stand-in with a file that says `message`; returns the commit."""
        self.stand.write(release)
        (self.path / "message").write_text(message)
        (self.path / "big").write_text(big)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def pulled(self, message: str) -> str:
        """Commit what only a pull request leads to, as GitHub keeps it; returns the commit."""
        self.git("checkout", "--quiet", "--detach")
        commit = self.commit(message)
        self.git("update-ref", "refs/pull/1/head", commit)
        self.git("checkout", "--quiet", "main")
        return commit

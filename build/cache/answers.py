"""The answers of configure, which one compile leaves for the next: with them configure takes a few seconds.

Autoconf writes what it has found out about the machine into a cache file, and takes it from there. A site
file names that file (Autoconf's manual, "Setting Site Defaults"), rather than the option `--cache-file`:
Postgres' configure writes its words into a header that all files include, and with other words slim builds
would share no object with whole ones.

The answers depend on the script that asks, on its options, on the compiler and on what is installed, and so
do the names of the files in which they are kept.
"""

import hashlib
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from build import host
from build.build_spec import BuildSpec
from build.files import make_folder, open_checked
from build.home import Home

SCRIPT = "configure"
"""The script in a source tree that asks."""

SITE = "config.site"
"""The site file in the scratch folder, which names the file with the answers."""

INSTALLED = (
    "/var/lib/dpkg/status",
    "/usr/include",
    "/usr/local/include",
    "/usr/lib",
    "/usr/local/lib",
)
"""Files and folders that change when a package is installed or removed, or a library by hand."""


@dataclass
class KeptAnswers:
    """The answers for one build; `file` is where its configure reads and writes them.

    A recipe that takes none leaves none either.
    """

    home: Home
    spec: BuildSpec
    file: Path
    _kept: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables with which configure finds the file; it need not exist yet."""
        if not self.spec.recipe.takes_answers:
            return {}
        site = self.file.with_name(SITE)
        site.write_text(f"cache_file={shlex.quote(str(self.file))}\n", encoding="utf-8")
        return {"CONFIG_SITE": str(site)}

    def take_over(self, script: bytes) -> None:
        """Provide the answers of an earlier run of the same configure script, if there are any."""
        if not self.spec.recipe.takes_answers:
            return
        self._kept = self.home.answers / _name(self.spec, script)
        if self._kept.exists():
            shutil.copyfile(self._kept, self.file)

    def keep(self) -> None:
        """Keep the answers for the next compile, unless it has some; the compile has succeeded."""
        if self._kept is None or self._kept.exists() or not self.file.exists():
            return
        partial = make_folder(self.home.answers) / f".{self._kept.name}.{os.getpid()}"
        try:
            answers = os.fdopen(open_checked(self.file), "rb")
        except OSError:
            return  # It is no file, and was not made by configure.
        with answers, partial.open("wb") as copy:
            shutil.copyfileobj(answers, copy)
        partial.replace(self._kept)


def installed() -> list[str]:
    """Return the state of what is installed on the machine: when each of INSTALLED changed last."""
    return [f"{path} {path.stat().st_mtime_ns if path.exists() else 0}" for path in map(Path, INSTALLED)]


def _name(spec: BuildSpec, script: bytes) -> str:
    """Return the hex digest of everything that the answers depend on."""
    digest = hashlib.sha256(script)
    command, compiler = spec.recipe.stages[0].command, spec.compiler
    parts = [*command, compiler.command, compiler.version, host.os_name(), *installed()]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()

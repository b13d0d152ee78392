"""Calls of the launcher of a checkout, old or new: each with a log, and as the user whose files it writes."""

import os
import pwd
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from build.environment import caller_value
from build.files import make_folder
from build.home import ROOT, Home
from runners.measuring.machine_lock import UNDER_WAY
from runners.updating.checkout import UpdateError
from suites.processes import tool

CALL_SECONDS = 6 * 3600.0
"""The longest that a call may take: the test night may compile two servers."""

TIMED_OUT = 124
"""The exit code of a call that took longer, as timeout(1) has it."""

STOP_SECONDS = 300.0
"""How long a call may take to end its servers when it is interrupted."""


@dataclass
class Calls:
    """Calls the launchers of two versions. `home` is that of the box."""

    home: Home
    logs: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the installed units set."""

    environments: dict[Path, Path] = field(default_factory=dict)
    """Checkout -> the folder of its Python environment, if it is not its own."""

    _number: int = field(default=0, init=False)

    def call(
        self,
        tree: Path,
        *words: str,
        home: Path | None = None,
        own: bool = False,
        fine: Collection[int] = (0,),
    ) -> int:
        """Call the launcher of a checkout, and return its exit code, one of `fine`.

        It writes into `home`, by default that of the box, as the owner of that one; with `own` as this
        process. Raises UpdateError, which names the log.
        """
        self._number += 1
        log = make_folder(self.logs) / f"{self._number:02}-{words[0]}.log"
        code = self.run([str(tree / "tidemark"), *words], log, self._environment(tree, home, own), own=own)
        if code not in fine:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["(nothing)"]
            told = next((line for line in reversed(said) if line.startswith("tidemark: ")), said[-1])
            which = "" if tree == ROOT else " of the new commit"
            raise UpdateError(
                f"./tidemark {' '.join(words[:2])}{which} failed with exit code {code}: {told}",
                where=str(log),
            )
        return code

    def files(self, *argv: str | Path) -> None:
        """Run a program that makes or removes files below the home, as its owner. Raises UpdateError."""
        self._number += 1
        log = make_folder(self.logs) / f"{self._number:02}-{argv[0]}.log"
        if self.run(list(map(str, argv)), log, dict(os.environ)):
            raise UpdateError(f"{argv[0]} failed: {log.read_text(errors='replace').strip()}", where=str(log))

    def run(
        self, argv: Sequence[str], log: Path, environment: Mapping[str, str], *, own: bool = False
    ) -> int:
        """Run a program and return its exit code. It ends when this process does."""
        identity = [] if own else self._owner()
        command = [tool("setpriv"), *identity, "--pdeathsig=INT", "--", *argv]
        with log.open("w") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                cwd="/",
                # Ctrl-C reaches this process alone, which passes it on: once.
                start_new_session=True,
            )
            try:
                return process.wait(CALL_SECONDS)
            except subprocess.TimeoutExpired:
                return TIMED_OUT
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(STOP_SECONDS)
                    process.kill()

    def _owner(self) -> list[str]:
        """Return how setpriv becomes the owner of the home: in it, root would follow the links of others."""
        there = next(folder for folder in (self.home.path, *self.home.path.parents) if folder.exists())
        status = there.stat()
        if os.geteuid() != 0 or status.st_uid == 0:
            return []
        return [f"--reuid={status.st_uid}", f"--regid={pwd.getpwuid(status.st_uid).pw_gid}", "--clear-groups"]

    def _environment(self, tree: Path, home: Path | None, own: bool) -> dict[str, str]:
        units = {} if own else self.variables
        variables = {**os.environ, **units, "TIDEMARK_HOME": str(home or self.home.path)}
        variables[UNDER_WAY] = str(tree)
        # The lock of the machine is held by this process, for all of them.
        variables["TIDEMARK_LOCK"] = str((home or self.home.path / "update") / "lock")
        if service := caller_value("PGSERVICE"):
            variables["PGSERVICE"] = service
        if tree in self.environments:
            variables["TIDEMARK_VENV"] = str(self.environments[tree])
        return variables

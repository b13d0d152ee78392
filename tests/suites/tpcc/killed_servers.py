"""Servers that are killed while clients commit: what the clients saw committed must be there afterwards."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from build import environment
from suites.checking.data_checks import DataChecks, DataError
from suites.checking.queries import connected
from suites.definition import Suite, load_suite
from suites.generators.load import WorkLimit
from suites.generators.sysbench import Sysbench
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.server import Server
from suites.sizing import Sizes

PATIENCE_SECONDS = 60
CLIENTS = 4

WITNESS = """
local run, seen = tidemark.transaction, nil
function tidemark.transaction(kind, ...)
   seen = seen or io.open("%s/" .. sysbench.tid, "w")
   local result = run(kind, ...)
   if result ~= tidemark.REFUSED then
      seen:write(kind, "\\n")
      seen:flush()
   end
   return result
end
"""
"""Notes every transaction that a client has seen committed, before the client begins another one."""

COUNTED: Mapping[str, str] = {
    "new-order": "SELECT SUM(d_next_o_id) FROM district",
    "payment": "SELECT SUM(c_payment_cnt) FROM customer",
    "delivery": "SELECT SUM(c_delivery_cnt) / 10 FROM customer",
}
"""By kind, SQL whose number grows by one with each transaction of the kind."""

STEP = "mix"
"""The step that is run; it deletes nothing that COUNTED counts."""


class WitnessedSuite:
    """A copy of a suite whose clients write down, in files of a folder, what they see committed."""

    def __init__(self, suite: Suite, folder: Path) -> None:
        """Write the copy into `folder`, which is made."""
        self._seen = folder / "seen"
        self._seen.mkdir(parents=True)
        for file in suite.folder.iterdir():
            if file.is_file():
                (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        script = folder / (suite.script or "")
        first = 'local tidemark = require("tidemark")\n'
        text = script.read_text(encoding="utf-8")
        if first not in text:
            raise ValueError(f"{script.name} does not load tidemark.lua as expected")
        script.write_text(text.replace(first, first + WITNESS % self._seen), encoding="utf-8")
        self.suite = load_suite(f"{folder}/")

    def seen(self) -> Counter[str]:
        """Return what clients saw committed, by kind; a line that is not whole was not seen."""
        lines = [
            line
            for file in self._seen.iterdir()
            for line in file.read_text(encoding="utf-8").split("\n")[:-1]
        ]
        return Counter(lines)

    def forget(self) -> None:
        """Remove what was written down."""
        for file in self._seen.iterdir():
            file.unlink()


@contextmanager
def _clients(suite: Suite, room: Sizes, server: Server, step: Step) -> Iterator[None]:
    """Run the clients of a step beside what is inside; they are killed at the end if they still run."""
    generator = Sysbench(suite, room)
    argv = [*generator.arguments(server.address, step, WorkLimit(2 * PATIENCE_SECONDS, None)), "run"]
    client = subprocess.Popen(
        argv,
        env=environment.measured(generator.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        client.kill()
        client.wait()


class KilledServer:
    """A running server with the loaded data of a suite, which is killed again and again."""

    def __init__(self, server: Server, witnessed: WitnessedSuite, room: Sizes, profile: str) -> None:
        """`room` is that of the suite's copy."""
        self.server, self._witnessed, self._room = server, witnessed, room
        suite = witnessed.suite
        (self._step,) = suite.select((STEP,), profile, (CLIENTS,))
        self._checks = DataChecks(suite.checks, profile, room.data.rows_by_table)

    def kill_once(self, after: int) -> tuple[int, list[str]]:
        """Kill the server once clients saw `after` transactions; start it again.

        Return how many transactions were seen committed, and what is wrong, in words: each that is missing,
        each that nobody sent, and what the checks of the data found.
        """
        before = self._counts()
        self._witnessed.forget()
        with _clients(self._witnessed.suite, self._room, self.server, self._step):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while self._witnessed.seen().total() < after and time.monotonic() < deadline:
                time.sleep(0.02)
            kill(self.server)
        seen = self._witnessed.seen()
        wrong = [] if seen.total() >= after else [f"only {seen.total()} transactions in {PATIENCE_SECONDS} s"]
        self.server.stop()
        self.server.start()
        for kind, now in self._counts().items():
            grown = now - before[kind]
            # Each client may have had a commit on its way whose answer it did not see.
            if not seen[kind] <= grown <= seen[kind] + CLIENTS:
                wrong.append(f"{kind}: {seen[kind]} seen committed, {grown} there")
        try:
            self._checks.require(self.server.address, CheckOccasion.CRASH, self._step.name)
        except DataError as error:
            wrong.append(error.what)
        return seen.total(), wrong

    def _counts(self) -> dict[str, int]:
        counts = {}
        with connected(self.server.address) as connection, closing(connection.cursor()) as cursor:
            for kind, query in COUNTED.items():
                cursor.execute(query)
                ((counts[kind],),) = cursor.fetchall()
        return {kind: int(count) for kind, count in counts.items()}


def kill(server: Server) -> None:
    """Kill the server and all its processes, at once, as a crash does."""
    root = psutil.Process(server.pid)
    processes = [root, *root.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)

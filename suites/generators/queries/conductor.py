"""The load generator for long queries: each query once to warm up, then in turns on all servers."""

import contextlib
import json
import re
import selectors
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from pathlib import Path
from typing import Any

from build.finished_build import Build
from build.home import ROOT
from build.version import Engine
from suites.definition import Suite
from suites.engine import Rows
from suites.engines import engine_of
from suites.generators.load import Generator, Load, LoadError, Observer, OverLimitError, Share, blamed_on
from suites.generators.placement import placement
from suites.generators.plausibility import require_plausible
from suites.generators.programs import OVERTIME_SECONDS, run_all
from suites.generators.queries.client import HUNDREDTHS, latency_of, load_of_streams, statements_of
from suites.keys.sql_statements import Statement, statements_in
from suites.keys.step import Step
from suites.processes import run, start, stop, tool
from suites.server import Address
from suites.setup.loading import load_files
from suites.sizing import Sizes

MAX_SHOWN = 50
"""The characters of a statement in its name."""


def own_streams(file: Path, engine: Engine, step: Step, seconds: float, limit: float) -> dict[str, Any]:
    """Return what the client program is asked for: the clients of the step at once carry the file out.

    They begin it again until `seconds` are over. A statement may take `limit` seconds. Without levels there
    is one client, whatever the cores: what people time by hand, they time alone.
    """
    queries = [
        {"name": name, "statements": [statement.text]}
        for name, statement in _named(statements_in(file.read_text(encoding="utf-8"), engine))
    ]
    return {
        "file": str(file),
        "streams": [queries] * (step.clients[0] if step.clients else 1),
        "limit": limit,
        "again_seconds": seconds,
        "seconds": seconds + limit * len(queries),
    }


def _named(statements: Sequence[Statement]) -> list[tuple[str, Statement]]:
    """Return each statement with its name: its line, its number if it is not the first there, first words."""
    on_line = Counter[int]()
    named = []
    for statement in statements:
        on_line[statement.line] += 1
        number = f"-{on_line[statement.line]}" if on_line[statement.line] > 1 else ""
        named.append((f"line-{statement.line}{number} {_first_words(statement.text)}", statement))
    return named


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_SHOWN else f"{words[: MAX_SHOWN - 1].rstrip()}…"


def place_of(file: str, query: str) -> str:
    """Return file and line of the statement in `file` that is called `query`."""
    line = re.match(r"line-(\d+)", query)
    assert line is not None
    return f"{Path(file).name}, line {line[1]}"


def explained_statements(file: Path, engine: Engine) -> list[str]:
    """Return the statements of a file if a server can explain them all; else none.

    What one statement makes, such as a temporary table, is missing where another one is explained alone.
    """
    statements = statements_in(file.read_text(encoding="utf-8"), engine)
    are_explained = all(statement.is_explained for statement in statements)
    return [statement.text for statement in statements] if are_explained else []


def difference(known: Rows, rows: Rows) -> str | None:
    """Return how a result differs from another one of the same query; None where it does not."""
    if len(rows) != len(known):
        return f"{len(rows)} rows instead of {len(known)}"
    for number, (expected, row) in enumerate(zip(known, rows, strict=True), start=1):
        for right, cell in zip(expected, row, strict=True):
            if not _is_same(right, cell):
                return f"row {number}: {cell} instead of {right}"
    return None


def _is_same(right: str | None, cell: str | None) -> bool:
    """Return whether two cells are equal, numbers but for one in the last digit that both have.

    Engines round averages and ratios to different numbers of digits; counts and sums are exact.
    """
    if right is None or cell is None:
        return right == cell
    try:
        known, seen = Decimal(right), Decimal(cell)
    except InvalidOperation:
        return False
    digits = min(_decimals(right), _decimals(cell))
    return known == seen or (digits > 0 and abs(known - seen) <= Decimal(1).scaleb(-digits))


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])


def _require_same(step: Step, answers: Mapping[int, Rows]) -> None:
    """Raise LoadError when a server has another answer than the first one of those that have any by now."""
    first, *others = sorted(answers)
    for place in others:
        wrong = difference(answers[first], answers[place])
        if wrong is not None:
            raise LoadError(
                f"{step.name} has another answer than version {first + 1} of the session: {wrong}",
                hint="its times would mean nothing: find out which of the two is wrong",
                place=place,
            )


DATA_PROGRAM = "tpchgen-cli"
"""What makes the rows of TPC-H's tables."""

LOAD_SECONDS_PER_MILLION_ROWS = 600
"""Time limit for loading a million rows, which is far more than loading takes unless it hangs."""

CONNECT_SECONDS = 60.0
"""How long the client may take to connect."""

UNLIMITED_SECONDS = 7 * 86_400.0
"""The limit of a query in a profile without one."""


class QueryConductor(Generator):
    """Tidemark's own client of long queries."""

    def __init__(self, suite: Suite, sizes: Sizes, builds: Sequence[Build] = ()) -> None:
        self.suite = suite
        self.sizes = sizes
        self.builds = builds

    @property
    def _scale(self) -> int:
        return self.sizes.data.scale or 1

    def version(self) -> str:
        """Return the versions of the drivers, and of what makes the data of TPC-H."""
        drivers = f"psycopg {version('psycopg')}, PyMySQL {version('pymysql')}"
        if self.suite.scale is None:
            return drivers
        made_by = run([tool(DATA_PROGRAM), "--version"], what=f"{DATA_PROGRAM} --version")
        return f"{drivers}, {made_by.strip()}"

    def load(self, address: Address) -> None:
        """Create and fill the tables, which are the same whatever the seed, or load the suite's files.

        Raises LoadError, and SetupError for these files.
        """
        if self.suite.scale is None:
            load_files(self.builds, address, self.suite)
            return
        limit = 60 + self.sizes.data.rows * LOAD_SECONDS_PER_MILLION_ROWS / 1e6
        asked = {
            "folder": str(self.suite.folder),
            "scale": self._scale,
            "tables": list(self.suite.scale.tables),
            "rows": str(self._rows(address.socket.parent.parent, limit)),
        }
        with engine_of(address.engine).setup.with_all_rights(address) as loading:
            run_all([_command("load", loading, asked)], 1, limit, _environment(loading))

    def _rows(self, folder: Path, limit: float) -> Path:
        """Return the folder with the rows of all tables, made once for all servers below `folder`."""
        rows = folder / f"{DATA_PROGRAM}-{self._scale}"
        if not rows.is_dir():
            partial = rows.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            factor = f"--scale-factor={self._scale / HUNDREDTHS:g}"
            run_all([[tool(DATA_PROGRAM), "csv", "--quiet", factor, f"--output-dir={partial}"]], 1, limit)
            partial.rename(rows)
        return rows

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run the query in the slices of each server: once to warm up, otherwise until the slice is over.

        The first results of all servers must be the same. Raises OverLimitError when a query takes longer
        than its limit. A file of a suite with a setup is a stream of its statements for each
        client; see own_streams.
        """
        if self.suite.scale is None:
            return self._alternate_streams(addresses, step, share, observers)
        limit = share.limit_seconds or UNLIMITED_SECONDS
        schedule, runs = share.schedule, [list[float]() for _ in addresses]
        answers: dict[int, Rows] = {}
        with self._clients(addresses, step, observers) as clients:
            for number, place in enumerate(schedule.order):
                share.works(place)
                is_warm = number < schedule.warming
                seconds = 0.0 if is_warm else schedule.slice_seconds
                wants_rows = place not in answers
                with blamed_on(place):
                    answer = clients[place].ask(self._asked(step, seconds, limit, wants_rows), limit)
                if answer["is_over"]:
                    raise OverLimitError(step.name, limit, self._others(clients, step, limit, place))
                if wants_rows:
                    answers[place] = answer["rows"]
                    _require_same(step, answers)
                if not is_warm:
                    runs[place] += answer["runs"]
        return [load_of(runs[place], client.executions) for place, client in enumerate(clients)]

    def _alternate_streams(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run the streams of a step in every slice.

        Raises LoadError when a query takes longer than its limit: without it there is no figure.
        """
        limit, schedule = share.limit_seconds or UNLIMITED_SECONDS, share.schedule
        runs = [list[tuple[str, float]]() for _ in addresses]
        taken = [0.0] * len(addresses)
        with self._clients(addresses, step, observers) as clients:
            for number, place in enumerate(schedule.order):
                is_warm = number < schedule.warming
                share.works(place)
                again = 0.0 if is_warm else schedule.slice_seconds
                asked = own_streams(self._file_of(step), addresses[place].engine, step, again, limit)
                with blamed_on(place):
                    answer = clients[place].ask(asked, limit)
                    _require_finished(answer["is_over"], step, asked)
                if not is_warm:
                    runs[place] += [(name, seconds) for name, seconds in answer["runs"]]
                    taken[place] += answer["took"]
        loads = [
            load_of_streams(runs[place], taken[place], client.executions)
            for place, client in enumerate(clients)
        ]
        # A single statement is what the step itself is about.
        loads = [load if len(load.kinds) > 1 else replace(load, kinds={}) for load in loads]
        return [require_plausible(load, "the client of long queries") for load in loads]

    @contextlib.contextmanager
    def _clients(
        self, addresses: Sequence[Address], step: Step, observers: Sequence[Observer]
    ) -> "Iterator[list[_Client]]":
        """Yield a connected client for each server, whose work is observed unless it fails."""
        with contextlib.ExitStack() as stack:
            cores = placement(step, self.sizes).client
            clients = []
            for place, address in enumerate(addresses):
                with blamed_on(place):
                    clients.append(stack.enter_context(_connected(address, cores)))
            for client, observer in zip(clients, observers, strict=True):
                observer.begin(client.pid)
            yield clients
            for client, observer in zip(clients, observers, strict=True):
                observer.end(client.pid)

    def _others(
        self, clients: "Sequence[_Client]", step: Step, limit: float, slow: int
    ) -> dict[int, float | None]:
        """Return the seconds of one execution by server: None for `slow`; all others run one now."""
        seconds: dict[int, float | None] = {slow: None}
        for place in set(range(len(clients))) - {slow}:
            with blamed_on(place):
                answer = clients[place].ask(self._asked(step, 0.0, limit, wants_rows=False), limit)
            seconds[place] = None if answer["is_over"] else answer["runs"][0]
        return seconds

    def _asked(self, step: Step, seconds: float, limit: float, wants_rows: bool) -> dict[str, Any]:
        return {"statements": self._texts(step), "seconds": seconds, "limit": limit, "rows": wants_rows}

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Return the statements of a step."""
        if self.suite.scale is None:
            return explained_statements(self._file_of(step), address.engine)
        return self._texts(step)

    def _texts(self, step: Step) -> list[str]:
        return statements_of(self._file_of(step), self._scale)

    def _file_of(self, step: Step) -> Path:
        return self.suite.folder / str(step.options["file"])


def _require_finished(over: str | None, step: Step, asked: Mapping[str, Any]) -> None:
    """Raise LoadError if a query of streams was over its limit."""
    if over is not None:
        raise LoadError(
            f"{place_of(asked['file'], over)}: took longer than its limit of {asked['limit']:g} s in "
            f"{step.name}",
            hint="there is a figure only if all queries end: measure this one alone, or raise limit_seconds",
        )


class _Client:
    """A running client that is connected to a server."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._rest = b""
        self.executions = 0
        """The queries so far, with those that warm up."""

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def ask(self, asked: Mapping[str, Any], limit: float) -> dict[str, Any]:
        """Have one slice carried out; return its answer. Raises LoadError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # what it said before it ended says why
        # A slice ends with the query begun in it, whose last statement may begin just within its limit.
        last = limit * min(2, len(asked.get("statements", "1")))
        answer = self.read(asked["seconds"] + last + OVERTIME_SECONDS, asked.get("file", ""))
        self.executions += len(answer["runs"])
        return answer

    def read(self, seconds: float, file: str = "") -> dict[str, Any]:
        """Return the next answer, to statements of `file`.

        Raises LoadError if there is none, or it tells of an error.
        """
        line = self._line(time.monotonic() + seconds)
        try:
            answer = json.loads(line)
            if isinstance(answer, dict) and "error" not in answer:
                return answer
            reason = str(answer["error"])
            if "query" in answer:
                raise LoadError(f"{place_of(file, answer['query'])}: {reason}", where=file)
        except (ValueError, TypeError, KeyError):
            reason = line.decode(errors="replace") or f"it ended with status {self._process.wait(5)}"
        raise LoadError(f"the client of long queries failed: {reason}", hint="check the server's log")

    def _line(self, deadline: float) -> bytes:
        output = self._process.stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise LoadError(
                        f"a query is still running {OVERTIME_SECONDS} s after its limit",
                        hint="check the server's log: MySQL ends no statement but a query at its limit",
                    )
                chunk = output.read1(1 << 20)  # type: ignore[attr-defined]
                if not chunk:
                    return self._rest
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@contextlib.contextmanager
def _connected(address: Address, bound_to: Collection[int] | None) -> Iterator[_Client]:
    """Yield a client of the server at `address`, which has ended afterwards. Raises LoadError."""
    process = start(
        _command("serve", address, {}),
        subprocess.PIPE,
        bound_to=bound_to,
        stdin=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(address),
    )
    try:
        client = _Client(process)
        client.read(CONNECT_SECONDS)
        yield client
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        stop(process, patience=1)


def load_of(runs: Sequence[float], executions: int) -> Load:
    """Return the result of queries that took `runs` seconds, of `executions` in all. Raises LoadError.

    There are no rates from second to second, in which a query of seconds would be nothing or everything.
    """
    if not runs or not all(runs):
        raise LoadError("no query was finished", hint="check the server's log")
    latency = latency_of([1000 * seconds for seconds in runs])
    seconds = sum(runs)
    load = Load(len(runs), float(len(runs)), seconds, 0, (), latency, float(executions), seconds)
    return require_plausible(load, "the client of long queries")


def _environment(address: Address) -> dict[str, str]:
    """Return the variables with which the client finds its modules and the password."""
    return {"PYTHONPATH": str(ROOT), **address.password_variables}


def _command(command: str, address: Address, more: Mapping[str, object]) -> list[str]:
    place = {
        "engine": str(address.engine),
        "socket": str(address.socket),
        "user": address.user,
        "database": address.database,
    }
    asked = {"command": command, "address": place, **more}
    return [sys.executable, "-m", "suites.generators.queries.client", json.dumps(asked)]

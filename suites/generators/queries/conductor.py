"""The load generator for long queries: each query once to warm up, then in turns on all servers."""

import contextlib
import json
import re
import selectors
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from suites.generators.load import (
    Generator,
    KindLoad,
    Load,
    LoadError,
    Observer,
    OverLimitError,
    Share,
    blamed_on,
)
from suites.generators.placement import placement
from suites.generators.plausibility import require_plausible
from suites.generators.programs import OVERTIME_SECONDS, run_all
from suites.generators.queries.client import HUNDREDTHS, statements_of
from suites.keys.sql_statements import Statement, statements_in
from suites.keys.step import Step
from suites.processes import run, start, stop, tool
from suites.server import Address
from suites.setup.loading import load_files
from suites.sizing import Sizes

MAX_SHOWN = 50
"""The characters of a statement in its name."""


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


def place_of(file: Path, query: str) -> str:
    """Return the file, and the line if it has a name by that, of the statement that is called `query`."""
    line = re.match(r"line-(\d+)", query)
    return file.name if line is None else f"{file.name}, line {line[1]}"


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
    if right == cell or right is None or cell is None:
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
        """Run the queries of a step in the slices of each server: once to warm up, else until one is over.

        With a scale that is one query, whose first results on all servers must be the same; of a file of a
        suite with a setup all clients of the step carry out each statement. Raises OverLimitError when the
        one query takes longer than its limit, LoadError when one of several does: then there is no figure.
        """
        limit, schedule = share.limit_seconds or UNLIMITED_SECONDS, share.schedule
        runs, busy = [list[tuple[str, float]]() for _ in addresses], [0.0] * len(addresses)
        answers: dict[int, Rows] = {}
        with self._clients(addresses, step, limit, observers) as clients:
            for number, place in enumerate(schedule.order):
                share.works(place)
                is_warm = number < schedule.warming
                wants_rows = self.suite.scale is not None and place not in answers
                with blamed_on(place):
                    answer = clients[place].ask(0.0 if is_warm else schedule.slice_seconds, wants_rows)
                    if answer["over"] is not None:
                        raise self._over_limit(step, limit, answer["over"], clients, place)
                if wants_rows:
                    answers[place] = answer["rows"]
                    _require_same(step, answers)
                if not is_warm:
                    runs[place] += [(name, seconds) for name, seconds in answer["runs"]]
                    busy[place] += answer["seconds"]
        return [load_of(runs[place], busy[place], client.executions) for place, client in enumerate(clients)]

    def _over_limit(
        self, step: Step, limit: float, query: str, clients: "Sequence[_Client]", slow: int
    ) -> LoadError:
        """Return the error of a query that is over its limit on one server; all others execute it again."""
        if self.suite.scale is None:
            return LoadError(
                f"{place_of(self._file_of(step), query)}: took longer than its limit of {limit:g} s in "
                f"{step.name}",
                hint="there is a figure only if all queries end: measure this one alone, or raise "
                "limit_seconds",
            )
        seconds: dict[int, float | None] = {slow: None}
        for place in set(range(len(clients))) - {slow}:
            with blamed_on(place):
                answer = clients[place].ask(0.0, wants_rows=False)
            seconds[place] = None if answer["over"] is not None else answer["seconds"]
        return OverLimitError(step.name, limit, seconds)

    @contextlib.contextmanager
    def _clients(
        self, addresses: Sequence[Address], step: Step, limit: float, observers: Sequence[Observer]
    ) -> "Iterator[list[_Client]]":
        """Yield a connected client for each server, whose work is observed unless it fails."""
        with contextlib.ExitStack() as stack:
            cores, file = placement(step, self.sizes).client, self._file_of(step)
            clients = []
            for place, address in enumerate(addresses):
                task = {
                    "queries": self._queries(address, step),
                    "clients": self.suite.clients_of(step) or 1,
                    "limit": limit,
                }
                with blamed_on(place):
                    clients.append(stack.enter_context(_connected(address, cores, task, file)))
            for client, observer in zip(clients, observers, strict=True):
                observer.begin(client.pid)
            yield clients
            for client, observer in zip(clients, observers, strict=True):
                observer.end(client.pid)

    def _queries(self, address: Address, step: Step) -> list[dict[str, Any]]:
        """Return what the client program is told of the queries of a step: names, and statements."""
        if self.suite.scale is not None:
            return [{"name": step.name, "statements": self._texts(step)}]
        statements = statements_in(self._file_of(step).read_text(encoding="utf-8"), address.engine)
        return [{"name": name, "statements": [statement.text]} for name, statement in _named(statements)]

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Return the statements of a step."""
        if self.suite.scale is None:
            return explained_statements(self._file_of(step), address.engine)
        return self._texts(step)

    def _texts(self, step: Step) -> list[str]:
        return statements_of(self._file_of(step), self._scale)

    def _file_of(self, step: Step) -> Path:
        return self.suite.folder / str(step.options["file"])


class _Client:
    """A running client that is connected to a server."""

    def __init__(self, process: "subprocess.Popen[bytes]", task: Mapping[str, Any], file: Path) -> None:
        """Tell it its task, the queries of a file, and wait until it is connected. Raises LoadError."""
        self._process, self._file = process, file
        self._rest = b""
        # None is begun beyond its limit, but the last statement of one may begin just within it.
        statements = sum(min(2, len(query["statements"])) for query in task["queries"])
        self._most_seconds = task["limit"] * statements
        self.executions = 0
        """The queries so far, with those that warm up."""
        self._tell(task)
        self._answer(CONNECT_SECONDS)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def ask(self, seconds: float, wants_rows: bool) -> dict[str, Any]:
        """Have one slice carried out, of at least so many seconds; return its answer. Raises LoadError."""
        self._tell({"seconds": seconds, "rows": wants_rows})
        answer = self._answer(seconds + self._most_seconds + OVERTIME_SECONDS)
        self.executions += len(answer["runs"])
        return answer

    def _tell(self, what: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what it said before it ended says why
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self, seconds: float) -> dict[str, Any]:
        """Return its next answer. Raises LoadError if there is none, or it tells of an error."""
        line = self._line(time.monotonic() + seconds)
        try:
            answer = json.loads(line)
            if isinstance(answer, dict) and "error" not in answer:
                return answer
            reason = str(answer["error"])
            if "query" in answer:
                raise LoadError(f"{place_of(self._file, answer['query'])}: {reason}", where=str(self._file))
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
def _connected(
    address: Address, bound_to: Collection[int] | None, task: Mapping[str, Any], file: Path
) -> Iterator[_Client]:
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
        yield _Client(process, task, file)
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        stop(process, patience=1)


def load_of(runs: Sequence[tuple[str, float]], seconds: float, executions: int) -> Load:
    """Return the result of queries, by name, that took `seconds` in all; each is a kind if there are several.

    `executions` are all queries of the session so far. There are no rates from second to second, in which a
    query of seconds would be nothing or everything. Raises LoadError if no query was finished.
    """
    if not runs or not all(taken > 0 for _, taken in runs):
        raise LoadError("no query was finished", hint="check the server's log")
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, taken in runs:
        by_name[name].append(1000 * taken)
    latency = _latency_of([1000 * taken for _, taken in runs])
    kinds = {
        name: KindLoad(len(taken), {}, 0, len(taken), _latency_of(taken)) for name, taken in by_name.items()
    }
    load = Load(
        len(runs),
        float(len(runs)),
        seconds,
        0,
        (),
        latency,
        float(executions),
        seconds,
        kinds=kinds if len(kinds) > 1 else {},
    )
    return require_plausible(load, "the client of long queries")


def _latency_of(milliseconds: Sequence[float]) -> dict[str, float]:
    return {
        "mean": statistics.fmean(milliseconds),
        "p50": statistics.median(milliseconds),
        "max": max(milliseconds),
    }


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

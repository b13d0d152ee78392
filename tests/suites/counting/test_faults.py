"""What goes wrong in a counted pass, with a server and a load that only act as if."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from build.version import Engine, parse_version
from suites.counting.callgrind import CallgrindError
from suites.counting.counted_pass import PassTerms, affordable, count, pass_length
from suites.counting.engines import COUNTED
from suites.counting.tool import Callgrind
from suites.definition import load_suite
from suites.generators.load import CountedLoad, CountedWork, LoadError, LongPassError
from suites.generators.sysbench import Sysbench
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.server import Address, Instrument, ServerError, beside
from tests.manifests import a_manifest
from tests.suites.servers import small

SUITE = load_suite("write-heavy")
ROOM = small(rows=2000)
(DELETE,) = SUITE.select(("delete",))
GOLDEN = Path(__file__).resolve().parents[2] / "golden/suites"
PARTS = {
    number: (GOLDEN / f"callgrind-{number}.txt")
    .read_text()
    .replace(") mark", f") {COUNTED[Engine.POSTGRES].mark_function}")
    for number in (3, 4)
}
UNKNOWN = "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7D 0x48\n"


class PretendedServer:
    """A server that starts or does not, and of whose death the test decides."""

    def __init__(self, folder: Path) -> None:
        self.build = Build(parse_version("postgres@18.6"), "18.6", "key", folder, a_manifest())
        self.address = Address(Engine.POSTGRES, folder / ".s.PGSQL.5432", "tidemark", "tidemark")
        self.refuses: ServerError | None = None
        self.ended: str | None = None
        self.says = ""
        self.left = 0
        self.keeps = False
        self.chosen: dict[str, str] = {}

    def restore(self, *, is_timed: bool = True) -> None:
        assert not is_timed, "a flush to disk takes a second"

    def start(self, instrument: Instrument) -> None:
        (log,) = [word for word in instrument.command if word.startswith("--log-file=")]
        Path(log.removeprefix("--log-file=").replace("%p", "4711")).write_text(self.says)
        if self.refuses:
            raise self.refuses

    @contextlib.contextmanager
    def keeping_row_versions(self) -> Iterator[None]:
        self.keeps = True
        yield
        self.keeps = False

    def abandon(self) -> None:
        self.left += 1

    def death(self) -> str | None:
        return self.ended


@pytest.fixture
def server(tmp_path: Path) -> PretendedServer:
    return PretendedServer(tmp_path)


def counting(
    server: PretendedServer,
    load: Callable[[Path], float],
    seconds: float = 0.001,
    terms: PassTerms | None = None,
) -> Any:
    """Count with a load that finds the folder of callgrind's files, and whose transactions take `seconds`."""

    class Load:
        def count(self, address: Address, step: object, work: CountedWork) -> CountedLoad:
            assert server.keeps, "purge would change the work"
            queries = load(beside(address.socket.parent, "counts"))
            return CountedLoad(work.choose(seconds).counted, queries)

    pretended: Any = server
    generator: Any = Load()
    callgrind = Callgrind("valgrind", "valgrind-3.19.0")
    return count(pretended, generator, DELETE, ROOM, callgrind, terms, stacks=False)


def writing(*numbers: int) -> Callable[[Path], float]:
    """A load after which callgrind has written these parts, of a backend and of the postmaster."""

    def load(folder: Path) -> float:
        for number in numbers:
            (folder / f"counts.4712.{number}").write_text(PARTS[3 if number < 4 else 4])
        (folder / "counts.4711").write_text("what the postmaster wrote at its end")
        return 1.0

    return load


def failing(error: TidemarkError) -> Callable[[Path], float]:
    def load(folder: Path) -> float:
        raise error

    return load


def test_what_is_counted_is_the_work_without_a_mark(server: PretendedServer) -> None:
    values = counting(server, writing(1, 2, 3, 4)).values
    assert values[INSTRUCTIONS] * DELETE.counted == 1760 - 5
    assert values[COUNTED_TRANSACTIONS] == DELETE.counted == 400
    assert server.left == 1
    assert not beside(server.address.socket.parent, "counts").exists()


def test_expensive_transactions_are_fewer_and_as_many_in_all_passes_of_a_step(
    server: PretendedServer,
) -> None:
    """400 with 120 before them are halved until they take no more than a minute."""
    agreed: dict[str, int] = {}
    terms = PassTerms(lambda affordable: agreed.setdefault("delete", affordable))
    for seconds, transactions in ((0.5, 50), (0.1, 50), (5.0, 50)):
        values = counting(server, writing(1, 2, 3, 4), seconds, terms).values
        assert values[COUNTED_TRANSACTIONS] == transactions
        assert values[INSTRUCTIONS] * transactions == 1760 - 5


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.3, 1.0, 4.0, 50.0])
def test_a_pass_keeps_to_its_budget_and_is_no_shorter_than_that_needs(seconds: float) -> None:
    counted = affordable(400, 4, seconds)
    assert counted == 1 or pass_length(counted, 4).transactions * seconds <= 60
    assert counted == 400 or pass_length(counted * 2, 4).transactions * seconds > 60
    assert pass_length(counted, 4).warm >= 6, "plans of the first five executions are made anew"


def test_settings_that_were_chosen_are_counted_with_and_said(server: PretendedServer) -> None:
    server.chosen = {"JIT": "on", "fsync": "OFF", "work_mem": "8MB"}
    said = "instructions were counted with JIT = on, as chosen, not with off as in other sessions"
    assert counting(server, writing(1, 2, 3, 4)).notes == [said]


def test_an_unknown_instruction_is_told_in_valgrind_s_words(server: PretendedServer) -> None:
    """Postgres survives a backend that dies of one, and the client only sees a lost connection."""
    server.says = UNKNOWN
    with pytest.raises(
        CallgrindError, match="connection lost\n    valgrind said: vex amd64->IR: unhand"
    ) as told:
        counting(server, failing(LoadError("connection lost")))
    assert "newer valgrind" in told.value.hint
    server.refuses = ServerError("it did not start: exit status 1", where="/log")
    with pytest.raises(CallgrindError, match="did not start: exit status 1\n    valgrind said: vex") as told:
        counting(server, writing())
    assert (told.value.where, server.left) == ("/log", 2)


def test_a_debug_format_that_is_not_read_leaves_no_mark(server: PretendedServer) -> None:
    """Without symbols callgrind does not know the function before which it is to write."""
    with pytest.raises(CallgrindError, match="wrote 0 files of the client's work") as told:
        counting(server, writing())
    assert "no function pg_backend_pid, or no symbols" in told.value.hint
    with pytest.raises(CallgrindError, match="wrote 0 files of the client's work"):
        counting(server, writing(1, 2, 3))


def test_a_server_that_dies_is_blamed_and_not_the_load(server: PretendedServer) -> None:
    server.ended = "killed by SIGSEGV"
    with pytest.raises(
        CallgrindError, match=r"postgres@18.6 died under callgrind during delete: killed by S"
    ):
        counting(server, failing(LoadError("connection lost")))
    assert server.left == 1


def test_the_error_of_a_load_stays_as_it_is(server: PretendedServer) -> None:
    error = LoadError("sysbench failed")
    with pytest.raises(LoadError) as told:
        counting(server, failing(error))
    assert told.value is error


def test_a_step_that_never_ends_is_ended(
    server: PretendedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sysbench"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    server.says = "valgrind says something at every start\n"
    pretended: Any = server
    callgrind = Callgrind("valgrind", "valgrind-3.19.0")
    terms = PassTerms(limit_seconds=0.2)
    with pytest.raises(LongPassError, match=r"delete was ended after 0\.2 s, at its first transactions"):
        count(pretended, Sysbench(SUITE, ROOM), DELETE, ROOM, callgrind, terms, stacks=False)
    assert server.left == 1

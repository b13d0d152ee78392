"""The formats in which results of other programs come in, in the order in which a file is tried on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from history.transfer.foreign.csv_table import CSV_EXAMPLE, NAME, looks_like_csv, read_csv
from history.transfer.foreign.document import Document
from history.transfer.foreign.mytools import (
    HEADLESS_BEGINS,
    PER_OP_BEGINS,
    QPS_BEGINS,
    read_headless_qps,
    read_per_op,
    read_qps,
)
from history.transfer.foreign.results import Recogniser, RunName, ToolFormat
from history.transfer.foreign.tools.benchbase import BENCHBASE
from history.transfer.foreign.tools.criterion import CRITERION
from history.transfer.foreign.tools.github_action import GITHUB_ACTION
from history.transfer.foreign.tools.go_benchmark import GO_BENCHMARK
from history.transfer.foreign.tools.google_benchmark import GOOGLE_BENCHMARK
from history.transfer.foreign.tools.hammerdb import HAMMERDB
from history.transfer.foreign.tools.hyperfine import HYPERFINE_CSV, HYPERFINE_JSON
from history.transfer.foreign.tools.jmh import JMH
from history.transfer.foreign.tools.mysqlslap import MYSQLSLAP
from history.transfer.foreign.tools.otava import OTAVA
from history.transfer.foreign.tools.pgbench import PGBENCH
from history.transfer.foreign.tools.pgbench_logs import PGBENCH_INTERVALS, PGBENCH_LOG
from history.transfer.foreign.tools.pytest_benchmark import PYTEST_BENCHMARK
from history.transfer.foreign.tools.sysbench import SYSBENCH
from history.transfer.foreign.values import Given, Location, Read, refuse


class ForeignFormat(Protocol):
    """A format of results that Tidemark did not write."""

    @property
    def name(self) -> str:
        """What files of it are called in messages."""

    @property
    def recognises(self) -> Recogniser:
        """Tells whether a file has the format."""

    @property
    def run_of(self) -> RunName | None:
        """Tells which files are one run; None where each file is whole."""

    @property
    def takes_metrics(self) -> bool:
        """Whether `--metric` can say what it holds."""

    @property
    def example(self) -> str:
        """A small file that is accepted, for messages."""

    def values(self, documents: Sequence[Document], given: Given) -> Read:
        """Return what the files of one run hold. Raises TransferError."""


@dataclass(frozen=True)
class TableFormat:
    """A table whose rows say which version, step and round they are of."""

    name: str
    recognises: Recogniser
    read: Callable[[Document, Given], Read]
    example: str
    """A table that is accepted."""

    run_of: RunName | None = None
    takes_metrics: bool = False
    takes_versions: bool = False
    """Whether `--version` and `--step` can stand for columns."""

    def values(self, documents: Sequence[Document], given: Given) -> Read:
        """Return the values of a table. Raises TransferError."""
        (document,) = documents
        if not self.takes_versions and (given.version or given.step):
            place = Location(document.name, "the whole file")
            raise refuse(place, f"this is {self.name}, which name versions and steps", "leave --version out")
        return self.read(document, given)


HEADLESS_QPS = TableFormat(
    "a table of mytools without a head",
    lambda document: HEADLESS_BEGINS.match(document.head) is not None,
    read_headless_qps,
    "insert_range=100,1000,990",
)

FORMATS: tuple[ForeignFormat, ...] = (
    TableFormat(
        "mytools' QPS",
        lambda document: QPS_BEGINS.match(document.head) is not None,
        read_qps,
        "col-1 : pg177\ncol-2 : pg181\ncol-1\tcol-2\n1000\t990\tinsert_range=100",
    ),
    TableFormat(
        "mytools' costs",
        lambda document: PER_OP_BEGINS.match(document.head) is not None,
        read_per_op,
        "insert\n--- absolute\ncs/o\to/s\tdbms\n1.5\t1000\tx.pg177.x10a.pk1",
    ),
    TableFormat(NAME, looks_like_csv, read_csv, CSV_EXAMPLE, takes_versions=True),
    *(HYPERFINE_CSV, OTAVA, HEADLESS_QPS, PGBENCH_LOG, PGBENCH_INTERVALS),
    *(GITHUB_ACTION, HYPERFINE_JSON, BENCHBASE, PYTEST_BENCHMARK, GOOGLE_BENCHMARK, JMH, CRITERION),
    *(SYSBENCH, PGBENCH, HAMMERDB, MYSQLSLAP, GO_BENCHMARK),
)


def recognised(document: Document) -> ForeignFormat | None:
    """Return the format of a file, or None. Raises TransferError for a damaged file.

    The output of a tool may have something in front of each line, such as the time of a log.
    """
    cut = ((known, other) for other in document.without_prefix() for known in FORMATS)
    tools = (known for known, other in cut if isinstance(known, ToolFormat) and known.recognises(other))
    return next((known for known in FORMATS if known.recognises(document)), None) or next(tools, None)

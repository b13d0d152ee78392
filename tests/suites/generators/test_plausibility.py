"""Reports with numbers that cannot be: refused at once, however large they are."""

import time
from pathlib import Path

import pytest

from suites.generators.load import LoadError
from suites.generators.pgbench.transcript import PgbenchTranscript, logged_transactions
from tests.suites.generators.test_sysbench import CAPTURE, transcript
from tests.suites.golden import lines

SLICES = "sysbench-slices.txt"
HUGE = "9" * 5000


@pytest.mark.parametrize(
    "line",
    [
        "tidemark: slice 4 of thread 0 from 0.000000 to 9999999999.000000: 1 1",
        "tidemark: slice 4 of thread 0 from 14950.000000 to 14940.000000: 1 1",
    ],
)
def test_a_slice_that_cannot_be_is_refused_at_once(line: str) -> None:
    """Each whole second of a slice has a rate: the first of these had ten thousand million."""
    began = time.process_time()
    with pytest.raises(LoadError, match="cannot be"):
        transcript(line, *lines(SLICES)).load()
    assert time.process_time() - began < 1


def test_many_slices_do_not_take_longer_than_their_lines() -> None:
    many = [
        f"tidemark: slice {place} of thread 0 from {place}.000000 to {place}.040000: 5"
        for place in range(1, 20_001)
    ]
    whole = [line for line in lines(SLICES) if not line.startswith("tidemark")]
    began = time.process_time()
    assert transcript(*many, *whole).load().transactions == 100_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "line",
    [
        f"tidemark: slice {HUGE} of thread 0 from 1.0 to 2.0: 5",
        f"tidemark: slice 1 of thread 0 from 1.0 to 2.0: {HUGE}",
        f"    0.079 |**     {HUGE}",
        f"[ 1s ] thds: 1 tps: 5.00 qps: {HUGE}.00",
    ],
)
def test_a_number_of_thousands_of_digits_is_no_number(line: str) -> None:
    assert transcript(line, *lines(CAPTURE)).load() == transcript(*lines(CAPTURE)).load()


def test_less_than_one_transaction_is_none() -> None:
    none = [line.replace("transactions:   ", "transactions: 0.4 ") for line in lines(CAPTURE)]
    with pytest.raises(LoadError, match="finished no transaction"):
        transcript(*none).load()


def test_pgbench_that_reports_a_rate_of_zero_or_a_time_without_end() -> None:
    report = ["number of transactions actually processed: 5", "latency average = 1.0 ms"]
    for rate in ("0.0", "0.000000000001"):
        read = PgbenchTranscript()
        for line in [*report, f"tps = {rate} (without initial connection time)"]:
            read.read(line)
        with pytest.raises(LoadError):
            read.load(1.0, logged_transactions(Path("/nowhere")))


def test_a_log_of_pgbench_with_other_digits_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_bytes(
        "0 1 ² 0 7 1\n0 1 500 0 7 1\n".encode() + b"0 1 \xff 0 7 1\n0 1 " + b"9" * 400 + b" 0 7 1"
    )
    assert logged_transactions(tmp_path).tolist() == [[500.0, 7.000001, 0.0]]

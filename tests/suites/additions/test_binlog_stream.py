"""A stream of a binary log: where it stands after packets that arrive in any pieces, and what is refused."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.additions.binlog_stream import ROTATE, after, progress_in

BEGIN = ("binlog.000001", 4)
CHECKSUM = b"\x01\x02\x03\x04"


def packet(event: bytes, number: int = 1) -> bytes:
    body = b"\0" + event
    return len(body).to_bytes(3, "little") + bytes([number % 256]) + body


def event(kind: int, end: int, content: bytes = b"") -> bytes:
    return struct.pack("<IBIIIH", 0, kind, 1, 19 + len(content), end, 0) + content


def rotation(name: str, start: int) -> bytes:
    return event(ROTATE, 0, struct.pack("<Q", start) + name.encode() + CHECKSUM)


ENDS = st.lists(st.integers(0, 2**32 - 1), max_size=20)


@given(ENDS, ENDS, st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_packets_may_arrive_in_any_pieces(first: list[int], second: list[int], cuts: Sequence[int]) -> None:
    events = [event(30, end, b"row") for end in first]
    events += [rotation("binlog.000002", 4), *(event(30, end) for end in second)]
    text = b"".join(packet(sent, number) for number, sent in enumerate(events))
    rest, reached, place = b"", BEGIN, 0
    while text:
        cut, place = cuts[place % len(cuts)], place + 1
        rest, reached = after(rest + text[:cut], reached)
        text = text[cut:]
    assert (rest, reached) == (b"", ("binlog.000002", max([4, *second])))


@given(st.binary(max_size=200))
def test_anything_is_read_or_refused(text: bytes) -> None:
    try:
        rest, (_, position) = after(text, BEGIN)
    except ValueError:
        return
    assert text.endswith(rest)
    assert position >= 0


@pytest.mark.parametrize("body", [b"\xff\x15\x04#28000denied" + b" " * 20, b"\0short", b"\xfe\0\0\0\0"])
def test_an_error_of_the_server_is_no_event(body: bytes) -> None:
    with pytest.raises(ValueError, match="no event"):
        after(len(body).to_bytes(3, "little") + b"\1" + body, BEGIN)


def test_the_progress_of_a_stream_that_has_not_begun(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    assert progress_in(file) is None
    file.write_bytes(b"\0" * 512)
    assert progress_in(file) is None
    file.write_bytes(struct.pack("<Q504s", 77, b"binlog.000012"))
    assert progress_in(file) == ("binlog.000012", 77)

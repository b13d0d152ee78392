"""Inputs of a fuzzer: real captures that were damaged, and bytes that never were a capture."""

import random
import re
from collections.abc import Callable, Sequence

LONGEST = 64 * 1024
"""Bytes of an input."""

GARBAGE_SHARE = 0.1
"""The share of inputs that begin from no capture."""

TOKENS: tuple[bytes, ...] = (
    *(b"0", b"-1", b"1", b"-0.0", b"1e308", b"1e400", b"-1e400", b"nan", b"inf", b"-inf", b"1e-320"),
    *(b"2147483648", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1e12"),
    *(b"9" * 16, b"9" * 400, b"9" * 5000, b"0x10", b"1_000", b"+5", b"1.2.3", b"."),
    *("²".encode(), "٣".encode(), "µ".encode(), "\u2028".encode(), "\x85".encode()),
    *(b"\xff", b"\x00", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\t", b" " * 300),
    *(b"null", b"true", b"[]", b"{}", b'""', b"'", b'"', b"[1]", b'{"a": 1}', b"NaN", b"\\ud800"),
    *(b"[" * 3000, b"{" * 3000, b'{"a":' * 3000, b"(" * 300, b";", b",", b"=", b"#", b"@", b"/", b".."),
    *(b"9999-12-31T23:59:59+00:00", b"0001-01-01T00:00:00+14:00", b"2026-01-01T00:00:00", b"2026-13"),
)
"""Texts that parsers stumble over: limits of numbers, other scripts' digits, halves of characters, depth."""

_TOKEN = re.compile(rb'"[^"\n]*"|[-+]?[0-9][0-9.eE]*|[A-Za-z_]+|[^\sA-Za-z0-9]')

Damage = Callable[[random.Random, bytes], bytes]


def input_of(seed: str, captures: Sequence[bytes], number: int) -> bytes:
    """Return input `number` of the sequence named `seed`: the same arguments give the same bytes."""
    draw = random.Random(f"{seed} {number}")
    if draw.random() < GARBAGE_SHARE:
        return _garbage(draw, captures)[:LONGEST]
    data = draw.choice(captures)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        data = draw.choice(_DAMAGES)(draw, data)
    return data[:LONGEST]


def _garbage(draw: random.Random, captures: Sequence[bytes]) -> bytes:
    if draw.random() < 0.3:
        return draw.randbytes(draw.randrange(400))
    words = [*TOKENS, *_TOKEN.findall(draw.choice(captures)[:4000]), b" ", b"\n"]
    return b"".join(draw.choice(words) for _ in range(draw.randrange(40)))


def _replace_token(draw: random.Random, data: bytes) -> bytes:
    """Put a hard token, or another token of the same input, where one stood."""
    start = draw.randrange(len(data) + 1)
    match = _TOKEN.search(data, start) or _TOKEN.search(data)
    if match is None:
        return draw.choice(TOKENS)
    begin, end = match.span()
    if draw.random() < 0.2 and (other := _TOKEN.search(data, draw.randrange(len(data)))):
        return data[:begin] + other[0] + data[end:]
    return data[:begin] + draw.choice(TOKENS) + data[end:]


def _change_number(draw: random.Random, data: bytes) -> bytes:
    """Give a number more digits, another sign or another magnitude."""
    numbers = list(re.finditer(rb"[0-9]+", data[:LONGEST]))
    if not numbers:
        return data
    match = draw.choice(numbers)
    digits = match[0]
    changed = draw.choice(
        (b"-" + digits, digits * 30, digits + b"0" * 9, digits[:1], b"0", digits[::-1], digits + b"e99")
    )
    return data[: match.start()] + changed + data[match.end() :]


def _insert(draw: random.Random, data: bytes) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.choice(TOKENS) + data[place:]


def _flip(draw: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _drop(draw: random.Random, data: bytes) -> bytes:
    begin, end = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
    return data[:begin] + data[min(end, begin + 200) :]


def _lines(draw: random.Random, data: bytes) -> bytes:
    """Drop, repeat or exchange lines."""
    lines = data.split(b"\n")
    first, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[first]
        case 1:
            lines[first:first] = [lines[other]] * draw.choice((1, 2, 50))
        case 2:
            lines[first], lines[other] = lines[other], lines[first]
        case _:
            draw.shuffle(lines)
    return b"\n".join(lines)


_DAMAGES: tuple[Damage, ...] = (
    *(_replace_token, _replace_token, _replace_token, _change_number, _change_number),
    *(_insert, _flip, _cut, _drop, _lines),
)

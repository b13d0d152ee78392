"""Every parser and importer with inputs that nobody meant: only its documented error, soon, sound numbers."""

import os
import time
from collections.abc import Iterable

import pytest

from tests.robustness.fuzzing import campaign
from tests.robustness.fuzzing.campaign import FuzzTarget, Number, Parse, first_surprise
from tests.robustness.fuzzing.mutation import LONGEST, input_of
from tests.robustness.fuzzing.targets import TARGETS

pytestmark = pytest.mark.deep("hundreds of damaged inputs of each parser")

DEFAULT_INPUTS = 20_000
"""For each parser: all of them together take less than two minutes on two cores."""

INPUTS = int(os.environ.get("TIDEMARK_FUZZ_INPUTS", DEFAULT_INPUTS))


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_takes_what_it_documents(name: str) -> None:
    surprise = first_surprise(TARGETS[name], range(INPUTS))
    assert surprise is None, str(surprise)


# --- the fuzzer itself: it sees each kind of surprise


def _returning(*values: float) -> Parse:
    return lambda data: [Number("value", value) for value in values]


def _raising(error: Exception) -> Parse:
    def parse(data: bytes) -> Iterable[Number]:
        if data != b"capture":
            raise error
        return ()

    return parse


def _hanging(data: bytes) -> Iterable[Number]:
    while data != b"capture":
        pass
    return ()


def _target(parse: Parse) -> FuzzTarget:
    return FuzzTarget("made up", lambda: [b"capture"], lambda folder: parse, (ValueError,))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_number_that_cannot_be_is_a_surprise(value: float) -> None:
    surprise = first_surprise(_target(_returning(1.0, value)), range(1))
    assert surprise is not None
    assert f"value is {value!r}" in surprise.what


def test_only_the_documented_error_is_none() -> None:
    assert first_surprise(_target(_raising(UnicodeError("it is a ValueError"))), range(50)) is None
    surprise = first_surprise(_target(_raising(KeyError("name"))), range(50))
    assert surprise is not None
    assert "KeyError: 'name'" in surprise.what
    assert repr(surprise.data) in str(surprise)


def test_a_parser_that_does_not_end_is_a_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "MAX_SECONDS", 0.05)
    began = time.process_time()
    surprise = first_surprise(_target(_hanging), range(50))
    assert surprise is not None
    assert "no answer" in surprise.what
    assert time.process_time() - began < 5


def test_a_capture_that_is_refused_is_a_surprise() -> None:
    def refuse(data: bytes) -> Iterable[Number]:
        raise ValueError("never")

    surprise = first_surprise(_target(refuse), range(1))
    assert surprise is not None
    assert surprise.what == "a real capture: it is refused: never"


def test_inputs_are_the_same_every_time_and_differ_from_each_other() -> None:
    captures = [b"one 1\n", b'{"two": 2}\n']
    inputs = [input_of("name", captures, number) for number in range(500)]
    assert inputs == [input_of("name", captures, number) for number in range(500)]
    assert len(set(inputs)) > 250
    assert max(map(len, inputs)) <= LONGEST

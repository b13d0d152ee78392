"""What a load generator reports of a counted pass, and what it is answered."""

from pathlib import Path

import pytest

from suites.generators.load import CountedWork, PassLength
from suites.generators.pass_course import AnsweredCourse


@pytest.fixture
def told() -> list[tuple[int, int, float]]:
    return []


@pytest.fixture
def course(tmp_path: Path, told: list[tuple[int, int, float]]) -> AnsweredCourse:
    def choose(seconds: float) -> PassLength:
        return PassLength(24, round(6 / seconds))

    def tell(done: int, total: int, seconds: float) -> None:
        told.append((done, total, seconds))

    return AnsweredCourse(CountedWork("SELECT 1", 600.0, choose, tell), tmp_path / "length")


def test_the_cost_of_a_transaction_is_answered_and_progress_is_told(
    course: AnsweredCourse, told: list[tuple[int, int, float]]
) -> None:
    course.read("Threads started!")
    assert not course.answer.exists()
    course.read("tidemark: counted pass: 0.500000 s a transaction")
    assert course.answer.read_text() == "24 12\n"
    for line in (
        "tidemark: counted pass at 7 of 36 after 21.4 s",
        "tidemark: counted pass at many of 36 after 21.4 s",
        "tidemark: counted pass: nan s a transaction",
    ):
        course.read(line)
    assert told == [(7, 36, 21.4)]
    assert course.length == PassLength(24, 12)


def test_a_pass_at_its_limit_says_how_far_it_was_and_what_to_do(course: AnsweredCourse) -> None:
    error = course.too_long("scan")
    assert error.what == "the counted pass of scan was ended after 600 s, at its first transactions"
    course.read("tidemark: counted pass: 0.500000 s a transaction")
    course.read("tidemark: counted pass at 7 of 36 after 21.4 s")
    error = course.too_long("scan")
    assert error.what == "the counted pass of scan was ended after 600 s, at 7 of 36 transactions"
    assert error.hint == "leave the step out: name the others with --step; or count nothing, with --no-exact"
